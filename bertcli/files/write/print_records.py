"""Print records to standard output: as a table, JSON lines, one JSON array, CSV or Markdown.

record_writer.py writes them to files.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence

from bertcli.files.write.json_and_csv import row_of_cells, write_array
from bertcli.report.documents import markdown_rows
from bertcli.report.tables import Record, Table
from bertcli.report.terminal import PrintFormat, as_json

IN_MEMORY = 1 << 24  # bytes of a JSON array kept in memory before a temporary file takes over


def print_records(
    records: Iterable[Record],
    format: PrintFormat,
    table: Table,
    own_ids: bool = True,
    errors: bool = False,
    kept: Sequence[str] = (),
) -> None:
    """Print records; in "csv" they have the columns of a .csv file (own_ids, errors and kept: as in TableForm).

    A table of texts (Table.line_of) is printed as these texts. They, and the lines of "jsonl" and "csv", are printed as
    they come; anything else is printed at the end, and not at all after an error.
    """
    if format == "jsonl":
        _print_lines(as_json(record) + b"\n" for record in records)
    elif format == "csv":
        _print_lines(_separated(records, table, own_ids, errors, kept))
    elif format == "table" and table.line_of is not None:
        _print_lines(as_line(table.line_of(record)) for record in records)
    elif format == "json":
        from tempfile import SpooledTemporaryFile

        with SpooledTemporaryFile(IN_MEMORY) as spool:
            spool.writelines(as_json(record) + b"\n" for record in records)
            spool.seek(0)
            write_array(sys.stdout.buffer, spool)
    else:
        for record in records:
            table.add(record)
        if format == "table":
            table.print()
        else:
            _print_lines(as_line(line) for line in markdown_rows(*table.displayed()))


def as_line(text: str) -> bytes:
    """The bytes of a line; half a surrogate pair, as a label may have, is escaped."""
    return f"{text}\n".encode("utf-8", "backslashreplace")


def _print_lines(lines: Iterable[bytes]) -> None:
    sys.stdout.flush()
    for line in lines:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()  # so that a reader of the pipe has the line at once


def _separated(
    records: Iterable[Record], table: Table, own_ids: bool, errors: bool, kept: Sequence[str]
) -> Iterator[bytes]:
    """The lines of CSV: a header, and the rows of the records' table."""
    names = [*table.in_files.file_columns(own_ids, kept), *(["error"] if errors else [])]
    yield row_of_cells(names, ",")
    for record in records:
        for row in table.in_files.file_rows(record, kept):
            yield row_of_cells([row[name] for name in names], ",")
