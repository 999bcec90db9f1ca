"""Texts from files and pipes, one at a time: no file is held in memory as a whole."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bertcli.errors import BertcliError
from bertcli.inputs.json_lines import json_lines
from bertcli.inputs.parquet import ParquetRows
from bertcli.inputs.separated import comma_separated, tab_separated
from bertcli.inputs.texts import Text, Texts
from bertcli.inputs.wanted import Wanted
from bertcli.lines import STANDARD_INPUT, LineStream

GZIP = ".gz"
PARQUET = ".parquet"
Source = LineStream | ParquetRows


def from_files(
    files: Sequence[str],
    column: str | None = None,
    pair_column: str | None = None,
    pair: str | None = None,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    keep_going: bool = False,
) -> Texts:
    """Texts of files one after another, each read according to its ending; `-` is standard input, one text per line.

    Endings: .txt, .jsonl, .csv, .tsv, .parquet, and these followed by .gz. A name with `*`, `?` or `[…]` that is not a
    file stands for all files it matches, sorted. `column` (default "text") and the other columns name fields; `pair` is
    paired with every text; ids and labels may be numbers. Errors: BertcliError naming file and line for a row that
    cannot be used, raised when it is reached; with `keep_going` such a row is a Text with an `error` instead.
    """
    names = [name for file in files for name in _matching(file)]
    wanted = Wanted(column, pair_column, id_column, label_column, pair)
    sources = _Sources([_open(name) for name in names])

    def rows() -> Iterator[Text]:
        for source in sources:
            for text in _texts(source, wanted):
                if text.error and not keep_going:
                    raise BertcliError(text.error)
                yield text

    return Texts(rows(), sources.waiting, names if sources.regular else None, sources.share, at_hand=sources.regular)


def takes_columns(files: Sequence[str]) -> bool:
    """Whether any of these input files, or of those that a pattern matches, has named fields."""
    return any(_ending(name) in (".jsonl", ".csv", ".tsv", PARQUET) for file in files for name in _matching(file))


class _Sources:
    """Files and pipes to be read one after another, and how far reading has got."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.all = sources
        self.regular = all(source.regular for source in sources)
        self._sizes = [os.path.getsize(source.name) if self.regular else 0 for source in sources]
        self._current = 0

    def __iter__(self) -> Iterator[Source]:
        for index, source in enumerate(self.all):
            self._current = index
            yield source

    def waiting(self) -> bool:
        return bool(self.all) and self.all[self._current].waiting()

    def share(self) -> float | None:
        """The share of all files' bytes that has been read."""
        current = self.all[self._current].share() if self.regular and self.all else None
        if current is None:
            return None
        read = sum(self._sizes[: self._current]) + current * self._sizes[self._current]
        return read / max(1, sum(self._sizes))


def _open(file: str) -> Source:
    """A file or pipe that is known to exist, and to have a known ending."""
    ending = "" if file == STANDARD_INPUT else _ending(file)
    if ending == PARQUET:
        return ParquetRows(file)
    if ending in LINE_FORMATS:
        return LineStream(file)
    raise BertcliError(
        f"{file}: the ending of an input file must be {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}, optionally followed "
        f"by {GZIP}; any other file can be piped in, one text per line."
    )


def _texts(source: Source, wanted: Wanted) -> Iterator[Text]:
    if isinstance(source, ParquetRows):
        return source.texts(wanted)
    return LINE_FORMATS[_ending(source.name)](source, wanted)


def _matching(file: str) -> list[str]:
    """The file of this name, or the files that a pattern matches, sorted by name."""
    if file == STANDARD_INPUT or not glob.has_magic(file) or os.path.lexists(file):
        return [file]
    found = sorted(name for name in glob.glob(file, recursive=True) if not os.path.isdir(name))
    if not found:
        raise BertcliError(f"No file matches {file}.")
    return found


def _ending(file: str) -> str:
    """The ending, in lower case, that determines the format: without a final .gz."""
    path = Path(file.lower())
    return Path(path.stem).suffix or GZIP if path.suffix == GZIP else path.suffix


def _plain(lines: LineStream, wanted: Wanted) -> Iterator[Text]:
    for line in lines:
        if line.error:
            yield Text("", place=line.place, error=line.error)
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
