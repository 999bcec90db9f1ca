"""Records on standard output: as a table, JSON lines or one JSON array."""

import sys
from collections.abc import Iterable
from typing import IO

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
            sys.stdout.buffer.flush()  # a reader at the end of the pipe has it now, not when a buffer is full
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
    """Records as one JSON array, one a line."""
    between = b"[\n"
    for line in lines:
        stream.write(between + line.removesuffix(b"\n"))
        between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")
