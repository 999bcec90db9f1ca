"""Records as JSON lines, one JSON array or a table: on standard output, or in a file."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from bertcli.files.formats import RECORDS, check_output, ending_of, loaded
from bertcli.files.shards import LINES, Shards
from bertcli.files.table import Table
from bertcli.report.documents import as_json

Record = Mapping[str, Any]
IN_MEMORY = 1 << 24  # bytes of a JSON array kept in memory before a temporary file takes over


def write_lines(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Records as JSON lines."""
    stream.writelines(lines)


def write_array(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Records as one JSON array, one a line."""
    between = b"[\n"
    for line in lines:
        stream.write(between + line.removesuffix(b"\n"))
        between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")


def write_csv(stream: IO[bytes], shards: Shards, names: Sequence[str], numbers: Mapping[str, object]) -> None:
    """Rows separated by commas, below a header; `numbers` say nothing here."""
    stream.write(_csv_row(names))
    stream.writelines(_csv_row(row[name] for name in names) for row in map(json.loads, shards.lines()))


def _csv_row(cells: Iterable[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)  # ended by \r\n: only then a lone \r, which ends rows, too, is quoted
    return text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"


class RecordForm:
    """How records stand in a .json or .jsonl file."""

    def __init__(self, file: str) -> None:
        self._write = loaded(ending_of(file), "records")

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """What a shard holds of records."""
        return {LINES: b"".join(as_json(record) + b"\n" for record in records)}

    def write(self, stream: IO[bytes], shards: Shards) -> None:
        """Write the whole file."""
        self._write(stream, shards.lines())


class TableForm:
    """How records stand in a .csv or .parquet file: the rows of their table, its numbers in full.

    `keys` of a record stand in each of its rows, too, "id" as the second column and others as the last.
    """

    def __init__(self, file: str, table: Table, keys: Sequence[str]) -> None:
        self._write = loaded(ending_of(file), "rows")
        self._table = table
        self._keys = keys

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """What a shard holds of records: their rows as JSON lines."""
        return {LINES: b"".join(json.dumps(row).encode() + b"\n" for record in records for row in self._rows(record))}

    def _rows(self, record: Record) -> Iterator[dict[str, Any]]:
        more = {key: record.get(key) for key in self._keys}
        for cells in self._table.cells(record):
            yield dict(zip(self._table.keys, cells[:-1], strict=True)) | more

    def write(self, stream: IO[bytes], shards: Shards) -> None:
        """Write the whole file."""
        table, (first, *others) = self._table, self._table.keys
        names = [first, *(["id"] if "id" in self._keys else []), *others, *(key for key in self._keys if key != "id")]
        numbers = {key: column.number for key, column in zip(table.keys, table.columns, strict=True)}
        self._write(stream, shards, names, numbers)


@contextmanager
def record_output(format: str, file: str | None, table: Table) -> Iterator[Callable[[Record], object]]:
    """`with record_output(…) as write:` — call `write(record)` for each; complete once the block succeeds.

    The ending of `file` decides the format; without one, `format` ("table", "json", "jsonl") goes to standard output.
    After an error nothing has been printed and no file is left, except for the lines of a "jsonl" stream.
    """
    if file is not None:
        check_output(file, RECORDS)
        form = RecordForm(file)
        with Shards(file) as shards:
            yield lambda record: shards.add(form.arrays([record]), {})
            with shards.result() as stream:
                form.write(stream, shards)
    elif format == "jsonl":
        yield _at_once
    elif format == "json":
        from tempfile import SpooledTemporaryFile

        with SpooledTemporaryFile(IN_MEMORY) as spool:
            yield lambda record: spool.write(as_json(record) + b"\n")
            spool.seek(0)
            write_array(sys.stdout.buffer, spool)
    else:
        yield table.add
        table.print()


def _at_once(record: Record) -> None:
    """Print a record as a line that a reader at the end of the pipe has now, not when a buffer is full."""
    sys.stdout.buffer.write(as_json(record) + b"\n")
    sys.stdout.buffer.flush()
