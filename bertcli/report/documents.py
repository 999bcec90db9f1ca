"""Document: one result, printed as a table, JSON, CSV or Markdown; View: a result that makes its own document."""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bertcli.report.terminal import (
    Column,
    PrintFormat,
    as_json,
    folded,
    print_table,
    table_lines,
    terminal_width,
    visible,
)


class Document(NamedTuple):
    """A result in all its formats. columns, rows, below: the table, its cells as text, and the lines below it.

    record: the whole JSON object. lines: a record for each line of CSV. names: the header where there is no line.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    below: Sequence[str]
    record: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    names: Sequence[str] = ()

    def folded_below(self) -> list[str]:
        """The lines below the table, folded to the terminal's width."""
        width = terminal_width()
        return [folded(visible(line), width) for line in self.below]

    def __str__(self) -> str:
        heading, body = table_lines(self.columns, self.rows)
        return "\n".join([*heading, *body, "", *self.folded_below()])


class ByName:
    """Fields can also be accessed by name, as in the JSON record: `step["macs"]`. Errors: KeyError for others."""

    # Python would otherwise iterate by __getitem__(0), which raises KeyError.
    __iter__ = None

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or name.startswith("_") or not hasattr(self, name):
            raise KeyError(name)
        value = getattr(self, name)
        if callable(value):
            raise KeyError(name)
        return value


class Documented:
    """Base of results that `print` shows as a table, folded to the terminal's width, and a notebook as Markdown."""

    def document(self) -> Document:
        """Make the document of this result."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.document())

    def _repr_markdown_(self) -> str:
        return _markdown(self.document())


class View(ByName, Documented):
    """Base of the results of views: a document, a record, and fields by name."""

    @property
    def record(self) -> dict[str, Any]:
        """The result as a JSON record."""
        raise NotImplementedError

    def print(self) -> None:
        """Print the result to standard output as people read it in a terminal."""
        print_document(self.document(), "table")


def print_document(document: Document, format: PrintFormat) -> None:
    """Print to standard output: a table folded to the terminal (unfolded in a pipe), everything else as UTF-8."""
    if format == "table":
        lines = document.folded_below()
        # Without a row the lines below say it all, as "Equal weights: 103; different ones: 0".
        if document.rows:
            print_table(document.columns, document.rows)
            lines = ["", *lines]
        print(*lines, sep="\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(as_bytes(document, format))


def as_bytes(document: Document, format: PrintFormat) -> bytes:
    """A document as the bytes of a JSON, JSON lines, CSV or Markdown file."""
    if format == "json":
        return as_json(document.record, indent=2) + b"\n"
    if format == "jsonl":
        return b"".join(as_json(line) + b"\n" for line in document.lines)
    text = csv_of(document.lines, document.names) if format == "csv" else _markdown(document)
    return text.encode("utf-8", "backslashreplace")


def csv_of(lines: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> str:
    """Lines as CSV, below a header of all their names; `names` where there is no line."""
    names = names_of(lines) or names
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([flat(line.get(name)) for name in names] for line in lines)
    return stream.getvalue()


def names_of(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names that any of the lines has, in their order."""
    return [*dict.fromkeys(name for line in lines for name in line)]


def flat(value: Any) -> str | int | float | None:
    """A value in a cell: a list of names or numbers joined by commas, anything deeper as JSON."""
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return ", ".join(map(str, value))
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    scalar: str | int | float | None = value
    return scalar


def _markdown(document: Document) -> str:
    lines = [*markdown_rows(document.columns, document.rows), ""]
    lines += [f"- {in_markdown(line)}" for line in document.below]
    return "\n".join([*lines, ""])


def markdown_rows(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table in Markdown: heading, rule, rows."""
    names = [column.name for column in columns]
    rules = ["---:" if column.number else "---" for column in columns]
    for row in (names, rules, *rows):
        yield f"| {' | '.join(map(in_markdown, row))} |"


def in_markdown(text: str) -> str:
    """Escape a text for a Markdown table, so that it ends no column, emphasizes nothing and opens no tag."""
    return visible(" ".join(re.sub(r"[\\|*<`]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text).splitlines()))
