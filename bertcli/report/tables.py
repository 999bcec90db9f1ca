"""Table: collects the records of a task as rows; a task's spec makes one, the command prints or draws it.

How a table looks in a terminal, its folding and its bold heading, is in terminal.py; on a page in page.py.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from bertcli.report.terminal import Column, print_table

Record = Mapping[str, Any]
# A list is a vector: in a file it is written as JSON, and no printed table has any.
Cell = str | int | float | bool | list[float] | None
Row = tuple[Cell, ...]
# The id that a text's row or line has in the input; left out if none has one.
OWN_ID = Column("id", optional=True)


class Rewritten(NamedTuple):
    """A text that takes the place of another, and the labels of the parts that it replaces."""

    text: str
    labels: Sequence[str]


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table of records: its columns, and the rows so far.

    rows_of: makes rows of a record. It is a function, or the name of a list in the record: each of its items is a row,
    whose cells come from the item or else from the record. "" if a record is one row.
    on_page: a table of this class can draw a page. filed: the table whose rows files and CSV have, if they are others.
    line_of: the line that is printed instead of the table, for records that are texts. rewritten: of each record the
    text that takes the place of the one that was read, and why it differs, where files are written again; None for a
    text that could not be used.
    A record with an "error" is one row, with the error in a column of its own.
    """

    columns: tuple[Column, ...]
    rows_of: Callable[[Record], Iterable[Row]] | str
    rows: list[tuple[str, ...]] = field(default_factory=list)
    on_page: ClassVar[bool] = False
    filed: "Table | None" = None
    line_of: Callable[[Record], str] | None = None
    rewritten: "Callable[[Record], Rewritten | None] | None" = None

    def add(self, record: Record) -> None:
        """Append the rows of a record."""
        self.rows.extend(tuple(map(cell, row)) for row in self.cells(record))

    @property
    def keys(self) -> list[str]:
        """The columns' names as a record or a file has them."""
        return [re.sub("[ -]", "_", column.name) for column in self.columns]

    def cells(self, record: Record) -> Iterator[Row]:
        """The values in the rows of a record; the last is the error, if there is one."""
        if "error" in record:
            yield *map(record.get, self.keys), record["error"]
        elif isinstance(self.rows_of, str):
            for part in record[self.rows_of] if self.rows_of else [{}]:
                yield *map({**record, **part}.get, self.keys), None
        else:
            yield from ((*row, None) for row in self.rows_of(record))

    @property
    def in_files(self) -> "Table":
        """The table whose rows a file of rows has (.csv, .parquet, …)."""
        return self.filed or self

    def file_columns(self, own_ids: bool, kept: Sequence[str] = ()) -> dict[str, type]:
        """The columns of a file of rows with the types of their cells; own_ids: texts have ids.

        kept: fields of the input's rows that are kept: "id" is the second column, the others are the last.
        """
        columns: dict[str, type] = {}
        for key, column in zip(self.keys, self.columns, strict=True):
            if own_ids or column is not OWN_ID:
                # What comes from the input is a text, though some may be numbers.
                columns[key] = column.number if isinstance(column.number, type) else str
            if len(columns) == 1 and "id" in kept:
                columns["id"] = str
        return {**columns, **dict.fromkeys(kept, str)}

    def file_rows(self, record: Record, kept: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
        """The rows of a record in a file, by the columns' names, and each one's error."""
        of_input = {name: in_cell(record.get(name)) for name in kept}
        for cells in self.cells(record):
            yield {**of_input, **dict(zip((*self.keys, "error"), cells, strict=True))}

    def displayed(self) -> tuple[list[Column], list[list[str]]]:
        """The columns that are not omitted, and the rows under them."""
        columns = [*self.columns, Column("error", optional=True)]
        kept = []
        for i, column in enumerate(columns):
            cells = {row[i] for row in self.rows}
            if not (column.varying and not self.varies(cells)) and not (column.optional and cells <= {""}):
                kept.append(i)
        return [columns[i] for i in kept], [[row[i] for i in kept] for row in self.rows]

    def varies(self, cells: set[str]) -> bool:
        """True if a column has different cells; a `varying` column with equal ones is left out."""
        return len(cells) > 1

    def print(self) -> None:
        """Print the table to standard output."""
        print_table(*self.displayed())

    def page(self, model: str) -> str:
        """A web page of what a model gave."""
        raise NotImplementedError


def in_cell(value: Any) -> str | int | float | None:
    """A value of a field that is kept, in a cell: as JSON if it is no text or number."""
    is_plain = value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def cell(value: Cell) -> str:
    """A value as a cell shows it: floats with four decimals, or in scientific notation if very small or large."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or 0.001 <= abs(value) < 1e6 else f"{value:.3e}"
    if isinstance(value, list):
        return json.dumps(value)
    # A string stays the object that it is: it may be Markup.
    return value if isinstance(value, str) else str(value)
