"""Print records to standard output: as a table, JSON lines, one JSON array, or lines of text.

record_writer.py writes them to files.
"""

import sys
from collections.abc import Iterable

from bertcli.files.write.json_and_csv import write_array
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
