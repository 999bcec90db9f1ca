"""Which fields of a row are wanted, and what they may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.inputs.texts import Text, is_unicode
from bertcli.untrusted import shown

DEFAULT_COLUMN = "text"


@dataclass(frozen=True)
class Wanted:
    """The names of the fields that hold the text, its pair and its id; `fixed_pair` goes with every text."""

    column: str | None = None
    pair_column: str | None = None
    id_column: str | None = None
    fixed_pair: str | None = None

    @property
    def names(self) -> list[str]:
        """The fields to look up: the text's first."""
        names = (self.column or DEFAULT_COLUMN, self.pair_column, self.id_column)
        return [name for name in names if name is not None]

    def text(self, place: str, values: Sequence[Any]) -> Text:
        """A row from the values of its `names`; a Text with an error for a value that cannot be used."""
        rest = iter(values[1:])
        pair = next(rest) if self.pair_column is not None else self.fixed_pair
        id = next(rest) if self.id_column is not None else None
        for name, value in zip(self.names, values, strict=True):
            if not is_text(value) and not (name == self.id_column and type(value) is int):
                what = "a text or whole number" if name == self.id_column else "a text"
                return unusable(place, f"the field {shown(name)} is {shown(value)}, which is not {what}.")
        return Text(values[0], pair, place, id)


def is_text(value: object) -> bool:
    """Whether a value is a string of whole characters."""
    return isinstance(value, str) and is_unicode(value)


def unusable(place: str, why: str) -> Text:
    """A row that cannot be used."""
    return Text("", None, place, None, f"{place}: {why}")
