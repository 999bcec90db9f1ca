"""Write records to files: as JSON lines, as one JSON array, or as the rows of their table.

print_records.py prints them; formats.py has the endings.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bertcli.files.formats import RECORDS, RecordFormat, RowFormat, Stream, ending_of, format_of
from bertcli.files.write.print_records import print_records
from bertcli.files.write.resumable_output import LINES, ResumableOutput
from bertcli.report.tables import OWN_ID, Record, Table
from bertcli.report.terminal import as_json


class RecordForm(NamedTuple):
    """Records in a .json or .jsonl file."""

    file: str

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """Convert records to the arrays of a segment: a JSON line each."""
        return {LINES: b"".join(as_json(record) + b"\n" for record in records)}

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        format_of(self.file, RecordFormat).write_records(stream, segments.lines())


class TableForm(NamedTuple):
    """Records in a .csv, .tsv or .parquet file: the rows of their table, with all digits of numbers.

    own_ids: texts have ids; else the column OWN_ID is left out. errors: add a last column with the reason why a text
    could not be used.
    """

    file: str
    table: Table
    own_ids: bool = True
    errors: bool = False

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """Convert records to the arrays of a segment: their rows as JSON lines."""
        return {LINES: b"".join(json.dumps(row).encode() + b"\n" for record in records for row in self._rows(record))}

    def _rows(self, record: Record) -> Iterator[dict[str, Any]]:
        for cells in self.table.cells(record):
            yield dict(zip((*self.table.keys, "error"), cells, strict=True))

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        columns = dict(zip(self.table.keys, self.table.columns, strict=True))
        types: dict[str, type] = {}
        for key, column in columns.items():
            if self.own_ids or column is not OWN_ID:  # ids from the input are texts, though some may be numbers
                types[key] = column.number if isinstance(column.number, type) else str
        format_of(self.file, RowFormat).write_rows(stream, segments, types | ({"error": str} if self.errors else {}))


def record_form(file: str, table: Table, own_ids: bool = True, errors: bool = False) -> RecordForm | TableForm:
    """Choose the form of records by the ending of a file's name."""
    return RecordForm(file) if ending_of(file) in RECORDS else TableForm(file, table, own_ids, errors)


def write_records(records: Iterable[Record], format: str, file: str | None, table: Table) -> None:
    """Write records to a file, in the form of its ending, or print them if it is None. An error leaves no file."""
    if file is None:
        print_records(records, format, table)
        return
    form = record_form(file, table)
    with ResumableOutput(file) as segments:
        for record in records:
            segments.add(form.arrays([record]), {})
        with segments.result() as stream:
            form.write(stream, segments)
