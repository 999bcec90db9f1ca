"""Text files of rows and records: separated by commas or tabs, and one file of those that shards have written."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any


def write_separated(stream: IO[bytes], lines: Iterable[bytes], names: Iterable[str], delimiter: str) -> None:
    """Rows below a header, cells as they are: a spreadsheet takes one that begins with = for a formula."""
    stream.write(_row(names, delimiter))
    stream.writelines(_row((row[name] for name in names), delimiter) for row in map(json.loads, lines))


def _row(cells: Iterable[Any], delimiter: str) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerow(cells)  # ended by \r\n: only then a lone \r, which ends rows, too,
    return text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"  # is quoted


def join_lines(stream: IO[bytes], files: Sequence[str], header: bool = False) -> None:
    """The lines of files one after another; of a header only that of the first."""
    for number, file in enumerate(files):
        with open(file, "rb") as lines:
            if header and number:
                lines.readline()
            stream.writelines(lines)


def array_lines(files: Iterable[str]) -> Iterator[bytes]:
    """The records of files that `write_array` wrote."""
    for file in files:
        with open(file, "rb") as lines:
            yield from (line.rstrip(b",\n") for line in lines if line not in (b"[\n", b"]\n", b"[]\n"))
