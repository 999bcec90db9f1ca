"""Write files of texts again, with another text in place of each; all else in them stays (tag --redact).

    .txt                line by line, with the same ends of lines
    .csv, .tsv, .jsonl  every column, in order; a row whose text could not be used is left out
    .parquet            likewise, with the types of its columns

Segments hold the new texts alone. At the end the files are read again, and written with them.
"""

import gzip
import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from bertcli.errors import BertcliError, quoted
from bertcli.files.formats import Stream
from bertcli.files.read.inputs import GZIP, ending_of_input, rows_in
from bertcli.files.read.line_reader import LineFile
from bertcli.files.read.row_columns import KeptRow, RowColumns
from bertcli.files.write.json_and_csv import row_of_cells
from bertcli.files.write.resumable_output import LINES, ResumableOutput
from bertcli.report.tables import Record, Rewritten, Table

logger = logging.getLogger("bertcli")
TEXT, SEPARATED, PARQUET = ".txt", (".csv", ".tsv"), ".parquet"
ROWS = (*SEPARATED, ".jsonl")
KINDS = (TEXT, *ROWS, PARQUET)
MOST_NAMES = 20  # of columns that a note lists


class RewrittenForm(NamedTuple):
    """Files of rows whose texts are replaced, in one file of their kind."""

    sources: Sequence[str]
    columns: RowColumns
    table: Table

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """Convert records to the arrays of a segment: a JSON line each, of the new text and labels, or null."""
        rewritten = self.table.rewritten
        assert rewritten is not None
        lines = [json.dumps(rewritten(record)).encode() + b"\n" for record in records]
        return {LINES: b"".join(lines)}

    def write(self, stream: Stream, segments: ResumableOutput) -> None:
        """Write the whole file, and say which columns nobody looked at."""
        texts = NewTexts(segments)
        names: dict[str, None] = {}
        unread: dict[str, None] = {}
        for number, source in enumerate(self.sources):
            of_source = write_again(source, self.columns, texts, stream, unread, has_header=number == 0)
            if number and of_source and kind_of(source) in SEPARATED and [*of_source] != [*names]:
                raise BertcliError(f"{source} has other columns than {self.sources[0]}: write each to its own file.")
            names |= dict.fromkeys(of_source)
        texts.check_used_up()
        note_columns([*unread])


class FolderForm(NamedTuple):
    """The files of a folder with their texts replaced, under the same names in another folder."""

    folder: str
    sources: Sequence[str]
    columns: RowColumns
    table: Table

    def arrays(self, records: Iterable[Record]) -> dict[str, bytes]:
        """Convert records to the arrays of a segment, as RewrittenForm does."""
        return RewrittenForm(self.sources, self.columns, self.table).arrays(records)

    def write(self, folder: Path, segments: ResumableOutput) -> None:
        """Write all files into a folder, and say which columns nobody looked at."""
        texts = NewTexts(segments)
        unread: dict[str, None] = {}
        for source in self.sources:
            target = folder / os.path.relpath(source, self.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            with ExitStack() as opened:
                stream: IO[bytes] = opened.enter_context(target.open("wb"))
                if source.lower().endswith(GZIP):
                    packed = gzip.GzipFile("", "wb", fileobj=stream, mtime=0)
                    stream = cast(IO[bytes], opened.enter_context(packed))
                write_again(source, self.columns, texts, stream, unread)
        texts.check_used_up()
        note_columns([*unread])


def kind_of(file: str) -> str:
    """The ending that says how a file is written again, without .gz. Errors: BertcliError for one that cannot be."""
    ending = ending_of_input(file, rows_piped=False)
    if ending not in KINDS:
        raise BertcliError(f"{file} cannot be written again: only {', '.join(KINDS[:-1])} and {KINDS[-1]} can.")
    return ending


def new_texts(segments: ResumableOutput) -> Iterator[Rewritten | None]:
    """The new texts in segments, in order; None for those that could not be used."""
    for line in segments.lines():
        values = json.loads(line)
        yield None if values is None else Rewritten(*values)


class NewTexts:
    """The new texts in segments, one after the other; None where a text could not be used.

    Errors: BertcliError if the files that are read again have more texts now, or fewer.
    """

    def __init__(self, segments: ResumableOutput) -> None:
        self._texts = new_texts(segments)

    def __iter__(self) -> "NewTexts":
        return self

    def __next__(self) -> str | None:
        for new in self._texts:
            return None if new is None else new.text
        raise _changed()

    def check_used_up(self) -> None:
        """Raise BertcliError if there are texts left."""
        for _ in self._texts:
            raise _changed()


def _changed() -> BertcliError:
    return BertcliError("A file has changed while it was read: run the command again.")


def count_labels(segments: ResumableOutput) -> Counter[str]:
    """How often each label stands in the new texts."""
    return Counter(label for new in new_texts(segments) if new is not None for label in new.labels)


def write_again(
    source: str,
    columns: RowColumns,
    texts: Iterator[str | None],
    stream: Stream,
    unread: dict[str, None],
    has_header: bool = True,
) -> Sequence[str]:
    """Write a file again with the next texts; the names of its columns. Errors: BertcliError if the file has changed.

    unread: gets the names of columns that are written as they are. has_header: False where the rows go on below those
    of another file, whose columns are the same.
    """
    kind = kind_of(source)
    if kind == TEXT:
        _write_lines(source, texts, stream)
        return ()
    if kind in ROWS:
        return _write_rows(source, columns, texts, stream, unread, has_header)
    from bertcli.files.parquet import write_replaced  # late: it brings pyarrow

    names = write_replaced(source, columns, texts, stream)
    unread |= _unread(names, columns)
    return names


def _write_lines(source: str, texts: Iterator[str | None], stream: Stream) -> None:
    """Write a text a line; one that could not be used is an empty line."""
    for line in LineFile(source):
        text = (next(texts) or "").replace("\n", " ")
        stream.write(f"{text}{line.end}".encode("utf-8", "backslashreplace"))


def _write_rows(
    source: str,
    columns: RowColumns,
    texts: Iterator[str | None],
    stream: Stream,
    unread: dict[str, None],
    has_header: bool,
) -> Sequence[str]:
    names: dict[str, None] = {}
    header: Sequence[str] | None = None
    for text in rows_in([source], columns._replace(as_written=True), keep_going=True):
        new = next(texts)
        if text.error or new is None:
            continue
        row: KeptRow = text.label
        if row.delimiter and header is None and columns.header and has_header:
            stream.write(row_of_cells(row.names, row.delimiter))
        header = row.names
        names |= dict.fromkeys(row.names)
        unread |= _unread(row.names, columns)
        stream.write(_row(row, columns, new))
    if header is None and columns.header and has_header:
        _copy_header(source, stream)
    return [*names]


def _row(row: KeptRow, columns: RowColumns, text: str) -> bytes:
    """The bytes of a row with another text."""
    of_text = columns.in_row(row.names).text
    assert of_text is not None
    pairs = zip(row.names, row.values, strict=False)
    values: list[Any] = [text if name == of_text.name else value for name, value in pairs]
    if row.delimiter:
        return row_of_cells(values, row.delimiter)
    record = dict(zip(row.names, values, strict=True))
    try:
        return json.dumps(record, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half a surrogate pair, which a field may have as an escape.
        return json.dumps(record).encode() + b"\n"


def _copy_header(source: str, stream: Stream) -> None:
    """Write the first line of a table without rows."""
    for line in LineFile(source):
        if not line.text.startswith("{"):
            stream.write(f"{line.text}{line.end}".encode())
        return


def _unread(names: Sequence[str], columns: RowColumns) -> dict[str, None]:
    """The columns of a row that are written as they are."""
    read = {field.name for field in columns.in_row(names).fields}
    return dict.fromkeys(name for name in names if name not in read)


def note_columns(unread: Sequence[str]) -> None:
    """Log which columns were written as they are."""
    if unread:
        more = f" and {len(unread) - MOST_NAMES:,} more" if len(unread) > MOST_NAMES else ""
        first = ", ".join(map(quoted, unread[:MOST_NAMES])) + more
        what = "column %s was" if len(unread) == 1 else "columns %s were"
        logger.info(f"{what} not looked at.", first)
