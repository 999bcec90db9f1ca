"""Very long texts are tokenized in pieces, and nobody can tell."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from conftest import Made
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tokens import SMALL, from_json, from_vocabulary
from tokenizers import AddedToken, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordPiece

import bertcli
from bertcli.tokens import Tokens, long, tokenizer
from bertcli.tokens.long import splits_at_spaces

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
]
SPACES = [" ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2028", "\x1c", "\x00", ""]


def numbers(tokens: Tokens) -> tuple[object, ...]:
    return tokens.ids, tokens.segments, tokens.lost, tokens.lost_masks, tokens.offsets, tokens.sides


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
    assert splits_at_spaces(backend(bert, split))
    assert splits_at_spaces(backend(None, pre_tokenizers.WhitespaceSplit()))
    assert splits_at_spaces(backend(normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]), split))
    assert splits_at_spaces(backend(bert, split, AddedToken("word", lstrip=True)))


def test_which_may_not() -> None:
    bert, split = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    assert not splits_at_spaces(backend(bert, None))
    assert not splits_at_spaces(backend(bert, pre_tokenizers.Metaspace()))
    assert not splits_at_spaces(backend(normalizers.Replace(" ", ""), split))
    assert not splits_at_spaces(backend(normalizers.Sequence([bert, normalizers.Strip()]), split))
    assert not splits_at_spaces(backend(bert, split, AddedToken("New York")))
    assert not splits_at_spaces(backend(bert, split, AddedToken("word", rstrip=True)))


def test_such_a_tokenizer_reads_long_texts_too(folder: Path) -> None:
    words = from_json(
        folder, lambda data: data.update(normalizer={"type": "Replace", "pattern": {"String": " "}, "content": ""})
    )
    with patch.object(tokenizer, "LONG", 0), patch.object(long, "PIECE", 1):
        (tokens,) = words.encode(["un a"])
    assert tokens.pieces == ["[CLS]", *words.encode(["una"])[0].pieces[1:-1], "[SEP]"]
