"""Records as JSON lines, one JSON array or a table: on standard output, or in a file."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bertcli.files.draft import Draft, check_output
from bertcli.files.part import Part
from bertcli.files.table import Table
from bertcli.report.documents import as_json

Record = Mapping[str, Any]
ENDINGS = (".json", ".jsonl")
IN_MEMORY = 1 << 24  # bytes of a JSON array kept in memory before a temporary file takes over


class RecordWriter:
    """Records on a stream of bytes, one a line: JSON lines, or (array) one JSON array, of which `begun` is there."""

    def __init__(self, stream: IO[bytes] | Part, array: bool, begun: bool = False) -> None:
        self._stream = stream
        self._array = array
        self._begun = begun

    def write(self, record: Record) -> None:
        begin, end = (b",\n" if self._begun else b"[\n", b"") if self._array else (b"", b"\n")
        self._stream.write(begin + as_json(record) + end)
        self._begun = True

    def end(self) -> None:
        """Write what follows the last record."""
        if self._array:
            self._stream.write(b"\n]\n" if self._begun else b"[]\n")


class RecordFile(RecordWriter):
    """Records in a .json or .jsonl file, after those that a resumed draft has; `finish` publishes it."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        part = draft.part()
        super().__init__(part, Path(draft.file).suffix.lower() == ".json", begun=part.size > 0)

    def append(self, records: Iterable[Record]) -> None:
        """Write several records."""
        for record in records:
            self.write(record)

    def finish(self) -> None:
        """Write the end of the file and give it its name."""
        self.end()
        self._draft.publish()


class FlatFile:
    """Records in a .csv or .parquet file: the rows of their table, its numbers in full, after those of a resumed draft.

    `keys` of a record stand in each of its rows, too, "id" as the second column and others as the last.
    """

    def __init__(self, draft: Draft, table: Table, keys: Sequence[str]) -> None:
        self._draft = draft
        self._table = table
        self._keys = keys
        names = [*table.keys, *(key for key in keys if key != "id")]
        names[1:1] = ["id"] * ("id" in keys)
        self._names = names
        self._parquet = None
        if Path(draft.file).suffix.lower() == ".parquet":
            from bertcli.files.parquet import ParquetFile  # brings NumPy

            numbers = {key: column.number for key, column in zip(table.keys, table.columns, strict=True)}
            self._parquet = ParquetFile(draft, names, numbers)
        elif not draft.part().size:
            self._write([names])

    def append(self, records: Iterable[Record]) -> None:
        """Write the rows of several records."""
        rows = [row for record in records for row in self._rows(record)]
        if self._parquet:
            self._parquet.append(rows)
        else:
            self._write([row[name] for name in self._names] for row in rows)

    def finish(self) -> None:
        """Write the end of the file and give it its name."""
        if self._parquet:
            self._parquet.finish()
        else:
            self._draft.publish()

    def _rows(self, record: Record) -> Iterator[dict[str, Any]]:
        more = {key: record.get(key) for key in self._keys}
        for cells in self._table.cells(record):
            yield dict(zip(self._table.keys, cells[:-1], strict=True)) | more

    def _write(self, rows: Iterable[Sequence[Any]]) -> None:
        for row in rows:
            text = io.StringIO()
            csv.writer(text).writerow(row)  # ended by \r\n: only then a lone \r, which ends rows, too, is quoted
            self._draft.part().write(text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n")


@contextmanager
def record_output(format: str, file: str | None, table: Table) -> Iterator[Callable[[Record], None]]:
    """`with record_output(…) as write:` — call `write(record)` for each; complete once the block succeeds.

    The ending of `file` decides the format; without one, `format` ("table", "json", "jsonl") goes to standard output.
    After an error nothing has been printed and no file is left, except for the lines of a "jsonl" stream.
    """
    if file is not None:
        check_output(file, ENDINGS)
        with Draft(file) as draft:
            written = RecordFile(draft)
            yield written.write
            written.finish()
    elif format == "jsonl":
        yield _at_once
    elif format == "json":
        from shutil import copyfileobj
        from tempfile import SpooledTemporaryFile

        with SpooledTemporaryFile(IN_MEMORY) as spool:
            records = RecordWriter(spool, array=True)
            yield records.write
            records.end()
            spool.seek(0)
            copyfileobj(spool, sys.stdout.buffer)
    else:
        yield table.add
        table.print()


def _at_once(record: Record) -> None:
    """Print a record as a line that a reader at the end of the pipe has now, not when a buffer is full."""
    sys.stdout.buffer.write(as_json(record) + b"\n")
    sys.stdout.buffer.flush()
