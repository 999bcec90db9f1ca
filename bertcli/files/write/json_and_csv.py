"""Write records as one JSON array, and rows as separated values (.csv, .tsv); formats.py calls these functions."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any


def write_array(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Write records as one JSON array, a record on each line."""
    between = b"[\n"
    for line in lines:
        stream.write(between + line.removesuffix(b"\n"))
        between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")


def join_arrays(stream: IO[bytes], files: Sequence[str]) -> None:
    """Join JSON arrays in files that `write_array` has written."""
    write_array(stream, _records_in(files))


def _records_in(files: Sequence[str]) -> Iterator[bytes]:
    """Yield the records of such files, a line each; the first and the last line of a file are brackets."""
    for file in files:
        with open(file, "rb") as lines:
            for line in lines:
                if line not in (b"[\n", b"]\n", b"[]\n"):
                    yield line.rstrip(b",\n")


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
