"""How records stand in a file: as JSON lines, one JSON array, or the rows of their table."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from bertcli.files.formats import RECORDS, check_output, ending_of, loaded
from bertcli.files.records import printed
from bertcli.files.shards import LINES, Shards, save
from bertcli.report.tables import Record, Table
from bertcli.report.terminal import as_json


def write_lines(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Records as JSON lines."""
    stream.writelines(lines)


def write_csv(stream: IO[bytes], shards: Shards, names: Sequence[str], numbers: Mapping[str, object]) -> None:
    """Rows separated by commas, below a header; `numbers` are for other formats."""
    stream.write(_csv_row(names))
    stream.writelines(_csv_row(row[name] for name in names) for row in map(json.loads, shards.lines()))


def _csv_row(cells: Iterable[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)  # ended by \r\n: only then a lone \r, which ends rows, too, is quoted
    return text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"


class RecordForm(NamedTuple):
    """How records stand in a .json or .jsonl file."""

    file: str

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """What a shard holds of records."""
        return {LINES: b"".join(as_json(record) + b"\n" for record in records)}

    def write(self, stream: IO[bytes], shards: Shards) -> None:
        """Write the whole file."""
        loaded(ending_of(self.file), "records")(stream, shards.lines())


class TableForm(NamedTuple):
    """How records stand in a .csv or .parquet file: the rows of their table, its numbers in full.

    `keys` of a record stand in each of its rows, too, "id" as the second column and others as the last.
    """

    file: str
    table: Table
    keys: Sequence[str]

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """What a shard holds of records: their rows as JSON lines."""
        return {LINES: b"".join(json.dumps(row).encode() + b"\n" for record in records for row in self._rows(record))}

    def _rows(self, record: Record) -> Iterator[dict[str, Any]]:
        extra = {key: record.get(key) for key in self.keys}
        for cells in self.table.cells(record):
            yield dict(zip(self.table.keys, cells[:-1], strict=True)) | extra

    def write(self, stream: IO[bytes], shards: Shards) -> None:
        """Write the whole file."""
        first, *others = self.table.keys
        names = [first, *(["id"] if "id" in self.keys else []), *others, *(key for key in self.keys if key != "id")]
        numbers = {key: column.number for key, column in zip(self.table.keys, self.table.columns, strict=True)}
        loaded(ending_of(self.file), "rows")(stream, shards, names, numbers)


@contextmanager
def paged(file: str, table: Table) -> Iterator[Callable[[Record], object]]:
    """`with paged(…) as write:` — call `write(record)` for each; their page is written once the block succeeds."""
    yield table.add
    save(file, table.page().encode())


@contextmanager
def record_output(format: str, file: str | None, table: Table) -> Iterator[Callable[[Record], object]]:
    """`with record_output(…) as write:` — call `write(record)` for each; complete once the block succeeds.

    The ending of `file` decides the format; without one, `format` goes to standard output, as in `printed`. After an
    error no file is left.
    """
    if file is None:
        with printed(format, table) as write:
            yield write
        return
    check_output(file, RECORDS)
    form = RecordForm(file)
    with Shards(file) as shards:
        yield lambda record: shards.add(form.arrays([record]), {})
        with shards.result() as stream:
            form.write(stream, shards)
