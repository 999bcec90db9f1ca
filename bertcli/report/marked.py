"""Texts with what was found in them marked: in color on a terminal, and on a page."""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from bertcli.lean import lean_dataclass
from bertcli.report.shades import Mark, print_marked, shows_shades
from bertcli.report.tables import Table, cell
from bertcli.report.terminal import takes_escapes, visible

PALEST = 0.25  # of a mark, from 0 to 1: that of a score of 0
BLUE, GOLDEN = 210, 137  # the first label's hue, and the golden angle: however many follow, no two are alike


class Passage(NamedTuple):
    """A text and the marks in it, best first; `title` and `notes` stand before and after it."""

    title: str
    text: str
    marks: Sequence[Mark] = ()
    notes: Sequence[str] = ()


def mark(start: int, end: int, label: str, score: float) -> Mark:
    """A mark of characters `start` to `end`, the stronger the higher the score."""
    shade = PALEST + (1 - PALEST) * min(1.0, max(0.0, score))
    return Mark(start, end, shade, label, f"{label} {cell(score)}".strip())


def apart(marks: Iterable[Mark]) -> list[Mark]:
    """Those that overlap none of those before them, in the order of the text."""
    kept: list[Mark] = []
    for candidate in marks:
        place = bisect(kept, candidate)
        after_others = place == 0 or kept[place - 1].end <= candidate.start
        before_others = place == len(kept) or candidate.end <= kept[place].start
        if candidate.start < candidate.end and after_others and before_others:
            kept.insert(place, candidate)
    return kept


@lean_dataclass
class MarkedTable(Table):
    """A table that shows the texts themselves, with marks, where standard output shows colors; and on a page."""

    on_page = True
    passages: list[Passage] = field(default_factory=list)
    passage_of: Callable[[Mapping[str, Any]], Passage] = field(kw_only=True)
    title: str = field(kw_only=True)
    lead: str = field(kw_only=True)

    def add(self, record: Mapping[str, Any]) -> None:
        super().add(record)
        passage = self.passage_of(record)
        notes = [record["error"]] if "error" in record else passage.notes
        self.passages.append(passage._replace(marks=apart(passage.marks), notes=notes))

    def varies(self, cells: set[str]) -> bool:
        return len(self.passages) > 1  # of several texts, one alone may have rows

    def print(self) -> None:
        if not (takes_escapes() and shows_shades()):
            super().print()
            return
        for number, passage in enumerate(self.passages):
            if number:
                print()
            if passage.title:
                print(f"\x1b[1m{visible(passage.title)}\x1b[0m")
            print_marked(passage.text, passage.marks)
            for note in passage.notes:
                print(visible(note))

    def page(self, model: str) -> str:
        """A page of the texts with their marks, a color for each label, and of the table."""
        from bertcli.report.page import element, marked, page
        from bertcli.report.page import table as table_of

        labels = [mark.label for passage in self.passages for mark in passage.marks if mark.label]
        tags = [*dict.fromkeys(map(_tag, labels))]
        hues = {label: (BLUE + GOLDEN * tags.index(_tag(label))) % 360 for label in labels}
        content = []
        for title, text, marks, _ in self.passages:  # the table says what the notes say
            content += [element("h2", title)] if title else []
            content.append(marked(text, marks, hues))
        columns, rows = self.shown()
        if rows:
            content.append(table_of("What was found", columns, rows))
        return page(self.title, *content, lead=self.lead, model=model)


def _tag(label: str) -> str:
    """What B-PER and I-PER have in common."""
    return label.split("-", 1)[-1]
