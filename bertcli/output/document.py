"""One finished result, printed as a table, JSON, CSV or Markdown: what `params` and `trace` show."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bertcli.errors import damaged
from bertcli.output.table import Column

Format = Literal["table", "json", "csv", "markdown"]


@dataclass(frozen=True)
class Document:
    """A table for people, with the lines below it, and the same content for programs.

    `rows` hold the cells as displayed, `record` is the whole JSON object, `lines` are the records of the CSV lines.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    below: Sequence[str]
    record: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]


class ByName:
    """Fields can also be accessed by name, as in the JSON record: `step["macs"]`. Errors: KeyError for others."""

    __iter__ = None

    def __getitem__(self, name: str) -> Any:
        if not isinstance(name, str) or name.startswith("_") or not hasattr(self, name):
            raise KeyError(name)
        found = getattr(self, name)
        if callable(found):
            raise KeyError(name)
        return found


class Documented:
    """Shown by `print` as a table, folded to the terminal's width, and by a notebook as Markdown."""

    def document(self, room: int | None = None) -> Document:
        """The same as a document; `room` is the width of the terminal, None if it is not for a terminal."""
        raise NotImplementedError

    def __str__(self) -> str:
        from bertcli.report import table_lines, terminal_width, visible  # brings rich

        document = self.document(terminal_width())
        heading, body = table_lines(document.columns, document.rows)
        return "\n".join([*heading, *body, "", *map(visible, document.below)])

    def _repr_markdown_(self) -> str:
        return _markdown(self.document())


def print_document(document: Document, format: Format) -> None:
    """Print to standard output: a table folded to the terminal (unfolded in a pipe), everything else as UTF-8."""
    if format == "table":
        from bertcli.report import print_table, visible  # brings rich

        print_table(document.columns, document.rows)
        print()
        for line in document.below:
            print(visible(line))
        return
    text = {"json": _json, "csv": _csv, "markdown": _markdown}[format](document)
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def _json(document: Document) -> str:
    try:
        return json.dumps(document.record, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    except ValueError:
        raise damaged() from None


def _csv(document: Document) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(document.lines[0].keys() if document.lines else ())
    writer.writerows([_flat(value) for value in line.values()] for line in document.lines)
    return stream.getvalue()


def _flat(value: Any) -> str | int | float | None:
    """A value in a cell: a list of names or numbers joined by commas, anything deeper as JSON."""
    if isinstance(value, list) and all(isinstance(item, str | int) for item in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _markdown(document: Document) -> str:
    rules = ["---:" if column.number else "---" for column in document.columns]
    rows = [[column.name for column in document.columns], rules, *document.rows]
    table = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
    return "\n".join([*table, "", *(f"- {_escaped(line)}" for line in document.below), ""])


def _escaped(text: str) -> str:
    """Text escaped for a Markdown table: it ends no column, emphasises nothing and opens no tag."""
    return " ".join(re.sub(r"[\\|*<`]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text).splitlines())
