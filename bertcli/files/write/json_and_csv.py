"""Write records as one JSON array, and rows as separated values (.csv, .tsv) or in Markdown; formats.py calls these."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from bertcli.report.documents import markdown_rows
from bertcli.report.tables import cell
from bertcli.report.terminal import Column

if TYPE_CHECKING:
    from bertcli.files.write.resumable_output import ResumableOutput


def write_array(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Write records as one JSON array, a record on each line."""
    between = b"[\n"
    for line in lines:
        stream.write(between + line.removesuffix(b"\n"))
        between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")


def write_lines(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Write a record on every line."""
    stream.writelines(lines)


def write_separated(stream: IO[bytes], segments: "ResumableOutput", columns: Iterable[str], delimiter: str) -> None:
    """Write rows, each a line of JSON, below a header.

    Cells are written unchanged, so a spreadsheet takes one that begins with = for a formula.
    """
    columns = [*columns]
    stream.write(row_of_cells(columns, delimiter))
    for row in map(json.loads, segments.lines()):
        stream.write(row_of_cells([row[name] for name in columns], delimiter))


def write_markdown(stream: IO[bytes], segments: "ResumableOutput", columns: Mapping[str, type]) -> None:
    """Write rows, each a line of JSON, as a table in Markdown, to be read by people: floats are rounded."""
    shown = [Column(name, kind is not str) for name, kind in columns.items()]
    cells = ([cell(row[name]) for name in columns] for row in map(json.loads, segments.lines()))
    for line in markdown_rows(shown, cells):
        stream.write(f"{line}\n".encode("utf-8", "backslashreplace"))


def row_of_cells(cells: Sequence[Any], delimiter: str) -> bytes:
    """A line of separated values."""
    text = io.StringIO()
    # With the default end \r\n the csv module also quotes a cell with a lone \r, which other readers take for an end.
    values = [json.dumps(cell, ensure_ascii=False) if isinstance(cell, list) else cell for cell in cells]
    csv.writer(text, delimiter=delimiter).writerow(values)
    return text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"
