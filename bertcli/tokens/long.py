"""Texts of any length: the tokenizers library needs 300 bytes per character of a text passed to it as a whole.

A text is passed in pieces that begin where the tokenizer's own pre-tokenizer parts words. Most tokenizers treat a word
the same whatever the words around it, but some change the beginning of a text (they put a space in front of it, or take
one away): each piece is therefore passed with the letter before it, whose token is dropped.

Unigram tokenizers part words at spaces only, byte-level ones not within a row of letters. Of a text without such places
they need the whole, since pieces chosen for it part by part may be others: 300 to 450 bytes and 2 to 10 microseconds a
character, and Ctrl-C is answered when the library has done with it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from tokenizers import Encoding
from tokenizers import Tokenizer as Backend

from bertcli.tokens.refused import steps

LONG = 1 << 19  # characters above which a text is passed to the library in pieces
PIECE = 1 << 16  # minimum characters of a piece
TOGETHER = 8  # pieces passed at a time, which share the cores

LETTER_BY_LETTER = {"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Strip"}
LOCAL_NORMALIZERS = {*LETTER_BY_LETTER, "Precompiled"}
SPLIT_AT_WHITE_SPACE = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit", "ByteLevel"}
LOCAL_PRE_TOKENIZERS = {*SPLIT_AT_WHITE_SPACE, "Metaspace", "Punctuation", "Digits"}

AT_WHITE_SPACE = re.compile(r"(?<=\w)[ \t\n\r](?=\w)")
SPACED = "\u037a\ufc5e-\ufc63\ufdfa\ufdfb\ufe70-\ufe7e"  # letters for which normalizers put a space and others
AT_SPACES = re.compile(rf"(?<=[^\W{SPACED}]) (?=[^\W{SPACED}])")

# Some of the characters of each kind: those that every version of Unicode has had, and that no normalizer joins.
PUNCTUATION = (*range(0x21, 0x30), *range(0x3A, 0x41), *range(0x5B, 0x61), *range(0x7B, 0x7F), *range(0x2010, 0x2028),
               *range(0x3001, 0x3004), *range(0x3008, 0x3012), 0xFF01, 0xFF0C, 0xFF1A, 0xFF1B, 0xFF1F)  # fmt: skip
CHINESE = "\u3400-\u4dbf\u4e00-\u9fff"
LETTERS = f"A-Za-z\u3042-\u3093\u30a2-\u30f3{CHINESE}"


class Piece(NamedTuple):
    """text[start:end], of which the first `context` letters belong to the piece before."""

    start: int
    end: int
    context: int


class Joined:
    """A text's tokens, joined from those of its pieces: 24 bytes per token.

    The library makes the parts of its own result anew whenever it is asked; here they are at hand.
    """

    def __init__(self, pieces: Iterable[tuple[Piece, Encoding]]) -> None:
        self.ids, self.word_ids, self.offsets = array("I"), array("I"), Spans()
        for piece, found in pieces:
            offsets, words = found.offsets, [word or 0 for word in found.word_ids]  # never None: no special tokens
            beyond = (i for i, (_, end) in enumerate(offsets) if end > piece.context)
            first = next(beyond, len(offsets)) if piece.context else 0  # a text's first token may stand for no letter
            if first < len(offsets):
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


Side = Encoding | Joined  # the tokens of one text, without special tokens


def boundary(backend: Backend) -> re.Pattern[str] | None:
    """Where texts may be split for a tokenizer; None if what it makes of a word may depend on those around it."""
    normalizer, splits = steps(backend.normalizer), steps(backend.pre_tokenizer)
    kinds = {step["type"] for step in splits}
    if not all(map(_is_local, normalizer)) or not kinds <= LOCAL_PRE_TOKENIZERS:
        return None
    if any(step.get("use_regex") is False or step.get("split") is False for step in splits):  # ByteLevel, Metaspace
        return None
    added = backend.get_added_tokens_decoder().values()
    if any(token.rstrip or re.search(r"\w\s", token.content) for token in added):
        return None
    if {step["type"] for step in normalizer} <= LETTER_BY_LETTER and not any(token.single_word for token in added):
        found = _between_words(kinds, normalizer, [token.content for token in added])
        if found is not None and not any(found.search(token.content) for token in added):
            return found
    if kinds & SPLIT_AT_WHITE_SPACE:
        return AT_WHITE_SPACE
    return AT_SPACES if "Metaspace" in kinds else None


def _between_words(kinds: set[str], normalizer: list[dict[str, Any]], added: list[str]) -> re.Pattern[str] | None:
    """Where a tokenizer parts words also without white space; None for those that do not.

    BERT's pre-tokenizer does after a character that is a word by itself, a byte-level one between letters, digits and
    other characters, but not after the apostrophe of "'s". Not within an added token such as [MASK].
    """
    of_bert = kinds == {"BertPreTokenizer"}
    inside = {letter for content in added for letter in (content[:-1] if of_bert else content)}
    others = "".join(re.escape(chr(code)) for code in PUNCTUATION if chr(code) not in inside)
    if of_bert:
        if any(step.get("handle_chinese_chars") for step in normalizer):
            others += CHINESE
        return re.compile(rf"(?<=[\w{others}])[ \t\n\r](?=\w)|(?<=[{others}])(?=[\w{others}])")
    if kinds == {"ByteLevel"}:
        pairs = [
            (LETTERS, "0-9"),
            ("0-9", LETTERS),
            (f"{LETTERS}0-9", others),
            (others.replace("'", ""), f"{LETTERS}0-9"),
        ]
        return re.compile("|".join([AT_WHITE_SPACE.pattern, *(rf"(?<=[{one}])(?=[{two}])" for one, two in pairs)]))
    return None


def _is_local(step: dict[str, Any]) -> bool:
    """Whether a normalizer changes a word the same wherever it is."""
    if step["type"] != "Replace":
        return step["type"] in LOCAL_NORMALIZERS
    pattern = step["pattern"]
    if pattern == {"Regex": " {2,}"}:  # no space beside which texts are split
        return True
    return "String" in pattern and not re.search(r"\s", pattern["String"] + step["content"])


def encode_long(backend: Backend, text: str, between: re.Pattern[str]) -> Joined:
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
