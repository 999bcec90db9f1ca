"""What a tokenizer makes of a text: its tokens, framed by special tokens, after truncation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from bertcli.tokens.long import Side

NO_OFFSETS = (0, 0)  # for a token that stands for no text


class Slot(NamedTuple):
    """One place in the frame that a tokenizer puts around texts: a special token, or (side 0 or 1) a text."""

    side: int | None
    id: int
    segment: int


class Framing(NamedTuple):
    """The frame, the library's result for each text in it, and which of these tokens were kept."""

    frame: tuple[Slot, ...]
    sides: tuple[Side, ...]
    kept: tuple[slice, ...]


class Source(NamedTuple):
    """What tokens were made from: a text, its pair, and the number of tokens at which they were cut."""

    text: str
    pair: str | None
    max_length: int | None


class Maker(Protocol):
    """What Tokens need from the tokenizer that made them."""

    def piece(self, id: int) -> str: ...

    def framing(self, source: Source) -> Framing: ...


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A tokenized text or pair after truncation; `lost` tokens did not fit, `lost_masks` of them were masks.

    They pickle as their numbers and their text; `known_to(tokenizer)` restores all their properties.
    """

    ids: list[int]
    segments: list[int]
    lost: int
    lost_masks: int
    _source: Source
    _tokenizer: Maker | None = None
    _framing: Framing | None = None

    def known_to(self, tokenizer: Maker) -> Tokens:
        """The same tokens, linked to a tokenizer that would produce them again."""
        return replace(self, _tokenizer=tokenizer)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokens, (self.ids, self.segments, self.lost, self.lost_masks, self._source)

    @property
    def truncated(self) -> bool:
        return self.lost > 0

    @property
    def pieces(self) -> list[str]:
        """The word pieces, special tokens included."""
        assert self._tokenizer is not None
        return [self._tokenizer.piece(id) for id in self.ids]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """Start and end of each token in its own text, in characters, end exclusive; (0, 0) for special tokens."""
        result: list[tuple[int, int]] = []
        frame, sides, kept = self._framed()
        for slot in frame:
            result += [NO_OFFSETS] if slot.side is None else sides[slot.side].offsets[kept[slot.side]]
        return result

    @property
    def sides(self) -> list[int | None]:
        """0 for tokens of the text, 1 for those of its pair, None for the special tokens put around them."""
        frame, sides, kept = self._framed()
        counts = [len(side.ids[where]) for side, where in zip(sides, kept, strict=True)]
        return [slot.side for slot in frame for _ in range(1 if slot.side is None else counts[slot.side])]

    def _framed(self) -> Framing:
        if self._framing is not None:
            return self._framing
        assert self._tokenizer is not None
        return self._tokenizer.framing(self._source)


def fitting(lengths: list[int], room: int) -> list[int]:
    """How many tokens of one text, or of each of a pair, fit into `room` tokens: the longer side is cut first.

    The rule of the tokenizers library ("longest first"): the shorter side stays whole if it takes at most half.
    """
    if len(lengths) == 1 or sum(lengths) <= room:
        return [min(length, room) for length in lengths] if len(lengths) == 1 else lengths
    short, long = sorted(lengths)
    if short <= room - short:
        long = room - short
    else:
        short, long = room // 2, room - room // 2
    return [short, long] if lengths[0] <= lengths[1] else [long, short]
