"""Tokenizers as they are in the wild: every file form, special tokens, limits, damage."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from helpers.checkpoints import make
from helpers.json_files import read_json, write_json
from helpers.opened_folders import tokenizer_of
from helpers.vocabulary import pieces, write_tokenizer_json, write_vocabulary

import bertcli
from bertcli.errors import BertcliError
from bertcli.tokens import Tokenizer

SMALL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##believ", "##able", "a", "b", "c"]
Edit = Callable[[dict[str, Any]], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def from_vocabulary(folder: Path, vocabulary: list[str] = SMALL, **config: Any) -> Tokenizer:
    write_vocabulary(folder, vocabulary)
    write_json(folder / "tokenizer_config.json", config)
    return tokenizer_of(folder)


def from_json(folder: Path, edit: Edit = lambda data: None, config: dict[str, Any] | None = None) -> Tokenizer:
    """A tokenizer.json changed by `edit`."""
    write_tokenizer_json(folder, SMALL)
    file = folder / "tokenizer.json"
    data = read_json(file)
    edit(data)
    write_json(file, data)
    write_json(folder / "tokenizer_config.json", config or {})
    return tokenizer_of(folder)


def pieces_of(tokenizer: Tokenizer, text: str, pair: str | None = None, max_length: int | None = None) -> list[str]:
    (tokens,) = tokenizer.encode([text], [pair], max_length)
    assert [tokenizer.piece(id) for id in tokens.ids] == tokens.pieces
    return tokens.pieces


# ------------------------------------------------------------------------------------------------------------- tokens


def test_texts_with_and_without_a_pair_together(folder: Path) -> None:
    found = from_vocabulary(folder).encode(["a", "b", "c"], [None, "a", None])
    assert [len(tokens.ids) for tokens in found] == [3, 5, 3]


def test_lost_masks_are_counted(folder: Path) -> None:
    tokenizer = from_vocabulary(folder)
    (tokens,) = tokenizer.encode(["[MASK] a [MASK] [MASK]"], None, 4)
    assert tokens.pieces == ["[CLS]", "[MASK]", "a", "[SEP]"]
    assert tokens.lost_masks == 2


# ----------------------------------------------------------------------------------------------------- special tokens


@pytest.mark.parametrize("form", ["vocab", "json"])
def test_special_tokens_in_a_text_are_recognized(form: str, folder: Path) -> None:
    tokenizer = from_vocabulary(folder) if form == "vocab" else from_json(folder)
    assert pieces_of(tokenizer, "a[MASK]b [SEP]") == ["[CLS]", "a", "[MASK]", "b", "[SEP]", "[SEP]"]
    assert [tokenizer.special_id(role) for role in ("mask", "cls", "sep", "pad", "unk")] == [4, 2, 3, 0, 1]


def test_a_vocabulary_without_a_mask_token(folder: Path) -> None:
    tokenizer = from_vocabulary(folder, [piece for piece in SMALL if piece != "[MASK]"])
    assert pieces_of(tokenizer, "a") == ["[CLS]", "a", "[SEP]"]
    with pytest.raises(BertcliError, match=r"no mask token '\[MASK\]'"):
        _ = tokenizer.mask_id


def test_the_post_processor_of_tokenizer_json_is_used(folder: Path) -> None:
    def other_frame(data: dict[str, Any]) -> None:
        special = {"[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}
        single = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
        pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
        data["post_processor"] = {
            "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special
        }  # fmt: skip

    tokenizer = from_json(folder, other_frame)
    assert pieces_of(tokenizer, "a b") == ["a", "b", "[SEP]"]
    assert pieces_of(tokenizer, "a", "b c") == ["a", "[SEP]", "b", "c"]
    assert pieces_of(tokenizer, "a b c", None, 3) == ["a", "b", "[SEP]"]


# --------------------------------------------------------------------------------------------------- limits, segments


@pytest.mark.parametrize(
    ("value", "limit"), [(None, None), (1e30, None), (10**30, None), (512, 512), (512.0, 512), (10**9, None)]
)
def test_model_max_length(value: Any, limit: int | None, folder: Path) -> None:
    assert from_vocabulary(folder, model_max_length=value).model_max_length == limit


@pytest.mark.parametrize("max_length", [1, 0, -5])
def test_a_limit_too_small_for_the_special_tokens(max_length: int, folder: Path) -> None:
    with pytest.raises(BertcliError, match="needs 2 tokens"):
        from_vocabulary(folder).encode(["a"], None, max_length)
    with pytest.raises(BertcliError, match="needs 3 tokens"):
        from_vocabulary(folder).encode(["a"], ["b"], 2)


# ------------------------------------------------------------------------------------------------------- words, pieces


def test_words_and_their_pieces(folder: Path) -> None:
    tokenizer = from_vocabulary(folder)
    assert tokenizer.pieces_of("Unbelievable") == (5, 6, 7)
    assert tokenizer.pieces_of("##able") == (7,)
    assert tokenizer.pieces_of("zzz") == (1,)
    assert tokenizer.pieces_of(" ") == ()
    assert tokenizer.spelling(["un", "##believ", "##able"]) == ("unbelievable", "unbelievable")
    assert tokenizer.spelling(["##able"]) == ("##able", "able")
    assert tokenizer.piece(99) == "[row 99]"
    assert tokenizer.id_of("nothing") is None
    assert tokenizer.vocab_size == len(SMALL)


# -------------------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_pair_is_no_text(text: str, folder: Path) -> None:
    with pytest.raises(BertcliError, match="half a surrogate pair"):
        from_vocabulary(folder).encode(["fine", text])


def test_a_text_is_a_string(folder: Path) -> None:
    with pytest.raises(BertcliError, match="must be a string, but 7 is not"):
        from_vocabulary(folder).encode(["fine", 7])  # type: ignore[list-item]


def test_a_text_too_long_to_tokenize(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = from_vocabulary(folder)
    monkeypatch.setattr("bertcli.tokens.tokenizer.LONGEST", 2000)
    assert len(tokenizer.encode(["a " * 1000])[0].ids) == 1002
    with pytest.raises(BertcliError, match=r"^'a a .*' has 2,001 characters, more than 2,000: split it\.$"):
        tokenizer.encode(["a " * 1000 + "a"])


@pytest.mark.parametrize("content", [b"", b"{}", b"nonsense", b"\xff", b'{"model": {"type": "WordPiece"}}', b"[1"])
def test_a_tokenizer_json_that_cannot_be_read_is_no_reason_to_take_another(content: bytes, folder: Path) -> None:
    write_vocabulary(folder, SMALL)
    (folder / "tokenizer.json").write_bytes(content)
    with pytest.raises(BertcliError, match=r"tokenizer\.json cannot be read as a tokenizer"):
        tokenizer_of(folder)


def test_a_tokenizer_json_that_is_a_folder(folder: Path) -> None:
    write_vocabulary(folder, SMALL)
    (folder / "tokenizer.json").mkdir()
    with pytest.raises(BertcliError, match="is not a file"):
        tokenizer_of(folder)


def test_no_tokenizer_at_all(folder: Path) -> None:
    with pytest.raises(BertcliError, match=r"neither tokenizer\.json nor vocab\.txt"):
        tokenizer_of(folder)


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [([], "is empty|lacks"), (["a", "b"], r"lacks \[CLS\], \[SEP\]"), (["[CLS]", "[SEP]"], "Missing .UNK. token")],
)
def test_a_vocabulary_that_cannot_work(vocabulary: list[str], message: str, folder: Path) -> None:
    with pytest.raises(BertcliError, match=message):
        from_vocabulary(folder, vocabulary).encode(["zzz"])


@pytest.mark.parametrize(
    "config",
    [
        {"do_lower_case": "yes"},
        {"strip_accents": 1},
        {"model_max_length": "512"},
        {"model_max_length": True},
        {"model_max_length": 0},
        {"mask_token": 7},
        {"mask_token": {}},
        {"mask_token": ""},
        {"additional_special_tokens": "x"},
        {"added_tokens_decoder": [1]},
    ],
)
def test_a_tokenizer_config_that_makes_no_sense(config: dict[str, Any], folder: Path) -> None:
    with pytest.raises(BertcliError, match=r"tokenizer_config\.json"):
        from_vocabulary(folder, **config)


@pytest.mark.parametrize("form", ["vocab", "json"])
def test_a_vocabulary_larger_than_the_embeddings(form: str, tmp_path: Path) -> None:
    vocabulary = pieces()
    make(tmp_path, vocabulary=vocabulary, tokenizer=form, sizes={"vocab_size": len(vocabulary) - 1})
    with pytest.raises(BertcliError, match=f"has {len(vocabulary)} pieces, but the model has {len(vocabulary) - 1}"):
        _ = bertcli.load(tmp_path).tokenizer


def test_a_piece_with_an_id_past_the_embeddings(tmp_path: Path) -> None:
    """Found where it occurs: a vocabulary of no more pieces than embeddings may have gaps."""
    make(tmp_path, tokenizer="json", head="mlm")
    file = tmp_path / "tokenizer.json"
    stored = read_json(file)
    stored["model"]["vocab"]["tea"] = 9999
    write_json(file, stored)
    model = bertcli.load(tmp_path)
    assert np.isfinite(model.encode(["coffee"])).all()
    for use in (lambda: model.encode(["hot tea"]), lambda: model.fill_mask(["[MASK]"], targets=["tea"])):
        with pytest.raises(BertcliError, match="puts the id 9999 into"):
            use()


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_was_cut_can_be_forgotten(side: Literal["left", "right"]) -> None:
    """What is left is the same: pieces, places in the text, words, sides."""
    tokenizer = bertcli.load("bert-mini-mlm").tokenizer.cutting(side)
    text, pair = "The river runs over the hills. " * 20, "A dog ran home."
    for tokens in tokenizer.encode([text, text], [None, pair], max_length=16):
        kept = tokens.without_lost()
        assert kept.lost == tokens.lost > 0
        for name in ("ids", "segments", "pieces", "offsets", "words", "sides"):
            assert getattr(kept, name) == getattr(tokens, name)
        assert max(map(len, kept.template().sides)) <= 16
