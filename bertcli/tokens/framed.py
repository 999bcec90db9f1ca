"""What a tokenizer makes of a text: its tokens in the frame of special tokens, after truncation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tokenizers import Encoding

NO_OFFSETS = (0, 0)  # what a token that stands for no text has


class Slot(NamedTuple):
    """One place of the frame a tokenizer puts around texts: a special token, or (side 0 or 1) a text."""

    side: int | None
    id: int
    segment: int


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """A tokenized text or pair after truncation; `lost` tokens did not fit, `lost_masks` of them were masks."""

    ids: list[int]
    segments: list[int]
    lost: int
    lost_masks: int
    _frame: tuple[Slot, ...]
    _sides: tuple[Encoding, ...]
    _kept: tuple[slice, ...]
    _name: Callable[[int], str]

    @property
    def truncated(self) -> bool:
        return self.lost > 0

    @property
    def pieces(self) -> list[str]:
        """The word pieces, special tokens included."""
        return [self._name(id) for id in self.ids]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """First character and the one after the last in the token's own text; (0, 0) for special tokens."""
        result: list[tuple[int, int]] = []
        for slot in self._frame:
            result += [NO_OFFSETS] if slot.side is None else self._sides[slot.side].offsets[self._kept[slot.side]]
        return result

    @property
    def sides(self) -> list[int | None]:
        """0 for tokens of the text, 1 for those of its pair, None for the special tokens put around them."""
        kept = (len(side.ids[where]) for side, where in zip(self._sides, self._kept, strict=True))
        counts = dict(enumerate(kept))
        return [slot.side for slot in self._frame for _ in range(1 if slot.side is None else counts[slot.side])]
