"""How records stand in a file: as JSON lines, one JSON array, or the rows of their table."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bertcli.files.formats import RECORDS, RecordFormat, RowFormat, Stream, ending_of, format_of
from bertcli.files.records import print_records
from bertcli.files.resumable_output import LINES, ResumableOutput
from bertcli.report.tables import OWN_ID, Record, Table
from bertcli.report.terminal import as_json


class RecordForm(NamedTuple):
    """How records stand in a .json or .jsonl file."""

    file: str

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """What a shard holds of records."""
        return {LINES: b"".join(as_json(record) + b"\n" for record in records)}

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        format_of(self.file, RecordFormat).write_records(stream, segments.lines())


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

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        columns = dict(zip(self.table.keys, self.table.columns, strict=True))
        types: dict[str, type] = {}
        for key, column in columns.items():
            if self.own_ids or column is not OWN_ID:  # an id of one's own is a text, since it may be one
                types[key] = column.number if isinstance(column.number, type) else str
        format_of(self.file, RowFormat).write_rows(stream, segments, types | ({"error": str} if self.errors else {}))


def record_form(file: str, table: Table, own_ids: bool = True, errors: bool = False) -> RecordForm | TableForm:
    """How records stand in a file of this name."""
    return RecordForm(file) if ending_of(file) in RECORDS else TableForm(file, table, own_ids, errors)


def write_records(records: Iterable[Record], format: str, file: str | None, table: Table) -> None:
    """Write records to a file, whose ending decides the form; or print them. After an error no file is left."""
    if file is None:
        print_records(records, format, table)
        return
    form = record_form(file, table)
    with ResumableOutput(file) as segments:
        for record in records:
            segments.add(form.arrays([record]), {})
        with segments.result() as stream:
            form.write(stream, segments)
