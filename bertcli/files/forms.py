"""How records stand in a file: as JSON lines, one JSON array, or the rows of their table."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bertcli.files.formats import RECORDS, check_output
from bertcli.files.held import Records, Rows, Stream
from bertcli.files.kinds import format_of
from bertcli.files.records import printed
from bertcli.files.shards import LINES, Shards, save
from bertcli.report.tables import OWN_ID, Record, Table
from bertcli.report.terminal import as_json


class RecordForm(NamedTuple):
    """How records stand in a .json or .jsonl file."""

    file: str

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """What a shard holds of records."""
        return {LINES: b"".join(as_json(record) + b"\n" for record in records)}

    def write(self, stream: Stream, shards: Shards) -> None:
        """Write the whole file."""
        format_of(self.file, Records).write_records(stream, shards.lines())


class TableForm(NamedTuple):
    """How records stand in a .csv, .tsv or .parquet file: the rows of their table, its numbers in full.

    own_ids: texts have ids; else OWN_ID is left out. errors: the last column says why a text could not be used.
    """

    file: str
    table: Table
    own_ids: bool = True
    errors: bool = False

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """What a shard holds of records: their rows as JSON lines."""
        return {LINES: b"".join(json.dumps(row).encode() + b"\n" for record in records for row in self._rows(record))}

    def _rows(self, record: Record) -> Iterator[dict[str, Any]]:
        for cells in self.table.cells(record):
            yield dict(zip((*self.table.keys, "error"), cells, strict=True))

    def write(self, stream: Stream, shards: Shards) -> None:
        """Write the whole file."""
        columns = dict(zip(self.table.keys, self.table.columns, strict=True))
        kinds = {key: column.number or None for key, column in columns.items() if self.own_ids or column is not OWN_ID}
        format_of(self.file, Rows).write_rows(stream, shards, kinds | ({"error": None} if self.errors else {}))


@contextmanager
def paged(file: str, table: Table, model: str) -> Iterator[Callable[[Record], object]]:
    """`with paged(…) as write:` — call `write(record)` for each; their page is written once the block succeeds."""
    yield table.add
    save(file, table.page(model).encode())


@contextmanager
def record_output(
    format: str, file: str | None, table: Table, endings: tuple[str, ...] = RECORDS
) -> Iterator[Callable[[Record], object]]:
    """`with record_output(…) as write:` — call `write(record)` for each; complete once the block succeeds.

    The ending of `file` decides the format; without one, `format` goes to standard output, as in `printed`. After an
    error no file is left.
    """
    if file is None:
        with printed(format, table) as write:
            yield write
        return
    form = RecordForm(file) if check_output(file, endings) in RECORDS else TableForm(file, table)
    with Shards(file) as shards:
        yield lambda record: shards.add(form.arrays([record]), {})
        with shards.result() as stream:
            form.write(stream, shards)
