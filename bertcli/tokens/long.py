"""Texts of any length: the tokenizers library needs 300 bytes per character of a text passed to it as a whole."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

LONG = 1 << 19  # characters above which a text is passed to the library in pieces
PIECE = 1 << 16  # minimum characters of a piece
TOGETHER = 8  # pieces passed at a time, which share the cores

LOCAL_NORMALIZERS = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents"}
LOCAL_PRE_TOKENIZERS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}

_BETWEEN_WORDS = re.compile(r"(?<=\w)[ \t\n\r](?=\w)")


class Offsets(Protocol):
    """Start and end of each token, in characters, end exclusive."""

    def __getitem__(self, some: slice, /) -> Sequence[tuple[int, int]]: ...


class Side(Protocol):
    """The library's result for one text, without special tokens."""

    @property
    def ids(self) -> Sequence[int]: ...

    @property
    def offsets(self) -> Offsets: ...

    def __len__(self) -> int: ...


class Joined:
    """A text's tokens, joined from those of its pieces: 20 bytes per token."""

    def __init__(self, pieces: Iterator[tuple[int, Encoding]]) -> None:
        """pieces: each with the position of its first character in the text."""
        self.ids, self.offsets = array("i"), Spans()
        for first, piece in pieces:
            self.ids.extend(piece.ids)
            self.offsets.extend(first, piece.offsets)

    def __len__(self) -> int:
        return len(self.ids)


class Spans:
    """A compact sequence of (start, end) pairs."""

    def __init__(self) -> None:
        self._starts, self._ends = array("q"), array("q")

    def extend(self, first: int, spans: Sequence[tuple[int, int]]) -> None:
        """Append spans that are relative to `first`."""
        self._starts.extend(first + start for start, _ in spans)
        self._ends.extend(first + end for _, end in spans)

    def __getitem__(self, some: slice, /) -> list[tuple[int, int]]:
        return list(zip(self._starts[some], self._ends[some], strict=True))


def splits_at_spaces(backend: Backend) -> bool:
    """True if a tokenizer treats a word the same whatever surrounds it, so that texts can be split at spaces."""
    normalizer = {} if backend.normalizer is None else json.loads(backend.normalizer.__getstate__())
    steps = normalizer.get("normalizers", [normalizer] if normalizer else [])
    if backend.pre_tokenizer is None or not {step["type"] for step in steps} <= LOCAL_NORMALIZERS:
        return False
    added = backend.get_added_tokens_decoder().values()
    if any(token.rstrip or re.search(r"\s", token.content) for token in added):
        return False
    return json.loads(backend.pre_tokenizer.__getstate__())["type"] in LOCAL_PRE_TOKENIZERS


def encode_long(backend: Backend, text: str) -> Side:
    """The library's result for a text, computed piece by piece, for a tokenizer that `splits_at_spaces`."""
    return Joined(_encoded(backend, text))


def _encoded(backend: Backend, text: str) -> Iterator[tuple[int, Encoding]]:
    spans = _spans(text)
    while some := list(islice(spans, TOGETHER)):
        found = backend.encode_batch([text[start:end] for start, end in some], add_special_tokens=False)
        yield from zip((start for start, _ in some), found, strict=True)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Starts and ends of the pieces; each except the first begins with the space before a word."""
    start = 0
    while start < len(text):
        space = _BETWEEN_WORDS.search(text, start + PIECE)
        end = len(text) if space is None else space.start()
        yield start, end
        start = end
