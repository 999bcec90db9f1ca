"""Print records as a table, JSON lines, one JSON array or lines of text; write arrays and separated rows to files."""

import csv
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from bertcli.report.tables import Record, Table
from bertcli.report.terminal import as_json

IN_MEMORY = 1 << 24  # bytes of a JSON array kept in memory before a temporary file takes over


def print_records(records: Iterable[Record], format: str, table: Table) -> None:
    """Print records as "table", "json", "jsonl" or "text".

    After an error nothing has been printed, except for the lines of "jsonl" and "text".
    """
    if format in ("jsonl", "text"):
        line_of = table.line_of if format == "text" else None
        for record in records:
            line = line_of(record).encode("utf-8", "backslashreplace") if line_of else as_json(record)
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()  # so that a reader of the pipe has the line at once
    elif format == "json":
        from tempfile import SpooledTemporaryFile

        with SpooledTemporaryFile(IN_MEMORY) as spool:
            spool.writelines(as_json(record) + b"\n" for record in records)
            spool.seek(0)
            write_array(sys.stdout.buffer, spool)
    else:
        for record in records:
            table.add(record)
        table.print()


def write_array(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Write records as one JSON array, a record on each line."""
    between = b"[\n"
    for line in lines:
        stream.write(between + line.removesuffix(b"\n"))
        between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")


def join_arrays(stream: IO[bytes], files: Sequence[str]) -> None:
    """Join JSON arrays in files that `write_array` has written."""
    write_array(stream, (line.rstrip(b",\n") for line in _lines(files) if line not in (b"[\n", b"]\n", b"[]\n")))


def _lines(files: Sequence[str]) -> Iterator[bytes]:
    for file in files:
        with open(file, "rb") as lines:
            yield from lines


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
