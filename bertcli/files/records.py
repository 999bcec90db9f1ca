"""Records on standard output: as a table, JSON lines or one JSON array."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO

from bertcli.report.tables import Record, Table
from bertcli.report.terminal import as_json

IN_MEMORY = 1 << 24  # bytes of a JSON array kept in memory before a temporary file takes over


@contextmanager
def printed(format: str, table: Table) -> Iterator[Callable[[Record], object]]:
    """`with printed(…) as write:` — call `write(record)` for each; `format` is "table", "json", "jsonl" or "text".

    After an error nothing has been printed, except for the lines of "jsonl" and "text".
    """
    if format == "jsonl":
        yield lambda record: _at_once(as_json(record))
    elif format == "text" and table.line_of:
        line_of = table.line_of
        yield lambda record: _at_once(line_of(record).encode("utf-8", "backslashreplace"))
    elif format == "json":
        from tempfile import SpooledTemporaryFile

        with SpooledTemporaryFile(IN_MEMORY) as spool:
            yield lambda record: spool.write(as_json(record) + b"\n")
            spool.seek(0)
            write_array(sys.stdout.buffer, spool)
    else:
        yield table.add
        table.print()


def _at_once(line: bytes) -> None:
    """Print a line that a reader at the end of the pipe has now, not when a buffer is full."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def write_array(stream: IO[bytes], lines: Iterable[bytes]) -> None:
    """Records as one JSON array, one a line."""
    between = b"[\n"
    for line in lines:
        stream.write(between + line.removesuffix(b"\n"))
        between = b",\n"
    stream.write(b"[]\n" if between == b"[\n" else b"\n]\n")
