"""Read texts from files and pipes, one at a time: no file is in memory as a whole."""

import glob
import logging
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bertcli.errors import BertcliError, number_of
from bertcli.files.formats import BY_ENDING, Format, endings_with
from bertcli.files.read.row_columns import THE_TEXT, RowColumns
from bertcli.files.read.rows import InputFile
from bertcli.files.texts import STANDARD_INPUT, Text, Texts

logger = logging.getLogger("bertcli")
GZIP = ".gz"
MOST_NAMES = 20  # of files that a note lists


def rows_in(
    files: Sequence[str],
    columns: RowColumns = THE_TEXT,
    keep_going: bool = False,
    rows_piped: bool = False,
    way_on: str = "",
    limit: int | None = None,
) -> Texts:
    """Read the texts of files, one after the other, each by its ending; `-` is standard input.

    Endings: .txt, .jsonl, .csv, .tsv, .fasta, .fa, each perhaps with .gz, and .parquet. A name with `*`, `?` or `[…]`
    that is not a file stands for all files it matches, and a folder for its files of texts, sorted. columns: of rows;
    without any the field "text" is read. rows_piped: standard input has rows of named fields (CSV, TSV or JSON lines,
    as its first line shows), not a text a line. limit: the first texts alone.
    Errors: BertcliError naming file and line for a row that cannot be used, raised when it is reached; with
    `keep_going` such a row is a Text with an `error` instead. way_on: ends the message, and says how to go on.
    """
    names = [name for file in files for name in matching_files(file)]
    _note_others(files)
    formats = [_format(name, rows_piped) for name in names]
    opened: list[InputFile] = []
    for format, name in zip(formats, names, strict=True):
        assert format.texts is not None
        opened.append(format.texts(name))
    inputs = _InputFiles(opened, columns, keep_going, way_on, limit)
    files_read = tuple(names) if inputs.regular else None
    with_ids = columns.id is not None or any(format.gives_ids for format in formats)
    return Texts(
        inputs,
        inputs.waiting,
        files_read,
        inputs.share_read,
        at_hand=inputs.regular,
        with_ids=with_ids,
        kept=tuple(field.name for field in columns.keep),
        way_on=way_on,
    )


def takes_columns(files: Sequence[str]) -> bool:
    """True if a file that these names and patterns match has named fields; standard input, without files, may."""
    names = (name for file in files or [STANDARD_INPUT] for name in matching_files(file))
    formats = (BY_ENDING.get(ending_of_input(name, rows_piped=True)) for name in names)
    return any(format is not None and format.texts and format.named for format in formats)


def are_separated(files: Sequence[str]) -> bool:
    """True if every file that these names and patterns match is .csv or .tsv; standard input, without files, may be."""
    names = (name for file in files or [STANDARD_INPUT] for name in matching_files(file))
    return all(ending_of_input(name, rows_piped=True) in (".csv", ".tsv") for name in names)


class _InputFiles:
    """An iterable of the texts of several files or pipes, with the share that has been read."""

    def __init__(
        self, files: Sequence[InputFile], columns: RowColumns, keep_going: bool, way_on: str, limit: int | None
    ) -> None:
        self._files = files
        self._way_on = way_on
        self._columns = columns
        self._keep_going = keep_going
        self._limit = limit
        self._counted = False  # how many texts there are beyond the limit
        self.regular = all(file.rows.regular for file in files)
        self._sizes = [os.path.getsize(file.rows.name) if self.regular else 0 for file in files]
        self._current = 0

    def __iter__(self) -> Iterator[Text]:
        with closing(self._every()) as every:
            for number, text in enumerate(every, 1):
                if text.error and not self._keep_going:
                    raise BertcliError(text.error + self._way_on)
                yield text
                if number == self._limit:
                    self._count_others(number, every)
                    return

    def _every(self) -> Generator[Text, None, None]:
        for number, file in enumerate(self._files):
            self._current = number
            yield from file.texts(self._columns)

    def _count_others(self, read: int, others: Iterator[Text]) -> None:
        """Log, once, how many texts there are that are not read; of a pipe nobody waits for them."""
        if not self.regular or self._counted:
            return
        self._counted = True
        count = sum(1 for _ in others)
        if count:
            logger.info("the first %s of %s.", f"{read:,}", number_of(read + count, "text"))

    def waiting(self) -> bool:
        return bool(self._files) and self._files[self._current].rows.waiting()

    def share_read(self) -> float | None:
        """The share of all files' bytes that has been read."""
        current = self._files[self._current].rows.share_read() if self.regular and self._files else None
        if current is None:
            return None
        read = sum(self._sizes[: self._current]) + current * self._sizes[self._current]
        return read / max(1, sum(self._sizes))


def _format(file: str, rows_piped: bool) -> Format:
    """Look up the format of an input file or pipe. Errors: BertcliError for an unknown ending."""
    ending = ending_of_input(file, rows_piped)
    format = BY_ENDING.get(ending or ".txt")  # /dev/stdin and the like have none
    if format is not None and format.texts and (format.streams or not file.lower().endswith(GZIP)):
        return format
    known = endings_with("texts")
    raise BertcliError(
        f"{file}: the ending of an input file must be {', '.join(known[:-1])} (perhaps with {GZIP}) or {known[-1]}; "
        "any other file can be piped in, one text per line; --column NAME reads a field of rows (CSV, JSON lines)."
    )


def matching_files(file: str) -> list[str]:
    """Expand a folder to its files of texts, and a pattern to the files that it matches, sorted by name.

    An existing file of this name comes first. Errors: BertcliError where there are none.
    """
    if os.path.isdir(file):
        return files_in_folder(file).texts
    if file == STANDARD_INPUT or not glob.has_magic(file) or os.path.lexists(file):
        return [file]
    matches = sorted(name for name in glob.glob(file, recursive=True) if not os.path.isdir(name))
    if not matches:
        raise BertcliError(f"No file matches {file}.")
    return matches


class FolderFiles(NamedTuple):
    """The files in a folder and the folders in it, in the order of their paths: those of texts, and all others."""

    texts: list[str]
    others: list[str]


def files_in_folder(folder: str) -> FolderFiles:
    """Find the files of texts in a folder; hidden files are none. Errors: BertcliError where there are none."""
    names = glob.glob(os.path.join(glob.escape(folder), "**", "*"), recursive=True)
    files = FolderFiles([], [])
    for name in sorted(filter(os.path.isfile, names)):
        is_text = ending_of_input(name, rows_piped=False) in endings_with("texts")
        (files.texts if is_text else files.others).append(name)
    if not files.texts:
        known = endings_with("texts")
        raise BertcliError(f"There are no files of texts in {folder}: {', '.join(known[:-1])} or {known[-1]}.")
    return files


def _note_others(files: Sequence[str]) -> None:
    """Log which files of a folder are not read."""
    for folder in filter(os.path.isdir, files):
        others = files_in_folder(folder).others
        if others:
            count = "1 file is" if len(others) == 1 else f"{len(others):,} files are"
            names = ", ".join(os.path.relpath(other, folder) for other in others[:MOST_NAMES])
            more = f" and {len(others) - MOST_NAMES:,} more" if len(others) > MOST_NAMES else ""
            logger.info("%s not read in %s, having no ending of texts: %s%s.", count, folder, names, more)


def ending_of_input(file: str, rows_piped: bool) -> str:
    """Return the ending that determines the format, in lower case, without a final .gz.

    For a pipe of rows it is that of CSV, whose reader recognizes tabs and JSON lines; for any other that of plain text.
    """
    if file == STANDARD_INPUT:
        return ".csv" if rows_piped else ".txt"
    path = Path(file.lower())
    return Path(path.stem).suffix or GZIP if path.suffix == GZIP else path.suffix
