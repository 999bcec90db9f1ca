"""Texts with what was found in them marked: in color on a terminal, and on a page."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.files.table import Table, cell
from bertcli.report import takes_escapes, visible

if TYPE_CHECKING:
    from bertcli.page import Mark

PALEST = 0.25  # of a mark on a page, from 0 to 1: that of a score of 0
GROUNDS = (46, 43, 42, 45, 106, 103, 102, 105)  # on which black is readable, in light and dark terminals


class Found(NamedTuple):
    """Characters `start` to `end` of a text, what they are, and the score of that."""

    start: int
    end: int
    label: str
    score: float


class Passage(NamedTuple):
    """A text and what was found in it; `title` and `notes` stand before and after it."""

    title: str
    text: str
    found: Sequence[Found] = ()
    notes: Sequence[str] = ()


def apart(found: Iterable[Found]) -> list[Found]:
    """Those that overlap none of those before them, in the order of the text."""
    kept: list[Found] = []
    for one in found:
        place = bisect(kept, one)
        after_others = place == 0 or kept[place - 1].end <= one.start
        before_others = place == len(kept) or one.end <= kept[place].start
        if one.start < one.end and after_others and before_others:
            kept.insert(place, one)
    return kept


@dataclass(frozen=True)
class MarkedTable(Table):
    """A table that shows the texts themselves, with marks, where standard output shows colors; and on a page."""

    passages: list[Passage] = field(default_factory=list)
    passage_of: Callable[[Mapping[str, Any]], Passage] = field(kw_only=True)
    title: str = field(kw_only=True)
    lead: str = field(kw_only=True)

    def add(self, record: Mapping[str, Any]) -> None:
        super().add(record)
        self.passages.append(self.passage_of(record))

    def print(self) -> None:
        if takes_escapes():
            colors: dict[str, int] = {}
            print("\n\n".join("\n".join(_lines(passage, colors)) for passage in self.passages))
        else:
            super().print()

    @contextmanager
    def page_in(self, file: str) -> Iterator[Callable[[Mapping[str, Any]], None]]:
        """What takes the records of a page, which is written when all are there."""
        from bertcli.files.draft import save

        yield self.add
        save(file, self.page().encode("utf-8", "backslashreplace"))

    def page(self) -> str:
        """A page of the texts with their marks, the darker the higher the score, and of the table."""
        from bertcli.page import element, marked, page
        from bertcli.page import table as table_of

        content = []
        for title, text, found, notes in self.passages:
            content += [element("h2", title)] if title else []
            content += [marked(text, [_mark(one) for one in apart(found)]), *(element("p", note) for note in notes)]
        columns, rows = self.shown()
        if rows:
            content.append(table_of("What was found", [(column.name, column.number) for column in columns], rows))
        return page(self.title, *content, lead=self.lead)


def _mark(found: Found) -> Mark:
    from bertcli.page import Mark

    shade = PALEST + (1 - PALEST) * min(1.0, max(0.0, found.score))
    return Mark(found.start, found.end, shade, found.label, f"{found.label} {cell(found.score)}".strip())


def _lines(passage: Passage, colors: dict[str, int]) -> Iterator[str]:
    """A passage for a terminal; labels get colors in the order in which they come."""
    text, parts, done = passage.text, [], 0
    for start, end, label, score in apart(passage.found):
        color = GROUNDS[colors.setdefault(label, len(colors)) % len(GROUNDS)]
        bold = f"\x1b[1m {visible(label)}" if label else ""
        marked = f"\x1b[30;{color}m{_shown(text[start:end])}{bold}\x1b[22m {cell(score)}\x1b[0m"
        parts += [_shown(text[done:start]), marked]
        done = end
    if passage.title:
        yield f"\x1b[1m{visible(passage.title)}\x1b[0m"
    yield "".join([*parts, _shown(text[done:])])
    yield from map(visible, passage.notes)


def _shown(text: str) -> str:
    """A text whose lines stay lines, while other control characters are escaped."""
    return "\n".join(map(visible, text.split("\n")))
