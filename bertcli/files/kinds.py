"""The kinds of files by their endings: how what each holds is read, written and joined from parts.

Here stand those of texts, records and rows; those of arrays and Parquet stand with the work in their own files, which
are imported when there is such work. A kind is added beside its like, with its ending there and in `formats.py`.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bertcli.files import rows
from bertcli.files.formats import ARRAYS, PARQUET, ending_of
from bertcli.files.held import Format, InputFile, Records, Rows, Stream, TextFile
from bertcli.files.lines import LineFile
from bertcli.files.records import write_array
from bertcli.files.rows import Wanted
from bertcli.files.texts import Text
from bertcli.lean import lean_dataclass

if TYPE_CHECKING:
    from bertcli.files.shards import Shards

F = TypeVar("F", bound=Format)


def kind_of(ending: str) -> Format | None:
    """The kind of files with this ending."""
    if ending in ARRAYS:
        from bertcli.files.arrays import KINDS as arrays

        return arrays[ending]
    if ending == PARQUET:
        from bertcli.files.parquet import Parquet

        return Parquet()
    return LINES.get(ending)


def format_of(file: str, held: type[F]) -> F:
    """The kind of a file, which may hold this."""
    kind = kind_of(ending_of(file))
    assert isinstance(kind, held)
    return kind


# --------------------------------------------------------------------------------------------------- files of lines


@lean_dataclass
class TextLines(TextFile):
    """Texts in lines, as `parse` finds them."""

    parse: Callable[[LineFile, Wanted], Iterator[Text]]
    named: bool = True

    def open_texts(self, file: str) -> InputFile:
        lines = LineFile(file)
        return InputFile(lines, partial(self.parse, lines))


class Json(Records):
    """One array of records, one a line."""

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        write_array(stream, lines)

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        every = (line for file in files for line in _lines(file))
        write_array(stream, (line.rstrip(b",\n") for line in every if line not in (b"[\n", b"]\n", b"[]\n")))


class JsonLines(TextLines, Records):
    """A record on every line."""

    def write_records(self, stream: Stream, lines: Iterable[bytes]) -> None:
        stream.writelines(lines)

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        for file in files:
            stream.writelines(_lines(file))


@lean_dataclass
class Separated(TextLines, Rows):
    """Rows below a header, by the rules of CSV: a cell that holds the delimiter, a quote or a line end is quoted."""

    delimiter: str = ","

    def write_rows(self, stream: Stream, shards: "Shards", columns: Mapping[str, Any]) -> None:
        """Cells as they are: a spreadsheet takes one that begins with = for a formula."""
        stream.write(self._row(columns))
        stream.writelines(self._row(row[name] for name in columns) for row in map(json.loads, shards.lines()))

    def _row(self, cells: Iterable[Any]) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self.delimiter).writerow(cells)  # ended by \r\n: only then a lone \r, which ends
        return text.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"  # rows, too, is quoted

    def join(self, stream: Stream, files: Sequence[str]) -> None:
        """The header of the first alone."""
        for number, file in enumerate(files):
            lines = _lines(file)
            if number:
                next(lines, None)
            stream.writelines(lines)


def _lines(file: str) -> Iterator[bytes]:
    with open(file, "rb") as lines:
        yield from lines


FASTA = TextLines(rows.sequences, named=False)
LINES: dict[str, Format] = {
    ".txt": TextLines(rows.text_lines, named=False),
    ".json": Json(),
    ".jsonl": JsonLines(rows.json_lines),
    ".csv": Separated(rows.comma_separated),
    ".tsv": Separated(rows.tab_separated, delimiter="\t"),
    ".fasta": FASTA,
    ".fa": FASTA,
}
