"""Redact a text: replace each entity by its label in brackets, or by a given word (tag --redact)."""

from collections.abc import Collection, Iterable
from typing import NamedTuple


class Found(NamedTuple):
    """An entity, or a piece of one, in a text: its characters, its label without B- and I-, and how likely it is."""

    start: int
    end: int
    label: str
    score: float
    continues: bool = False  # the entity of the piece before it, if that is of the same label


class Hidden(NamedTuple):
    """A range of characters to replace; `longest`: the length of the entity that gives the label."""

    start: int
    end: int
    label: str
    longest: int


class Redaction(NamedTuple):
    """The entities to replace: of these labels (None: any but O, which is no entity), with at least this score.

    word: what replaces them; None: their label in brackets.
    """

    word: str | None = None
    only: Collection[str] | None = None
    threshold: float | None = None

    def of(self, text: str, found: Iterable[Found]) -> str:
        """Replace the entities in a text; the spaces around them stay.

        Entities that overlap are one replacement, with the label of the longest; so are those of one label that adjoin,
        and pieces of one entity with the space between them.
        """
        pieces, end = [], 0
        for one in _together(text, filter(self._chosen, found)):
            pieces += [text[end : one.start], f"[{one.label}]" if self.word is None else self.word]
            end = one.end
        return "".join([*pieces, text[end:]])

    def _chosen(self, found: Found) -> bool:
        is_chosen = found.label != "O" if self.only is None else found.label in self.only
        return is_chosen and found.score >= (self.threshold or 0.0)


def _together(text: str, found: Iterable[Found]) -> list[Hidden]:
    """Join entities that overlap or adjoin into ranges to replace, in the order of the text."""
    hidden: list[Hidden] = []
    for one in sorted(found):
        covered = text[one.start : one.end]
        start, end = one.start + len(covered) - len(covered.lstrip()), one.start + len(covered.rstrip())
        if start >= end:
            continue
        last = hidden[-1] if hidden else Hidden(0, 0, "", 0)
        between = text[last.end : start]
        same = one.label == last.label and (not between or (one.continues and between.isspace()))
        if start >= last.end and not same:
            hidden.append(Hidden(start, end, one.label, end - start))
        else:
            label = one.label if end - start > last.longest else last.label
            hidden[-1] = Hidden(last.start, max(end, last.end), label, max(end - start, last.longest))
    return hidden
