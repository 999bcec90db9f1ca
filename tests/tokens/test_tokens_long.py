"""Very long texts are tokenized in pieces, and nobody can tell."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import pytest
from conftest import Made
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizer_kinds import write_kind
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordPiece
from tokens.test_tokens import SMALL, from_json, from_vocabulary

import bertcli
from bertcli.tokens import Tokenizer, Tokens, long, tokenizer
from bertcli.tokens.long import AT_SPACES, AT_WHITE_SPACE, boundary

WORDS = [
    "a",
    "un",
    "Unbelievable",
    "b,c",
    "[MASK]",
    "[SEP]x",
    "Café",
    "ΣΑΣ",
    "漢字",
    "😀",
    "x_y",
    "e\u0301",
    "\u0301",
    "…",
    "!!?",
    "中国人、",
    "(x)",
    "[",
    "MASK]",
    "～。",
]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\x1c", "\x00", ""]


def numbers(tokens: Tokens) -> tuple[object, ...]:
    return tokens.ids, tokens.segments, tokens.lost, tokens.lost_masks, tokens.offsets, tokens.words, tokens.sides


@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=60),
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=60),
    st.integers(1, 40),
    st.one_of(st.none(), st.integers(3, 30)),
    st.booleans(),
)
@settings(deadline=None)
def test_a_text_in_pieces_is_the_text(
    made: Made,
    first: list[tuple[str, str]],
    second: list[tuple[str, str]],
    piece: int,
    limit: int | None,
    paired: bool,
) -> None:
    words = bertcli.load(made()).tokenizer
    text, pair = ("".join(word + space for word, space in some) for some in (first, second))
    pairs = [pair if paired else None]
    whole = [numbers(tokens) for tokens in words.encode([text], pairs, limit)]
    with patch.object(tokenizer, "LONG", 0), patch.object(long, "PIECE", piece), patch.object(long, "TOGETHER", 2):
        assert [numbers(tokens) for tokens in words.encode([text], pairs, limit)] == whole


def test_the_end_is_kept_where_texts_are_cut_on_the_left(folder: Path) -> None:
    words = from_vocabulary(folder, truncation_side="left")
    with patch.object(tokenizer, "LONG", 0), patch.object(long, "PIECE", 1):
        (tokens,) = words.encode(["a b c a b"], None, 4)
    assert tokens.pieces == ["[CLS]", "a", "b", "[SEP]"]
    assert tokens.offsets == [(0, 0), (6, 7), (8, 9), (0, 0)]


@pytest.mark.parametrize("processor", [True, False])
@pytest.mark.parametrize("splitter", [True, False])
def test_a_space_that_byte_level_tokenizers_put_before_a_text_stands_there_once(
    splitter: bool, processor: bool, tmp_path: Path
) -> None:
    """Also where the two parts that know of it disagree: the letter before a piece is then at (1, 1)."""
    write_kind(tmp_path, "roberta")
    file = tmp_path / "tokenizer.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["pre_tokenizer"]["add_prefix_space"] = splitter
    data["post_processor"] |= {"add_prefix_space": processor, "trim_offsets": True}
    file.write_text(json.dumps(data), encoding="utf-8")
    words, text = Tokenizer.open(tmp_path), "the cat sat,on the  mat 中国 \n 5 times"
    (whole,) = words.encode([text])
    with patch.object(tokenizer, "LONG", 0), patch.object(long, "PIECE", 1):
        assert [numbers(tokens) for tokens in words.encode([text])] == [numbers(whole)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def backend(
    normalizer: normalizers.Normalizer | None, pre_tokenizer: pre_tokenizers.PreTokenizer | None, *added: AddedToken
) -> Backend:
    made = Backend(WordPiece({piece: id for id, piece in enumerate(SMALL)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
    made.add_tokens(list(added))
    return made


def test_which_tokenizers_may_be_given_pieces() -> None:
    bert, split = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    nested = pre_tokenizers.Sequence([pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.ByteLevel()])])
    spaces = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace(Regex(" {2,}"), " ")])
    for one in (
        backend(bert, split),
        backend(None, pre_tokenizers.WhitespaceSplit()),
        backend(normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]), split),
        backend(normalizers.Sequence([bert, normalizers.Strip()]), split),
        backend(bert, split, AddedToken("word", lstrip=True), AddedToken("   ")),
        backend(None, nested),
    ):
        found = boundary(one)
        assert found
        assert [match.start() for match in found.finditer("the cat\tsat \u00a0 on")] == [3, 7]
    assert boundary(backend(bert, pre_tokenizers.Metaspace())) is AT_SPACES
    assert boundary(backend(spaces, pre_tokenizers.Metaspace(prepend_scheme="first"))) is AT_SPACES


@pytest.mark.parametrize("letter", ["!", "中", "。", "ab.", "x中", "-", "ab, "])
def test_one_long_line_without_spaces_is_given_in_pieces(letter: str, made: Made) -> None:
    words = bertcli.load(made()).tokenizer
    with patch.object(tokenizer, "LONG", 0), patch.object(long, "PIECE", 20):
        pieces = list(long._pieces(letter * 300, words._between))  # type: ignore[arg-type]
    assert len(pieces) >= 300 * len(letter) // 24
    assert max(piece.end - piece.start for piece in pieces) <= 25


def test_pieces_do_not_part_an_added_token() -> None:
    bert, split = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    found = boundary(backend(bert, split, AddedToken("<a|b>"), AddedToken("!")))
    assert found
    assert [match.start() for match in found.finditer("x!x <a|b>x(y")] == [2, 9, 11]
    for one in (
        backend(bert, split, AddedToken("c++", single_word=True)),
        backend(normalizers.Sequence([normalizers.Replace("``", '"'), bert]), split),
    ):
        assert boundary(one) is AT_WHITE_SPACE


def test_which_may_not() -> None:
    bert, split = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    for one in (
        backend(bert, None),
        backend(bert, pre_tokenizers.Metaspace(split=False)),
        backend(bert, pre_tokenizers.ByteLevel(use_regex=False)),
        backend(bert, pre_tokenizers.Punctuation()),
        backend(bert, pre_tokenizers.Sequence([split, pre_tokenizers.Split(" ", "removed")])),
        backend(normalizers.Replace(" ", ""), split),
        backend(normalizers.Replace(Regex("a b"), ""), split),
        backend(bert, split, AddedToken("New York")),
        backend(bert, split, AddedToken("word", rstrip=True)),
    ):
        assert boundary(one) is None


def test_such_a_tokenizer_reads_long_texts_too(folder: Path) -> None:
    words = from_json(
        folder, lambda data: data.update(normalizer={"type": "Replace", "pattern": {"String": " "}, "content": ""})
    )
    with patch.object(tokenizer, "LONG", 0), patch.object(long, "PIECE", 1):
        (tokens,) = words.encode(["un a"])
    assert tokens.pieces == ["[CLS]", *words.encode(["una"])[0].pieces[1:-1], "[SEP]"]
