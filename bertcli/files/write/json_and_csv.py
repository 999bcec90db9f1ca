"""Write records as one JSON array, and rows as separated values (.csv, .tsv); formats.py calls these functions."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import IO, Any


def write_array(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Write records as one JSON array, a record on each line."""
    between = b"[\n"
    for line in lines:
        stream.write(between + line.removesuffix(b"\n"))
        between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")


def write_separated(stream: IO[bytes], rows: Iterable[bytes], columns: Sequence[str], delimiter: str) -> None:
    """Write rows, each a line of JSON, below a header.

    Cells are written unchanged, so a spreadsheet takes one that begins with = for a formula.
    """
    stream.write(_row(columns, delimiter))
    for row in map(json.loads, rows):
        stream.write(_row([row[name] for name in columns], delimiter))


def _row(cells: Sequence[Any], delimiter: str) -> bytes:
    text = io.StringIO()
    # With the default end \r\n the csv module also quotes a cell with a lone \r, which other readers take for an end.
    csv.writer(text, delimiter=delimiter).writerow(cells)
    return text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"
