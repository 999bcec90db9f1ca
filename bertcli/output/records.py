"""Records as JSON, JSON lines or a table; the table's cells come from functions of one record."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from bertcli.errors import damaged
from bertcli.output.files import Replacement, check_output
from bertcli.output.table import Table

Record = Mapping[str, Any]
Write = Callable[[Record], None]
ENDINGS = (".json", ".jsonl")
IN_MEMORY = 1 << 24  # bytes of a JSON array kept in memory before a temporary file takes over


class Stream(Protocol):
    """What bytes are written to."""

    def write(self, data: bytes, /) -> Any: ...

    def flush(self) -> Any: ...


@contextmanager
def record_output(format: str, file: str | None, table: Table) -> Iterator[Write]:
    """`with record_output(…) as write:` — call `write(record)` for each; complete once the block succeeds.

    The ending of `file` decides the format; without one, `format` ("table", "json", "jsonl") goes to standard output.
    After an error nothing has been printed and no file is left, except for the lines of a "jsonl" stream.
    """
    with ExitStack() as stack:
        if file is not None:
            ending = check_output(file, ENDINGS)
            output = stack.enter_context(Replacement(file))
            yield from _json_array(output) if ending == ".json" else _json_lines(output, flush=False)
        elif format == "jsonl":
            stream = sys.stdout.buffer
            yield from _json_lines(stream, flush=True)
        elif format == "json":
            spool = stack.enter_context(tempfile.SpooledTemporaryFile(IN_MEMORY))
            yield from _json_array(spool)
            spool.seek(0)
            shutil.copyfileobj(spool, sys.stdout.buffer)
        else:
            yield table.add
            from bertcli.report import print_table  # brings rich

            print_table(*table.shown())


def _json_lines(stream: Stream, flush: bool) -> Iterator[Write]:
    def write(record: Record) -> None:
        stream.write(as_json(record) + b"\n")
        if flush:
            stream.flush()

    yield write


def _json_array(stream: Stream) -> Iterator[Write]:
    separator = b"[\n"

    def write(record: Record) -> None:
        nonlocal separator
        stream.write(separator + as_json(record))
        separator = b",\n"

    yield write
    stream.write(b"[]\n" if separator == b"[\n" else b"\n]\n")


def as_json(record: Record) -> bytes:
    """One line of UTF-8; BertcliError for NaN and infinite numbers, which JSON does not have."""
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise damaged() from None
    return text.encode("utf-8", "backslashreplace")  # half a surrogate pair, say in a label's name, as JSON escapes it
