"""Which fields of a row are read, and what they may hold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bertcli.inputs.texts import Text, is_unicode
from bertcli.untrusted import shown

DEFAULT_COLUMN = "text"


@dataclass(frozen=True)
class Wanted:
    """The names of the fields that hold the text, its pair, id and label; `fixed_pair` is a pair for every text."""

    column: str | None = None
    pair_column: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    fixed_pair: str | None = None

    @cached_property
    def names(self) -> list[str]:
        """The fields to look up, the text's first."""
        column = DEFAULT_COLUMN if self.column is None else self.column
        names = (column, self.pair_column, self.id_column, self.label_column)
        return [name for name in names if name is not None]

    def option(self, name: str) -> str:
        """The command-line option that gives this field's name."""
        named = {
            self.pair_column: "--pair-column", self.id_column: "--id-column", self.label_column: "--label-column",
            self.names[0]: "--column",
        }  # fmt: skip
        return named[name]

    def kinds(self, name: str) -> str:
        """What the field of this name may hold; labels and ids may be numbers, unless the field is also a text."""
        if name in (self.names[0], self.pair_column):
            return "a text"
        return "a text or whole number" if name == self.id_column else "a text or number"

    def _may_hold(self, name: str, value: Any) -> bool:
        return is_text(value) or ("number" in self.kinds(name) and is_number(value, whole=name == self.id_column))

    def unusable(self, place: str, why: str, row: Mapping[str, Any]) -> Text:
        """A row that cannot be used, with its id if it has one."""
        id = None if self.id_column is None else row.get(self.id_column)
        known = id is not None and self._may_hold(str(self.id_column), id)
        return unusable(place, why)._replace(id=id if known else None)

    def text(self, place: str, values: Sequence[Any]) -> Text:
        """A row from the values of its `names`; a Text with an error for a value that cannot be used."""
        for name, value in zip(self.names, values, strict=True):
            if not self._may_hold(name, value):
                why = f"the field {shown(name)} is {shown(value)}, which is not {self.kinds(name)}."
                return self.unusable(place, why, dict(zip(self.names, values, strict=True)))
        rest = iter(values[1:])
        pair = next(rest) if self.pair_column is not None else self.fixed_pair
        id = next(rest) if self.id_column is not None else None
        label = next(rest) if self.label_column is not None else None
        return Text(values[0], pair, place, id, label if label is None or is_text(label) else json.dumps(label))


def is_text(value: object) -> bool:
    """Whether a value is a string without half surrogate pairs."""
    return isinstance(value, str) and is_unicode(value)


def is_number(value: object, whole: bool) -> bool:
    """Whether a value is a whole number; unless `whole`, also any finite number, true or false, as labels may be."""
    if whole:
        return type(value) is int
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def unusable(place: str, why: str) -> Text:
    """A row that cannot be used."""
    return Text("", place=place, error=f"{place}: {why}")
