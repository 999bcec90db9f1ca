"""Late interaction in its three layouts against sentence-transformers (tests/reference/late.npz), and bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoint_files import write_safetensors
from helpers.json_files import change_json
from helpers.late_folders import DOCUMENTS, FOLDERS, QUERIES, Late, expansion, stored_in, write_late
from helpers.near import assert_near
from helpers.terminal import bertcli as command

import bertcli
from bertcli.errors import BertcliError
from bertcli.wings.interpret.compute.explain import draw as explain_page
from bertcli.wings.interpret.compute.explain import explain

RECORDED = np.load(Path(__file__).parents[1] / "reference" / "late.npz")


def change(file: Path, **settings: Any) -> None:
    change_json(file, settings)


@pytest.mark.parametrize("name", FOLDERS)
def test_late_interaction_equals_sentence_transformers(name: str, tmp_path: Path) -> None:
    model = bertcli.load(write_late(tmp_path, name))
    for kind, texts in (("query", QUERIES), ("document", DOCUMENTS)):
        blocks = model.encode_blocks(texts, pooling="none", prompt_name=kind, truncation="silent")
        for number, vectors in enumerate(rows for block in blocks for rows in block.vectors):
            expected = RECORDED[f"{name}: {kind} {number}"]
            assert vectors.shape == expected.shape
            assert_near(vectors, expected, 2e-5)
    for number, query in enumerate(QUERIES):
        records = model.rank(query, DOCUMENTS, truncation="silent")
        scores = [record["score"] for record in records]
        assert scores == sorted(scores, reverse=True)
        expected = RECORDED[f"{name}: scores"][number, [record["corpus_id"] for record in records]]
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=2e-5)  # sums of up to 40 cosines, in float32


@pytest.mark.any_kernel
def test_several_queries_rank_as_one_by_one(tmp_path: Path) -> None:
    model = bertcli.load(write_late(tmp_path, "stanford"))
    queries = ["tea"] * 3 + ["hot tea [MASK]"] * 2
    together = model.rank(queries, DOCUMENTS, truncation="silent", batch_tokens=8)
    first = model.rank(queries[0], DOCUMENTS[:3], truncation="silent")
    second = model.rank(queries[3], DOCUMENTS[3:], truncation="silent")
    for one, other in zip(together, [*first, *second], strict=True):
        assert one["text"] == other["text"]
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)
    assert model.rank(queries, DOCUMENTS, truncation="silent", batch_tokens=8, workers=2) == together


def test_a_query_that_ends_in_masks_is_not_one_that_is_filled_with_them(tmp_path: Path) -> None:
    model = bertcli.load(write_late(tmp_path, "stanford"))
    texts = ["tea", "tea [MASK]"]
    task = [rows for block in model.encode_blocks(texts, pooling="none", prompt_name="query") for rows in block.vectors]
    assert not np.allclose(task[0], task[1], atol=1e-3)


def test_explain_shows_what_each_token_matched(tmp_path: Path) -> None:
    model = bertcli.load(write_late(tmp_path, "stanford"))
    (found,) = explain(model, ["hot tea?"], ["The tea, was hot."])
    (record,) = model.rank("hot tea?", ["The tea, was hot."])
    words = found.record["words"]
    assert found.value == pytest.approx(record["score"])
    assert sum(word["contribution"] for word in words) == pytest.approx(found.value)
    assert [word["word"] for word in words[:6]] == ["[CLS]", "[unused2]", "hot", "tea", "?", "[SEP]"]
    assert [(word["start"], word["end"]) for word in words[1:5]] == [(0, 0), (0, 3), (4, 7), (7, 8)]
    assert {word["match"] for word in words} <= {"[CLS]", "[unused1]", "the", "tea", "was", "hot", "[SEP]"}
    page = explain_page([found])
    assert "Match" in page
    assert page.count("<mark") == 2 + 3  # of the legend, and a word each
    assert "contributions add up to the score" in page
    unfit: list[dict[str, Any]] = [{"label": "x"}, {"contrast": "river"}, {"method": "delete"}]
    for asked in unfit:
        with pytest.raises(BertcliError, match="without masking or deleting words"):
            explain(model, ["tea"], ["tea"], **asked)
    with pytest.raises(BertcliError, match="a query and a document"):
        explain(model, ["tea"])


def test_explain_cuts_documents_as_rank_does(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = bertcli.load(write_late(tmp_path, "stanford"))
    (found,) = explain(model, ["tea"], [DOCUMENTS[3]], batch_tokens=1)
    assert sum("was cut to 14 tokens" in message for message in caplog.messages) == 1
    assert found.value == pytest.approx(model.rank("tea", [DOCUMENTS[3]])[0]["score"])
    explain(model, ["tea"], ["tea " * 12])
    assert "was cut to 14 tokens; 1 was lost." in caplog.text


def test_what_late_interaction_does_not_give_is_said(tmp_path: Path) -> None:
    model = ("-m", str(write_late(tmp_path, "pylate")))
    assert command("explain", *model, "hot tea?", "--text-pair", "The tea.").out.count("[MASK]") >= 4
    assert "encode with pooling none" in command("encode", *model, "tea").error
    assert "last layer" in command("encode", *model, "tea", "--pooling", "none", "--layer", "1").error
    assert len(command("encode", *model, "tea", "--pooling", "mean", "--format", "jsonl").records[0]["embedding"]) == 32


def test_queries_that_are_cut_are_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = bertcli.load(write_late(tmp_path, "stanford"))
    ranked = model.rank(QUERIES[2], ["tea", "hot"] * 2, batch_tokens=1)
    # max_length is that of documents. The batches are the same: those of another size have other last digits.
    assert model.rank(QUERIES[2], ["tea", "hot"] * 2, batch_tokens=1, max_length=6) == ranked
    assert sum("was cut to 16 tokens" in message for message in caplog.messages) == 2, "one of each call"
    with pytest.raises(BertcliError, match=r"query of text 0 .* more than 16") as refused:
        model.rank(QUERIES[2], ["tea"], truncation="error")
    assert "max-length" not in str(refused.value)
    (tmp_path / "pairs.csv").write_text(f"text,pair\ntea,hot\n{QUERIES[2]},tea\n", encoding="utf-8")
    rows = ("-i", str(tmp_path / "pairs.csv"), "--query-column", "text", "--column", "pair", "--format", "jsonl")
    ran = command("rank", "-m", str(tmp_path), *rows)
    assert ["score" in record for record in ran.records] == [True, True]
    assert "was cut to 16 tokens" in ran.err


def test_words_of_the_skip_list_that_are_no_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_late(tmp_path, "modules fixed")
    change(folder / "2_MultiVectorMask/config.json", skiplist_words=["tea", "no such word"])
    (block,) = bertcli.load(folder).encode_blocks(["xqz☃ tea, hot"], pooling="none")
    assert block.items[0].tokens.pieces == ["[CLS]", "hot", "[UNK]", ",", "hot", "[SEP]"]
    assert any("'no such word'" in message for message in caplog.messages)


def test_a_limit_that_is_given_holds_for_vectors_of_tokens(tmp_path: Path) -> None:
    """Documents of this model have up to 12 tokens, queries exactly 10."""
    folder = write_late(tmp_path, "modules fixed")
    words: list[Any] = ["encode", "-m", folder, "hot tea the river " * 8, "--pooling", "none", "--format", "jsonl"]
    for limit, count in (((), 12), (("--max-length", "6"), 6), (("--max-length", "20"), 20)):
        (record,) = command(*words, *limit).records
        assert len(record["embeddings"]) == len(record["tokens"]) == count
    (query,) = command(*words, "--prompt-name", "query").records
    assert len(query["embeddings"]) == 10


TRANSFORMER, DENSE, MASK = "sentence_bert_config.json", "1_Dense/config.json", "2_MultiVectorMask/config.json"
SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    (TRANSFORMER, expansion("fixed", 8, x=1), "query_expansion"),
    (TRANSFORMER, expansion("all", 8), "query_expansion"),
    (TRANSFORMER, {"query_expansion": {"strategy": "min"}}, "without a length"),
    (TRANSFORMER, {"query_length": 6, **expansion("min", 9)}, "has the query_length 6, less than the length 9"),
    (TRANSFORMER, {"query_length": 6, **expansion("fixed", 9)}, "has the query_length 6, less than the length 9"),
    (TRANSFORMER, expansion("min", 900), "has 48 positions"),
    (TRANSFORMER, expansion("min", 9, token="[X]"), "lacks"),
    (TRANSFORMER, {"document_length": "12"}, "document_length"),
    (MASK, {"skiplist_words": [1]}, "skiplist_words"),
    (MASK, {"keep_only_token_ids": [7]}, "keep_only_token_ids"),
    (DENSE, {"use_residual": True}, "lacks tensor residual.weight"),
    (DENSE, {"use_residual": True, "activation_function": "torch.nn.modules.activation.Tanh"}, "use_residual"),
    (DENSE, {"module_input_name": "sentence_embedding"}, "module_input_name"),
    (DENSE, {"out_features": 7}, "of shape"),
    ("3_Normalize/config.json", {"module_input_name": "sentence_embedding"}, "module_input_name"),
    ("config_sentence_transformers.json", {"prompts": ["tea"]}, "prompts"),
]


@pytest.mark.any_kernel
@pytest.mark.parametrize(("file", "settings", "message"), SETTINGS)
def test_settings_that_are_not_done_are_refused_by_name(
    file: str, settings: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = write_late(tmp_path, "modules fixed")
    change(folder / file, **settings)
    with pytest.raises(BertcliError, match=message):
        bertcli.load(folder).rank("tea", ["hot tea"])


@pytest.mark.parametrize(
    ("name", "message"),
    [("deberta-v2", "not attended to"), ("modernbert", "padding_side"), ("gemma3_text", "padding_side")],
)
def test_queries_that_cannot_be_filled(name: str, message: str, tmp_path: Path) -> None:
    folder = write_late(tmp_path, Late(name, "modules", {}, expansion("fixed", 9)))
    if name == "modernbert":
        change(folder / "tokenizer_config.json", padding_side="left")
    if name == "gemma3_text":  # whose class pads at the left if nothing is said
        change(folder / "tokenizer_config.json", tokenizer_class="GemmaTokenizer")
    model = bertcli.load(folder)
    assert len(next(model.encode_blocks(["tea"], pooling="none")).vectors) == 1
    with pytest.raises(BertcliError, match=message):
        model.rank("tea", ["hot tea"])


def test_a_marker_is_one_token_without_its_space_too(tmp_path: Path) -> None:
    """The vocabulary has "[unused1]", and the prefix a space after it, which is no part of a token."""
    prefixes = {"model_type": "ColBERT", "query_prefix": "[unused1] ", "document_prefix": "[unused2] "}
    tokenizer = bertcli.load(write_late(tmp_path, Late("bert", "pylate", prefixes))).tokenizer
    for marker in ("[unused1]", "[unused2]"):
        (tokens,) = tokenizer.encode([f"{marker} tea"])
        assert [tokenizer.piece(id) for id in tokens.ids] == ["[CLS]", marker, "tea", "[SEP]"]


def test_damaged_files_of_stanfords_layout(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = write_late(tmp_path, "stanford")
    whole = (folder / "artifact.metadata").read_text(encoding="utf-8")
    for text, message in (
        (whole[:20], "not valid JSON"),
        ('{"query_maxlen": -1}', "query_maxlen"),
        ("[]", "JSON object"),
    ):
        (folder / "artifact.metadata").write_text(text, encoding="utf-8")
        with pytest.raises(BertcliError, match=message):
            bertcli.load(folder).rank("tea", ["hot tea"])
    (folder / "artifact.metadata").unlink()
    caplog.set_level("INFO", "bertcli")
    assert len(next(bertcli.load(folder).encode_blocks(["tea"], pooling="none", prompt_name="query")).vectors[0]) == 32
    assert sum("has no artifact.metadata: queries get 32 tokens" in message for message in caplog.messages) == 1
    stored = stored_in(folder)
    for weight, message in ((None, "lacks tensor linear.weight"), (np.ones((6, 31), np.float32), "shape")):
        others = {one: tensor for one, tensor in stored.items() if one != "linear.weight"}
        write_safetensors(
            folder / "model.safetensors", others if weight is None else others | {"linear.weight": ("F32", weight)}
        )
        with pytest.raises(BertcliError, match=message):
            bertcli.load(folder).rank("tea", ["hot tea"])


@pytest.mark.any_kernel
def test_an_exported_folder_keeps_the_settings_of_stanford(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    folder = write_late(tmp_path / "model", "stanford")
    assert command("export", "-o", tmp_path / "out", "-m", folder, "--no-verify").status == 0
    assert (tmp_path / "out" / "artifact.metadata").read_bytes() == (folder / "artifact.metadata").read_bytes()
    assert not (tmp_path / "out" / "model.safetensors").exists()
