"""A table in the making: columns, and rows made from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Column:
    """A column's heading; `number`: right-aligned, never broken.

    It is left out (`varying`) where all its cells agree, or (`optional`) where all are empty.
    """

    name: str
    number: bool = False
    varying: bool = False
    optional: bool = False


@dataclass(frozen=True)
class Table:
    """Columns, the rows so far, and `rows_of`, which makes rows of a record."""

    columns: tuple[Column, ...]
    rows_of: Callable[[Mapping[str, Any]], Iterable[tuple[Cell, ...]]]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, record: Mapping[str, Any]) -> None:
        """Append the rows of a record."""
        self.rows.extend(tuple(map(cell, row)) for row in self.rows_of(record))

    def shown(self) -> tuple[list[Column], list[list[str]]]:
        """The columns that say something, and the rows under them."""
        cells = [{row[i] for row in self.rows} for i in range(len(self.columns))]
        kept = [
            i
            for i, column in enumerate(self.columns)
            if not (column.varying and len(cells[i]) < 2) and not (column.optional and cells[i] <= {""})
        ]
        return [self.columns[i] for i in kept], [[row[i] for i in kept] for row in self.rows]


def cell(value: Cell) -> str:
    """A value as a cell shows it: numbers with four places, or in powers of ten where that would say nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or 0.001 <= abs(value) < 1e6 else f"{value:.3e}"
    return str(value)
