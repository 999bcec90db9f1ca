"""Texts in the columns of tables whose fields are separated by commas or tabs; the first row names the columns."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import NamedTuple

from bertcli.errors import BertcliError
from bertcli.inputs.texts import Text
from bertcli.inputs.wanted import Wanted, unusable
from bertcli.lines import LONGEST, Line, LineStream
from bertcli.untrusted import shown

LONE_RETURN = "\udc0d"  # replaces a \r inside a line while the csv module reads it, which would end the line there


class _Row(NamedTuple):
    """Fields as they stand in the file, or what is wrong with them."""

    place: str
    fields: list[str]
    error: str | None = None


def comma_separated(lines: LineStream, wanted: Wanted) -> Iterator[Text]:
    """Rows by the rules of CSV: a quoted field may hold commas, doubled quotes and line ends."""
    return _columns(_quoted_rows(lines), wanted)


def tab_separated(lines: LineStream, wanted: Wanted) -> Iterator[Text]:
    """One row per line."""
    return _columns((_Row(line.place, _tab_row(line.text), line.error) for line in lines), wanted)


def _columns(rows: Generator[_Row, None, None], wanted: Wanted) -> Iterator[Text]:
    """The wanted columns of a table whose first row is its header; an error in the header is fatal."""
    with closing(rows):
        place, header, error = next(rows, _Row("", []))
        if error:
            raise BertcliError(error)
        columns = [_place_in(header, name, place, wanted) for name in wanted.names] if place else []
        for place, fields, error in rows:
            if error:
                yield Text("", place=place, error=error)
            elif len(fields) > len(header) or max(columns) >= len(fields):
                yield unusable(place, f"{len(fields)} field(s) where the header has {len(header)}.")
            else:
                yield wanted.text(place, [fields[column] for column in columns])


def _place_in(header: list[str], name: str, place: str, wanted: Wanted) -> int:
    if header.count(name) == 1:
        return header.index(name)
    wrong = "more than one column" if name in header else "no column"
    known, see = ", ".join(map(shown, header[:20])), wanted.option(name)
    raise BertcliError(f"{place}: there is {wrong} {shown(name)}; the header has {known} (see {see}).")


def _quoted_rows(lines: LineStream) -> Generator[_Row, None, None]:
    """Rows of comma-separated fields; a quoted field may span several lines."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST))  # the limit below applies first
    read: list[Line] = []

    def source() -> Iterator[str]:
        size = 0
        for line in lines:
            size = len(line.text) + (size if read else 0)
            read.append(line)
            if size > LONGEST:
                raise BertcliError(
                    f"{read[0].place}: a quotation mark opens here and does not close within {LONGEST:,} letters."
                )
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
            yield _Row(place, [], f"{place}: not comma-separated values ({error}).")
            continue
        broken = next((line.error for line in read if line.error), None)
        yield _Row(read[0].place, [field.replace(LONE_RETURN, "\r") for field in row] or [""], broken)


def _tab_row(line: str) -> list[str]:
    """Fields between tabs, as they stand, except that quotes around a field are removed as in CSV."""
    if '"' in line:
        try:
            (row,) = csv.reader([line.replace("\r", LONE_RETURN)], delimiter="\t", strict=True)
            return [field.replace(LONE_RETURN, "\r") for field in row]
        except csv.Error:
            pass  # the quotation mark is part of the text, as in most files of this kind
    return line.split("\t")
