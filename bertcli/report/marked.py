"""MarkedTable: the table of tag and answer, which also shows the texts with entities or answers marked in color."""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bertcli.report.shades import Mark, print_marked, shows_shades
from bertcli.report.tables import Table, cell
from bertcli.report.terminal import takes_escapes, visible

# Shade of a mark with score 0; a score of 1 has shade 1.
PALEST = 0.25
# Degrees: the first label's hue, and the golden angle from one to the next, so that no two of many are alike.
BLUE, GOLDEN = 210, 137


class Passage(NamedTuple):
    """A text with its marks, the best first, a title above it and notes below it."""

    title: str
    text: str
    marks: Sequence[Mark] = ()
    notes: Sequence[str] = ()


def mark(start: int, end: int, label: str, score: float) -> Mark:
    """Mark the characters `start` to `end`; the color is the stronger the higher the score, from 0 to 1."""
    shade = PALEST + (1 - PALEST) * min(1.0, max(0.0, score))
    return Mark(start, end, shade, label, f"{label} {cell(score)}".strip())


def without_overlaps(marks: Iterable[Mark]) -> list[Mark]:
    """Drop each mark that overlaps an earlier (better) one; the rest are in the order of the text."""
    kept: list[Mark] = []
    for candidate in marks:
        number = bisect(kept, candidate)
        after_others = number == 0 or kept[number - 1].end <= candidate.start
        before_others = number == len(kept) or candidate.end <= kept[number].start
        if candidate.start < candidate.end and after_others and before_others:
            kept.insert(number, candidate)
    return kept


def _each_its_own(labels: Sequence[str]) -> Mapping[str, str]:
    return {label: label for label in labels}


@dataclass(frozen=True, eq=False, repr=False)
class MarkedTable(Table):
    """A table that is printed as its texts with marks where standard output shows colors, and drawn so on a page."""

    on_page = True
    passages: list[Passage] = field(default_factory=list)
    passage_of: Callable[[Mapping[str, Any]], Passage] = field(kw_only=True)
    # The type of each label of a page; labels of one type, as B-PER and I-PER, have one color.
    types_of: Callable[[Sequence[str]], Mapping[str, str]] = field(default=_each_its_own, kw_only=True)
    title: str = field(kw_only=True)
    lead: str = field(kw_only=True)
    # The table beside the texts on a page, if it is another one.
    beside: Table | None = field(default=None, kw_only=True)
    beside_title: str = field(default="", kw_only=True)
    # False where the command line, which a page shows, may hold texts that are nobody's business.
    says_command: bool = field(default=True, kw_only=True)

    def add(self, record: Mapping[str, Any]) -> None:
        super().add(record)
        if self.beside is not None:
            self.beside.add(record)
        passage = self.passage_of(record)
        notes = [record["error"]] if "error" in record else passage.notes
        self.passages.append(passage._replace(marks=without_overlaps(passage.marks), notes=notes))

    def varies(self, cells: set[str]) -> bool:
        # With several texts each row has the id, even if only one text has rows.
        return len(self.passages) > 1

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
        """The page: the texts with their marks, a color for each label, and the table."""
        from bertcli.report.page import element, marked, page, side_by_side
        from bertcli.report.page import table as table_of

        labels = [mark.label for passage in self.passages for mark in passage.marks if mark.label]
        types = self.types_of([*dict.fromkeys(labels)])
        order = [*dict.fromkeys(types[label] for label in labels)]
        hues = {label: (BLUE + GOLDEN * order.index(types[label])) % 360 for label in labels}
        content = []
        # Notes are left out: the table has the same.
        for title, text, marks, _ in self.passages:
            if title:
                content.append(element("h2", title))
            content.append(marked(text, marks, hues))
        columns, rows = (self.beside or self).displayed()
        caption = self.beside_title or f"{self.title} in order"
        body = [side_by_side(content, table_of(caption, columns, rows))] if rows else content
        command = None if self.says_command else ""
        return page(self.title, *body, lead=self.lead, model=model, command=command)
