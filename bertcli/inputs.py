"""Texts from arguments, files and pipes, one at a time: no file is ever held in memory."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.errors import BertcliError
from bertcli.lines import STANDARD_INPUT, Line, LineStream
from bertcli.untrusted import shown

DEFAULT_COLUMN = "text"
END = object()
CHARACTERS_A_TOKEN = 4  # roughly, in English; only how many texts are looked at together depends on it
LONE_RETURN = "\udc0d"  # stands for a \r inside a line while the csv module, which would end the line there, reads it


class Text(NamedTuple):
    """A text to work on, perhaps with a second one, and where it came from (for messages)."""

    text: str
    pair: str | None = None
    place: str | None = None


class Texts:
    """An iterable of Text in input order; `waiting()` says whether the next one may take a while to come."""

    def __init__(self, rows: Iterable[Text], waiting: Callable[[], bool] = lambda: False) -> None:
        self._rows = rows
        self.waiting = waiting

    def __iter__(self) -> Iterator[Text]:
        return iter(self._rows)

    def grouped(self, tokens: int, span: int) -> Iterator[list[Text]]:
        """Texts in lists of about `tokens` tokens, then twice as many up to `span` times; less where the input pauses.

        The sizes depend on the texts alone, unless the input is a pipe that pauses: a run repeats bit for bit.
        """
        group: list[Text] = []
        size, budget = 0, tokens
        for text in self:
            group.append(text)
            size += 3 + (len(text.text) + len(text.pair or "")) // CHARACTERS_A_TOKEN
            if size >= budget or self.waiting():
                yield group
                group, size, budget = [], 0, min(2 * budget, span * tokens)
        if group:
            yield group


def from_values(texts: Iterable[str] | Texts, pairs: Iterable[str | None] | str | None = None) -> Texts:
    """Texts given in Python: any iterable of strings, or one; `pairs` go with them one by one, or one with all."""
    if isinstance(texts, Texts):
        return texts
    values = [texts] if isinstance(texts, str) else texts
    if pairs is None or isinstance(pairs, str):
        return Texts(Text(text, pairs) for text in values)
    return Texts(_paired(iter(values), iter(pairs)))


def _paired(texts: Iterator[str], pairs: Iterator[str | None]) -> Iterator[Text]:
    for text in texts:
        try:
            yield Text(text, next(pairs))
        except StopIteration:
            raise BertcliError("There are fewer pairs than texts.") from None
    if next(pairs, END) is not END:
        raise BertcliError("There are more pairs than texts.")


def from_arguments(texts: Sequence[str], pair: str | None = None) -> Texts:
    """Texts given on the command line; `pair` goes with each."""
    for text in [*texts, pair or ""]:
        if not is_unicode(text):
            raise BertcliError(f"A text on the command line is not UTF-8: {shown(text)}.")
    return Texts(Text(text, pair) for text in texts)


def from_file(file: str, column: str | None = None, pair_column: str | None = None, pair: str | None = None) -> Texts:
    """Texts of a file, read as its ending says (.txt, .jsonl, .csv, .tsv); `-` is standard input, a text a line.

    `column` (default "text") and `pair_column` name fields; `pair` goes with every text. Errors: BertcliError naming
    file and line for what cannot be used, raised when the reading comes to it.
    """
    ending = "" if file == STANDARD_INPUT else Path(file).suffix.lower()
    if ending not in FORMATS:
        raise BertcliError(
            f"{file}: the ending of an input file must be .txt, .jsonl, .csv or .tsv; a file of another name can be "
            "piped in, one text a line."
        )
    lines = LineStream(file)
    wanted = [column or DEFAULT_COLUMN, *([pair_column] if pair_column else [])]

    def rows() -> Iterator[Text]:
        for place, values in FORMATS[ending](lines, wanted):
            yield Text(values[0], values[1] if pair_column else pair, place)

    return Texts(rows(), lines.waiting)


def takes_columns(file: str | None) -> bool:
    """Whether an input file has named fields."""
    return file is not None and Path(file).suffix.lower() in (".jsonl", ".csv", ".tsv")


def is_unicode(text: str) -> bool:
    """False for a string with half a surrogate pair, which no UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# ----------------------------------------------------------------------------------- readers: (place, wanted values)

Rows = Iterator[tuple[str, list[str]]]


def _plain(lines: LineStream, wanted: list[str]) -> Rows:
    for line in lines:
        yield line.place, [line.text]


def _json_lines(lines: LineStream, wanted: list[str]) -> Rows:
    for line in lines:
        try:
            record = json.loads(line.text)
        except json.JSONDecodeError as error:
            raise BertcliError(f"{line.place}: not valid JSON ({error.msg} at column {error.colno}).") from None
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
            raise BertcliError(f"{line.place}: not usable JSON ({error}).") from None
        if not isinstance(record, dict):
            raise BertcliError(f"{line.place}: not a JSON object but {shown(record)}.")
        yield line.place, [_field(record, name, line.place) for name in wanted]


def _field(record: dict[str, Any], name: str, place: str) -> str:
    if name not in record:
        known = ", ".join(map(shown, list(record)[:20])) or "none"
        raise BertcliError(f"{place}: there is no field {shown(name)}; fields are {known} (choose one with --column).")
    value = record[name]
    if not isinstance(value, str) or not is_unicode(value):
        raise BertcliError(f"{place}: the field {shown(name)} is {shown(value)}, which is not a text.")
    return value


def _comma_separated(lines: LineStream, wanted: list[str]) -> Rows:
    return _columns(_quoted_rows(lines), wanted)


def _tab_separated(lines: LineStream, wanted: list[str]) -> Rows:
    return _columns(((line.place, _tab_row(line.text)) for line in lines), wanted)


def _columns(rows: Rows, wanted: list[str]) -> Rows:
    """The wanted columns of a table whose first row is its header."""
    place, header = next(rows, ("", []))
    for name in wanted:
        if place and header.count(name) != 1:
            wrong = "more than one column" if name in header else "no column"
            known = ", ".join(map(shown, header[:20]))
            raise BertcliError(f"{place}: there is {wrong} {shown(name)}; the header has {known} (see --column).")
    places = [header.index(name) for name in wanted] if place else []
    for place, row in rows:
        if len(row) > len(header) or max(places) >= len(row):
            raise BertcliError(f"{place}: {len(row)} fields where the header has {len(header)}.")
        yield place, [row[index] for index in places]


def _quoted_rows(lines: LineStream) -> Rows:
    """Rows of comma separated fields; a quoted field may go on over several lines."""
    csv.field_size_limit(max(csv.field_size_limit(), 2**31 - 1))
    read: list[Line] = []

    def source() -> Iterator[str]:
        for line in lines:
            read.append(line)
            yield line.text.replace("\r", LONE_RETURN) + line.end

    reader = csv.reader(source(), strict=True)
    while True:
        read.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            place = read[0].place if read else lines.name
            raise BertcliError(f"{place}: not comma separated values ({error}).") from None
        yield read[0].place, [field.replace(LONE_RETURN, "\r") for field in row] or [""]


def _tab_row(line: str) -> list[str]:
    """Fields between tabs: as they stand, but without the quotes around a field that is quoted by the rules of CSV."""
    if '"' in line:
        try:
            (row,) = csv.reader([line.replace("\r", LONE_RETURN)], delimiter="\t", strict=True)
            return [field.replace(LONE_RETURN, "\r") for field in row]
        except csv.Error:
            pass  # a quotation mark that is part of the text, as most files of this kind have them
    return line.split("\t")


FORMATS: dict[str, Callable[[LineStream, list[str]], Rows]] = {
    ".txt": _plain,
    "": _plain,  # /dev/stdin and the like
    ".jsonl": _json_lines,
    ".csv": _comma_separated,
    ".tsv": _tab_separated,
}
