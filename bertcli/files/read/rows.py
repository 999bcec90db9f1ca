"""Read the rows of text files; a function for each format: plain lines, FASTA, JSON lines, CSV, tabs.

Each yields one Text per row, in order; for a row that cannot be used, a Text with an error. formats.py names these
functions (`reader`), and `open_lines` finds them by that name. row_columns.py says which fields of a row are read;
inputs.py reads several files.
"""

import csv
import json
import logging
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, Protocol

from bertcli.errors import BertcliError, quoted
from bertcli.files.read.line_reader import LONGEST_LINE, Line, LineFile
from bertcli.files.read.row_columns import DEFAULT_COLUMN, Field, KeptRow, RowColumns, unusable
from bertcli.files.texts import Text

logger = logging.getLogger("bertcli")

LONE_RETURN = "\udc0d"  # replaces a \r inside a line while the csv module reads it, which would end the line there
OTHER_DELIMITERS = (";", "\t", "|")


class RowSource(Protocol):
    """A source of rows: its name, if it can be read again, if its writer has paused, the share that has been read."""

    name: str
    regular: bool

    def waiting(self) -> bool: ...

    def share_read(self) -> float | None: ...


class InputFile(NamedTuple):
    """A file or pipe, and the function that reads the texts in it."""

    rows: RowSource
    texts: Callable[[RowColumns], Iterator[Text]]


def open_lines(file: str, reader: str) -> InputFile:
    """Open a file of lines, or (`-`) standard input; `reader` is the name of a function of this module."""
    lines = LineFile(file)
    return InputFile(lines, partial(globals()[reader], lines))


def text_lines(lines: LineFile, columns: RowColumns) -> Iterator[Text]:
    """Read every line as a text."""
    for number, line in enumerate(lines):
        if number == 0 and not lines.regular and line.text.startswith('{"'):
            logger.info("%s: a line is read as a text; --column NAME reads a field of JSON lines.", lines.name)
        if line.error:
            yield Text("", location=line.location, error=line.error)
        else:
            yield Text(line.text, columns.fixed_pair, line.location)


def sequences(lines: LineFile, columns: RowColumns) -> Iterator[Text]:
    """Read FASTA: the lines below a header, joined, are a text; the first word of the header is its id."""
    header: Line | None = None
    letters: list[str] = []  # the lines of the sequence so far
    size, error = 0, None
    for line in chain(lines, [None]):  # None: the end of the file
        if line is None or line.text.startswith(">"):
            if header:
                id = next(iter(header.text[1:].split()), "")
                if error:
                    yield Text("", None, header.location, id, error=error)
                else:
                    yield Text("".join(letters), columns.fixed_pair, header.location, id)
            header, letters, size = line, [], 0
            error = line and line.error
        elif header:
            size += len(line.text)
            error = error or line.error
            if size > LONGEST_LINE:
                error = f"{header.location}: a sequence of more than {LONGEST_LINE:,} letters."
                letters = []  # they would fill the memory
            if not error:
                letters.append(line.text.strip())
        elif line.text.strip():
            yield unusable(line.location, "a header (>) must come before a sequence.")


def json_lines(lines: LineFile, columns: RowColumns) -> Iterator[Text]:
    """Read every line as a JSON object."""
    for line in lines:
        yield _json_text(line, columns)


def _json_text(line: Line, columns: RowColumns) -> Text:
    return Text("", location=line.location, error=line.error) if line.error else _json_row(line, columns)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of pairs. Errors: ValueError for a key that occurs twice: JSON readers disagree on its value."""
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {quoted(twice)} occurs twice")
    return record


def _json_row(line: Line, columns: RowColumns) -> Text:
    try:
        record = json.loads(line.text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        return unusable(line.location, f"not valid JSON ({error.msg} at column {error.colno}).")
    except (ValueError, RecursionError) as error:  # a number with thousands of digits, endless nesting
        return unusable(line.location, f"not usable JSON ({error}).")
    if not isinstance(record, dict):
        return unusable(line.location, f"not a JSON object but {quoted(record)}.")
    text = columns.in_row(record).row(line.location, record)
    is_kept = columns.as_written and not text.error
    return text._replace(label=KeptRow([*record], [*record.values()], "")) if is_kept else text


# ------------------------------------------------------------------------------------------ separated by commas or tabs


class _Cells(NamedTuple):
    """The fields of a row as in the file, or the error in them."""

    location: str
    fields: list[str]
    error: str | None = None


def comma_separated(lines: LineFile, columns: RowColumns) -> Iterator[Text]:
    """Read rows by the rules of CSV: a quoted field may hold commas, doubled quotes and line ends."""
    return _separated(lines, columns, ",")


def tab_separated(lines: LineFile, columns: RowColumns) -> Iterator[Text]:
    """Read one row per line, with tabs between the fields."""
    return _separated(lines, columns, "\t")


def _separated(lines: LineFile, columns: RowColumns, usual: str) -> Iterator[Text]:
    """Read rows as the options say, else as the first line shows: JSON lines, another delimiter, or the usual one."""
    with closing(iter(lines)) as rows:
        first = next(rows, None)
        if first is None:
            return
        whole = chain([first], rows)
        if columns.delimiter is None and columns.header and not first.error:
            if first.text.startswith("{"):
                logger.info("%s holds JSON lines, and is read so.", lines.name)
                for line in whole:
                    yield _json_text(line, columns)
                return
            if delimiter := _shown_delimiter(first.text, columns, usual):
                logger.info("%s: its columns are separated by %s.", lines.name, _name_of(delimiter))
                columns = columns._replace(delimiter=delimiter)
        if usual == "\t" and columns.delimiter in (None, usual):
            cells = (_Cells(line.location, _tab_row(line.text), line.error) for line in whole)
            yield from _table(cells, columns, usual)
        else:
            delimiter = columns.delimiter or usual
            yield from _table(_quoted_rows(whole, lines.name, delimiter), columns, delimiter)


def _shown_delimiter(header: str, columns: RowColumns, usual: str) -> str | None:
    """The delimiter of a header that is a single name with the usual one, if that name is no field to read."""
    try:
        names = next(CsvRows([header], usual), [])
    except csv.Error:
        names = [header]  # quotes around names that another delimiter separates
    if len(names) != 1 or any(field.name == names[0] for field in columns.fields):
        return None
    return next((other for other in (*OTHER_DELIMITERS, ",") if other != usual and other in header), None)


def _table(rows: Generator[_Cells, None, None], columns: RowColumns, delimiter: str) -> Iterator[Text]:
    """Yield the rows of a table below its header, if it has one; an error in the header is fatal."""
    with closing(rows):
        first = next(rows, None)
        if first is None:
            return
        if first.error:
            raise BertcliError(first.error)
        header = first.fields
        if not columns.header:
            header = [str(number) for number in range(1, len(first.fields) + 1)]
        for field in columns.needed:
            if header.count(field.name) != 1:
                raise BertcliError(f"{first.location}: {_lacking(field, header, columns)}")
        places = {name: place for place, name in reversed([*enumerate(header)])}  # the first of each name
        needed = header if columns.whole else [field.name for field in columns.needed]
        least = max((places[name] for name in needed), default=0) + 1
        for location, fields, error in rows if columns.header else chain([first], rows):
            if error:
                yield Text("", location=location, error=error)
            elif not fields and len(header) > 1:  # an empty line is a row only where it can be a text
                continue
            elif fields and not least <= len(fields) <= len(header):
                what = "header" if columns.header else "first row"
                counted = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
                between = repr(columns.delimiter) if columns.delimiter else "the delimiter"
                advice = f": put quotes around a text that holds {between}" if len(fields) > len(header) else ""
                yield unusable(location, f"{counted} where the {what} has {len(header)}{advice}.")
            else:
                text = columns.row(location, dict(zip(header, fields or [""], strict=False)))
                is_kept = columns.as_written and not text.error
                yield text._replace(label=KeptRow(header, fields or [""], delimiter)) if is_kept else text


def _lacking(field: Field, header: Sequence[str], columns: RowColumns) -> str:
    """Describe the error if a field is not in a header, and what to do about it."""
    # Python code names its columns in other ways.
    if not field.option.startswith("--") or field.name in header:
        return field.lacking(header)
    # A name that was given is rather a slip than a sign that there is no header.
    is_given = field.name != DEFAULT_COLUMN and not field.name.isdecimal()
    return field.lacking(header) + ("" if is_given else header_hint(header, columns))


def header_hint(header: Sequence[str], columns: RowColumns) -> str:
    """Suggest what to do if a column is missing and the header looks like data."""
    # A name of several words, or a number, is rather a text or a label than a name.
    is_data = columns.header and any(" " in name.strip() or name.strip().isdecimal() for name in header)
    way = (
        "--no-header, and --column 2 for the second column" if columns.headerless else "write a line of names above it"
    )
    return f" If this row is data: {way}." if is_data else ""


def _name_of(delimiter: str) -> str:
    return "a tab" if delimiter == "\t" else repr(delimiter)


class CsvRows:
    """Read rows with the csv module, whatever limit of a field other code of the process has set."""

    def __init__(self, lines: Iterable[str], delimiter: str) -> None:
        self._reader = csv.reader(lines, delimiter=delimiter, strict=True)

    def __iter__(self) -> Iterator[list[str]]:
        return self

    def __next__(self) -> list[str]:
        # Lines are limited before. The limit is the process's, so it is set anew for each row.
        csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST_LINE))
        return next(self._reader)


def _quoted_rows(lines: Iterable[Line], name: str, delimiter: str) -> Generator[_Cells, None, None]:
    """Yield rows of separated fields; a quoted field may span several lines."""
    read: list[Line] = []  # the row's first line, and perhaps the first later one that is not UTF-8

    def source() -> Iterator[str]:
        """Yield lines to the csv module, and append them to `read`, since it gives no line numbers."""
        size = 0
        for line in lines:
            if not read:
                size = 0
            size += len(line.text) + len(line.end)
            if not read or (line.error and len(read) == 1):
                read.append(line)
            if size > LONGEST_LINE:
                raise BertcliError(
                    f"{read[0].location}: a quotation mark opens here and does not close within "
                    f"{LONGEST_LINE:,} letters."
                )
            yield line.text.replace("\r", LONE_RETURN) + line.end

    reader = CsvRows(source(), delimiter)
    while True:
        read.clear()
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            location = read[0].location if read else name
            yield _Cells(location, [], f"{location}: not fields separated by {_name_of(delimiter)} ({error}).")
            continue
        broken = next((line.error for line in read if line.error), None)
        yield _Cells(read[0].location, [field.replace(LONE_RETURN, "\r") for field in row], broken)


def _tab_row(line: str) -> list[str]:
    """Split a line at tabs; quotes around a field are removed as in CSV, everything else is kept."""
    if '"' in line:
        try:
            (row,) = CsvRows([line.replace("\r", LONE_RETURN)], "\t")
            return [field.replace(LONE_RETURN, "\r") for field in row]
        except csv.Error:
            pass  # the quotation mark is part of the text, as in most files of this kind
    return line.split("\t") if line else []
