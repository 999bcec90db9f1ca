"""Texts of any length: the tokenizers library needs 300 bytes per character of a text passed to it as a whole.

A text is passed in pieces that begin with the space between two words. Most tokenizers treat a word the same
whatever the words around it, but some change the beginning of a text (they put a space in front of it, or take one
away): each piece is therefore passed with the letter before it, whose token is dropped.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

LONG = 1 << 19  # characters above which a text is passed to the library in pieces
PIECE = 1 << 16  # minimum characters of a piece
TOGETHER = 8  # pieces passed at a time, which share the cores

LOCAL_NORMALIZERS = {
    "BertNormalizer",
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "StripAccents",
    "Strip",
    "Precompiled",
}
LETTER_BY_LETTER = LOCAL_NORMALIZERS - {"Precompiled"}
SPLIT_AT_WHITE_SPACE = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit", "ByteLevel"}
LOCAL_PRE_TOKENIZERS = {*SPLIT_AT_WHITE_SPACE, "Metaspace", "Punctuation", "Digits"}

AT_WHITE_SPACE = re.compile(r"(?<=\w)[ \t\n\r](?=\w)")
AT_SPACES = re.compile(r"(?<=\w) (?=\w)")

# Some of the characters that are words by themselves, for BERT's pre-tokenizer and for its normalizer.
PUNCTUATION = (*range(0x21, 0x30), *range(0x3A, 0x41), *range(0x5B, 0x61), *range(0x7B, 0x7F), *range(0x2010, 0x2028),
               *range(0x3001, 0x3004), *range(0x3008, 0x3012), 0xFF01, 0xFF0C, 0xFF1A, 0xFF1B, 0xFF1F)  # fmt: skip
CHINESE = "\u3400-\u4dbf\u4e00-\u9fff"


class Offsets(Protocol):
    """Start and end of each token, in characters, end exclusive."""

    def __getitem__(self, some: slice, /) -> Sequence[tuple[int, int]]: ...


class Side(Protocol):
    """The library's result for one text, without special tokens."""

    @property
    def ids(self) -> Sequence[int]: ...

    @property
    def offsets(self) -> Offsets: ...

    @property
    def word_ids(self) -> Sequence[int | None]: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Listed:
    """The library's result with its parts at hand: it makes each of them anew whenever it is asked."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    word_ids: list[int | None]

    @classmethod
    def of(cls, side: Side) -> Side:
        return cls(side.ids, side.offsets, side.word_ids) if isinstance(side, Encoding) else side

    def __len__(self) -> int:
        return len(self.ids)


class Piece(NamedTuple):
    """text[start:end], of which the first `context` letters belong to the piece before."""

    start: int
    end: int
    context: int


class Joined:
    """A text's tokens, joined from those of its pieces: 24 bytes per token."""

    def __init__(self, pieces: Iterator[tuple[Piece, Encoding]]) -> None:
        self.ids, self.word_ids, self.offsets = array("i"), array("i"), Spans()
        for piece, found in pieces:
            self._extend(piece, found)

    def _extend(self, piece: Piece, found: Encoding) -> None:
        offsets, words = found.offsets, [word or 0 for word in found.word_ids]  # never None without special tokens
        first = next((i for i, (start, _) in enumerate(offsets) if start >= piece.context), len(offsets))
        if first == len(offsets):
            return
        shift = (self.word_ids[-1] + 1 if self.word_ids else 0) - words[first]
        self.ids.extend(found.ids[first:])
        self.word_ids.extend(shift + word for word in words[first:])
        self.offsets.extend(piece.start, offsets[first:])

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


def boundary(backend: Backend) -> re.Pattern[str] | None:
    """Where texts may be split for a tokenizer; None if what it makes of a word may depend on those around it."""
    steps = _steps(backend.pre_tokenizer, "pretokenizers")
    kinds = {step["type"] for step in steps}
    if not all(map(_is_local, _steps(backend.normalizer, "normalizers"))) or not kinds <= LOCAL_PRE_TOKENIZERS:
        return None
    if any(step.get("use_regex") is False or step.get("split") is False for step in steps):  # ByteLevel, Metaspace
        return None
    added = backend.get_added_tokens_decoder().values()
    if any(token.rstrip or re.search(r"\w\s", token.content) for token in added):
        return None
    normalizer = _steps(backend.normalizer, "normalizers")
    of_letters = {step["type"] for step in normalizer} <= LETTER_BY_LETTER
    if kinds == {"BertPreTokenizer"} and of_letters and not any(token.single_word for token in added):
        return _between_bert_words(normalizer, {token.content for token in added})
    if kinds & SPLIT_AT_WHITE_SPACE:
        return AT_WHITE_SPACE
    return AT_SPACES if "Metaspace" in kinds else None


def _between_bert_words(normalizer: list[dict[str, Any]], added: set[str]) -> re.Pattern[str]:
    """Where BERT's pre-tokenizer splits: at white space before a word, and after a character that is a word by itself.

    But not after one that an added token goes on after, such as the [ of [MASK].
    """
    inside = {letter for content in added for letter in content[:-1]}
    alone = "".join(re.escape(chr(code)) for code in PUNCTUATION if chr(code) not in inside)
    if any(step.get("handle_chinese_chars") for step in normalizer):
        alone += CHINESE
    return re.compile(rf"(?<=[\w{alone}])[ \t\n\r](?=\w)|(?<=[{alone}])(?=[\w{alone}])")


def _steps(part: Any, inner: str) -> list[dict[str, Any]]:
    """The steps of a normalizer or a pre-tokenizer, as in tokenizer.json."""

    def flat(step: dict[str, Any]) -> list[dict[str, Any]]:
        return [one for part in step[inner] for one in flat(part)] if step["type"] == "Sequence" else [step]

    return [] if part is None else flat(json.loads(part.__getstate__()))


def _is_local(step: dict[str, Any]) -> bool:
    """Whether a normalizer changes a word the same wherever it is."""
    if step["type"] != "Replace":
        return step["type"] in LOCAL_NORMALIZERS
    pattern = step["pattern"]
    if pattern == {"Regex": " {2,}"}:  # no space beside which texts are split
        return True
    return "String" in pattern and not re.search(r"\s", pattern["String"] + step["content"])


def encode_long(backend: Backend, text: str, between: re.Pattern[str]) -> Side:
    """The library's result for a text, computed piece by piece, for a tokenizer with that `boundary`."""
    return Joined(_encoded(backend, text, between))


def _encoded(backend: Backend, text: str, between: re.Pattern[str]) -> Iterator[tuple[Piece, Encoding]]:
    pieces = _pieces(text, between)
    while some := list(islice(pieces, TOGETHER)):
        found = backend.encode_batch([text[piece.start : piece.end] for piece in some], add_special_tokens=False)
        yield from zip(some, found, strict=True)


def _pieces(text: str, between: re.Pattern[str]) -> Iterator[Piece]:
    start = 0
    while start < len(text):
        space = between.search(text, start + PIECE)
        end = len(text) if space is None else space.start()
        context = min(start, 1)
        yield Piece(start - context, end, context)
        start = end
