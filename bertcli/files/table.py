"""A table of records under construction: columns, and rows made from each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bertcli.report import Column, print_table

Cell = str | int | float | bool | None


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
        """The columns that are not omitted, and the rows under them."""
        cells = [{row[i] for row in self.rows} for i in range(len(self.columns))]
        kept = [
            i
            for i, column in enumerate(self.columns)
            if not (column.varying and len(cells[i]) < 2) and not (column.optional and cells[i] <= {""})
        ]
        return [self.columns[i] for i in kept], [[row[i] for i in kept] for row in self.rows]

    def print(self) -> None:
        """Print the table to standard output."""
        print_table(*self.shown())


def cell(value: Cell) -> str:
    """A value as a cell shows it: floats with four decimals, or in scientific notation if very small or large."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or 0.001 <= abs(value) < 1e6 else f"{value:.3e}"
    return str(value)
