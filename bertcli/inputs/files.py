"""Texts from files and pipes, one at a time: no file is ever held in memory."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bertcli.errors import BertcliError
from bertcli.inputs.json_lines import json_lines
from bertcli.inputs.parquet import parquet
from bertcli.inputs.separated import comma_separated, tab_separated
from bertcli.inputs.texts import Text, Texts
from bertcli.inputs.wanted import Wanted
from bertcli.lines import STANDARD_INPUT, LineStream, check_readable

GZIP = ".gz"
PARQUET = ".parquet"


def from_file(file: str, column: str | None = None, pair_column: str | None = None, pair: str | None = None) -> Texts:
    """Texts of one file, as `from_files` reads them."""
    return from_files([file], column, pair_column, pair)


def from_files(
    files: Sequence[str],
    column: str | None = None,
    pair_column: str | None = None,
    pair: str | None = None,
    *,
    id_column: str | None = None,
    keep_going: bool = False,
) -> Texts:
    """Texts of files one after another, each read as its ending says; `-` is standard input, a text a line.

    Endings: .txt, .jsonl, .csv, .tsv, .parquet, and these with .gz behind. A name with `*`, `?` or `[…]` that is no
    file stands for all it matches, sorted. `column` (default "text"), `pair_column` and `id_column` name fields;
    `pair` goes with every text. Errors: BertcliError naming file and line for what cannot be used, raised when the
    reading comes to it; with `keep_going` a row that cannot be used is a Text with an `error` instead.
    """
    names = [name for file in files for name in _matching(file)]
    wanted = Wanted(column, pair_column, id_column, pair)
    sources = [_Source(name) for name in names]
    current = sources[:1]

    def rows() -> Iterator[Text]:
        for source in sources:
            current[:] = [source]
            for text in source.texts(wanted):
                if text.error and not keep_going:
                    raise BertcliError(text.error)
                yield text

    repeatable = () if STANDARD_INPUT in names else names
    return Texts(rows(), lambda: any(source.waiting() for source in current), repeatable)


def takes_columns(files: Sequence[str]) -> bool:
    """Whether any of these input files has named fields."""
    return any(_ending(file) in (".jsonl", ".csv", ".tsv", PARQUET) for file in files)


class _Source:
    """A file or pipe that is known to be there and to have a known ending."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._ending = "" if file == STANDARD_INPUT else _ending(file)
        if self._ending not in (*LINE_FORMATS, PARQUET):
            raise BertcliError(
                f"{file}: the ending of an input file must be {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, perhaps with "
                f"{GZIP} behind it; a file of another name can be piped in, one text a line."
            )
        self._lines = LineStream(file) if self._ending != PARQUET else None
        if self._lines is None:
            check_readable(file)

    def texts(self, wanted: Wanted) -> Iterator[Text]:
        if self._lines is None:
            return parquet(self._file, wanted)
        return LINE_FORMATS[self._ending](self._lines, wanted)

    def waiting(self) -> bool:
        return self._lines is not None and self._lines.waiting()


def _matching(file: str) -> list[str]:
    """The file of this name, or the files that a pattern stands for, in the order of their names."""
    if file == STANDARD_INPUT or not glob.has_magic(file) or os.path.lexists(file):
        return [file]
    found = sorted(name for name in glob.glob(file, recursive=True) if not os.path.isdir(name))
    if not found:
        raise BertcliError(f"No file matches {file}.")
    return found


def _ending(file: str) -> str:
    """The ending in lower case that tells the format: the one before .gz, if that is the last."""
    path = Path(file.lower())
    return Path(path.stem).suffix or GZIP if path.suffix == GZIP else path.suffix


def _plain(lines: LineStream, wanted: Wanted) -> Iterator[Text]:
    for line in lines:
        if line.error:
            yield Text("", None, line.place, None, line.error)
        else:
            yield Text(line.text, wanted.fixed_pair, line.place)


LINE_FORMATS: dict[str, Callable[[LineStream, Wanted], Iterator[Text]]] = {
    ".txt": _plain,
    "": _plain,  # /dev/stdin and the like
    ".jsonl": json_lines,
    ".csv": comma_separated,
    ".tsv": tab_separated,
}
ENDINGS = (*filter(None, LINE_FORMATS), PARQUET)
