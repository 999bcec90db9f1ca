"""Write records to files: as JSON lines, as one JSON array, or as the rows of their table.

print_records.py prints them; formats.py has the endings.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from bertcli.files.formats import LINES as TEXT_LINES
from bertcli.files.formats import RECORDS, Stream, ending_of, writer_of
from bertcli.files.write.print_records import as_line, print_records
from bertcli.files.write.resumable_output import LINES, ResumableOutput
from bertcli.report.documents import flat, names_of
from bertcli.report.tables import Record, Table
from bertcli.report.terminal import Column, PrintFormat, as_json


class RecordForm(NamedTuple):
    """Records in a .json or .jsonl file."""

    file: str

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """Convert records to the arrays of a segment: a JSON line each."""
        return {LINES: b"".join(as_json(record) + b"\n" for record in records)}

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        writer_of(ending_of(self.file), "records")(stream, segments.lines())


class LineForm(NamedTuple):
    """Records in a .txt file: the line that stands for each (Table.line_of)."""

    line_of: Callable[[Record], str]

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """Convert records to the arrays of a segment: a line each."""
        return {LINES: b"".join(as_line(self.line_of(record)) for record in records)}

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        stream.writelines(segments.lines())


class TableForm(NamedTuple):
    """Records in a .csv, .tsv, .md or .parquet file: the rows of their table, but for .md with all digits of numbers.

    own_ids: texts have ids; else the column OWN_ID is left out. kept: fields of the input's rows that are columns, too.
    errors: add a last column with the reason why a text could not be used.
    """

    file: str
    table: Table
    own_ids: bool = True
    errors: bool = False
    kept: Sequence[str] = ()

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """Convert records to the arrays of a segment: their rows as JSON lines."""
        rows = (row for record in records for row in self.table.file_rows(record, self.kept))
        return {LINES: b"".join(json.dumps(row).encode() + b"\n" for row in rows)}

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file."""
        types = self.table.file_columns(self.own_ids, self.kept) | ({"error": str} if self.errors else {})
        writer_of(ending_of(self.file), "rows")(stream, segments, types)


def record_form(
    file: str, table: Table, own_ids: bool = True, errors: bool = False, kept: Sequence[str] = ()
) -> RecordForm | TableForm | LineForm:
    """Choose the form of records by the ending of a file's name; Markdown has the table that is printed."""
    if ending_of(file) == TEXT_LINES and table.line_of is not None:
        return LineForm(table.line_of)
    if ending_of(file) in RECORDS:
        return RecordForm(file)
    return TableForm(file, table if ending_of(file) == ".md" else table.in_files, own_ids, errors, kept)


def write_records(records: Iterable[Record], format: PrintFormat, file: str | None, table: Table) -> None:
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


def write_lines(lines: Sequence[Record], file: str, names: Sequence[str] = ()) -> None:
    """Write the lines of a document to a .jsonl file, or as the rows of a .csv, .tsv or .parquet file.

    names: the columns of a document without lines.
    """
    if ending_of(file) in RECORDS:
        write_records(lines, "jsonl", file, Table((), ""))
        return
    columns = tuple(Column(name, _type_of([line.get(name) for line in lines])) for name in names_of(lines) or names)
    rows = []
    for line in lines:
        row = {}
        for column in columns:
            value = flat(line.get(column.name))
            row[column.name] = value if column.number or value is None else str(value)
        rows.append(row)
    write_records(rows, "csv", file, Table(columns, ""))


def _type_of(values: Sequence[Any]) -> bool | type[int | float]:
    """The type of a column of numbers: int or float; False for any other column."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds or not kinds <= {int, float}:
        return False
    return float if float in kinds else int
