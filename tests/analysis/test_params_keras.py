"""The Keras summary, row by row: 109,705,010 parameters with a vocabulary of 30,000 and both heads of pre-training."""

from pathlib import Path

import pytest
from helpers.static_models import write_static

import bertcli
from bertcli.analysis.params import Summary, SummaryRow, keras
from bertcli.errors import BertcliError

HIDDEN = "(None, 512, 768)"
ATTENTION = "A·H·(H/A)·3 + H·3 + H·H + H"
FEED_FORWARD = "(H·F + F) + (F·H + H)"

Line = tuple[str, str, str, int, str, tuple[str, ...]]


def layer(i: int) -> list[Line]:
    before = f"Encoder-{i - 1}-FeedForward-Norm" if i > 1 else "Embedding-Norm"
    attention, feed_forward = f"Encoder-{i}-MultiHeadSelfAttention", f"Encoder-{i}-FeedForward"
    norm = f"{attention}-Norm"
    return [
        (attention, "MultiHeadAttention", HIDDEN, 2_362_368, ATTENTION, (before,)),
        (f"{attention}-Dropout", "Dropout", HIDDEN, 0, "", (attention,)),
        (f"{attention}-Add", "Add", HIDDEN, 0, "", (before, f"{attention}-Dropout")),
        (norm, "LayerNormalization", HIDDEN, 1_536, "2·H", (f"{attention}-Add",)),
        (feed_forward, "FeedForward", HIDDEN, 4_722_432, FEED_FORWARD, (norm,)),
        (f"{feed_forward}-Dropout", "Dropout", HIDDEN, 0, "", (feed_forward,)),
        (f"{feed_forward}-Add", "Add", HIDDEN, 0, "", (norm, f"{feed_forward}-Dropout")),
        (f"{feed_forward}-Norm", "LayerNormalization", HIDDEN, 1_536, "2·H", (f"{feed_forward}-Add",)),
    ]


SUMMARY: list[Line] = [
    ("Input-Token", "InputLayer", "(None, 512)", 0, "", ()),
    ("Input-Segment", "InputLayer", "(None, 512)", 0, "", ()),
    ("Embedding-Token", "TokenEmbedding", f"{HIDDEN}, (30000, 768)", 23_040_000, "V·H", ("Input-Token",)),
    ("Embedding-Segment", "Embedding", HIDDEN, 1_536, "T·H", ("Input-Segment",)),
    ("Embedding-Token-Segment", "Add", HIDDEN, 0, "", ("Embedding-Token", "Embedding-Segment")),
    ("Embedding-Position", "PositionEmbedding", HIDDEN, 393_216, "P·H", ("Embedding-Token-Segment",)),
    ("Embedding-Dropout", "Dropout", HIDDEN, 0, "", ("Embedding-Position",)),
    ("Embedding-Norm", "LayerNormalization", HIDDEN, 1_536, "2·H", ("Embedding-Dropout",)),
    *(line for i in range(1, 13) for line in layer(i)),
    ("MLM-Dense", "Dense", HIDDEN, 590_592, "H·H + H", ("Encoder-12-FeedForward-Norm",)),
    ("MLM-Norm", "LayerNormalization", HIDDEN, 1_536, "2·H", ("MLM-Dense",)),
    ("Extract", "Extract", "(None, 768)", 0, "", ("Encoder-12-FeedForward-Norm",)),
    ("MLM-Sim", "EmbeddingSimilarity", "(None, 512, 30000)", 30_000, "V", ("MLM-Norm", "Embedding-Token")),
    ("Input-Masked", "InputLayer", "(None, 512)", 0, "", ()),
    ("NSP-Dense", "Dense", "(None, 768)", 590_592, "H·H + H", ("Extract",)),
    ("MLM", "Masked", "(None, 512, 30000)", 0, "", ("MLM-Sim", "Input-Masked")),
    ("NSP", "Dense", "(None, 2)", 1_538, "2·H + 2", ("NSP-Dense",)),
]


def line(row: SummaryRow) -> Line:
    return row.path, row.type, row.output_shape, row.params, row.formula, row.connected_to


def keras_summary(name: str, heads: str, vocab_size: int = 30000, collapse: bool = False) -> Summary:
    return bertcli.params(bertcli.variant(name, heads=heads, vocab_size=vocab_size), style="keras", collapse=collapse)


def test_params_keras_the_summary_of_bert_base_cell_by_cell() -> None:
    summary = keras_summary("base", "mlm,nsp")
    assert [line(row) for row in summary.rows] == SUMMARY
    assert summary.total_params == summary.totals.trainable_params == 109_705_010
    assert summary.totals.non_trainable_params == 0


def test_params_keras_rows_of_a_head_that_is_not_there_are_not_there() -> None:
    assert [row.path for row in keras_summary("tiny", "pooler").rows][8 + 2 * 8 :] == ["Extract", "NSP-Dense"]
    mlm = [row.path for row in keras_summary("tiny", "mlm").rows][8 + 2 * 8 :]
    assert mlm == ["MLM-Dense", "MLM-Norm", "MLM-Sim", "Input-Masked", "MLM"]
    classified = keras_summary("tiny", "classifier").rows[-1]
    assert line(classified) == ("Classifier", "Dense", "(None, 2)", 2 * 128 + 2, "C·H + C", ("NSP-Dense",))
    assert keras_summary("tiny", "none").rows[-1].path == "Encoder-2-FeedForward-Norm"


def test_params_keras_a_part_without_words_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras, "HEADS", keras.HEADS.replace("=nsp ", " nsp "))
    with pytest.raises(BertcliError, match=r"no row for nsp\.output\.weight of tiny"):
        keras_summary("tiny", "nsp")


def test_params_keras_the_textbook_model_has_its_own_rows() -> None:
    rows = {row.path: row for row in bertcli.params(bertcli.variant("textbook"), style="keras").rows}
    assert list(rows)[:9] == [
        "Input-Token", "Embedding-Token", "Embedding-Position", "Encoder-1-MultiHeadSelfAttention",
        "Encoder-1-MultiHeadSelfAttention-Add", "Encoder-1-MultiHeadSelfAttention-Norm", "Encoder-1-FeedForward",
        "Encoder-1-FeedForward-Add", "Encoder-1-FeedForward-Norm",
    ]  # fmt: skip
    assert rows["Encoder-1-MultiHeadSelfAttention"].formula == "3·A·H·D"
    assert rows["Encoder-1-MultiHeadSelfAttention"].connected_to == ("Embedding-Position",)
    assert rows["Encoder-1-FeedForward-Norm"].params == 0
    assert line(rows["Pooler"])[2:] == ("(None, 768)", 768 * 768, "H·H", ("Extract",))


def test_params_keras_what_comes_after_a_row_that_is_not_there_is_connected_to_what_came_before() -> None:
    rows = {row.path: row for row in bertcli.params(bertcli.variant("distilbert-base"), style="keras").rows}
    assert [*rows][:3] == ["Input-Token", "Embedding-Token", "Embedding-Position"]
    assert rows["Embedding-Position"].connected_to == ("Embedding-Token",)
    assert {path for row in rows.values() for path in row.connected_to} <= set(rows)


def test_params_keras_collapsed_rows_stand_for_all_layers() -> None:
    rows = {row.path: row for row in keras_summary("base", "mlm,nsp", collapse=True).rows}
    assert len(rows) == 24
    feed_forward = rows["Encoder-*-FeedForward"]
    assert (feed_forward.type, feed_forward.params) == ("FeedForward × 12", 12 * 4_722_432)
    assert feed_forward.formula == f"L·({FEED_FORWARD})"
    assert rows["MLM-Dense"].connected_to == ("Encoder-*-FeedForward-Norm",)


def test_params_keras_has_no_rows_for_static_embeddings(tmp_path: Path) -> None:
    write_static(tmp_path, "root")
    with pytest.raises(BertcliError, match=r"has no encoder: leave out --style keras\."):
        bertcli.params(bertcli.load(tmp_path), style="keras")
