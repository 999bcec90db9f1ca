"""From the probabilities of a text's pieces to its entities: pieces to words, words to groups, windows to one text.

Equal to transformers' token-classification pipeline, with one correction: all pieces of a group are spelled at once, so
that a character that a byte-level tokenizer has split is put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Aggregation = Literal["none", "simple", "first", "max", "average"]
Probabilities = NDArray[np.float64]
Spell = Callable[[Sequence[str]], str]  # what pieces spell together


class Piece(NamedTuple):
    """A token that stands for text: its position among the tokens, its range of characters and its spelling.

    `continues`: it belongs to the word of the piece before it.
    """

    position: int
    start: int
    end: int
    spelling: str
    continues: bool


class Entity(NamedTuple):
    """Pieces that have one label, or one tag: a label without B- and I-; `position` is that of the first."""

    label: str
    score: float
    word: str
    start: int
    end: int
    position: int


class _Labelled(NamedTuple):
    """A piece, or all pieces of a word, with the best label and its probability."""

    label: str
    score: float
    pieces: Sequence[Piece]

    @property
    def begins(self) -> bool:
        return self.label.startswith("B-")

    @property
    def tag(self) -> str:
        return self.label[2:] if self.label.startswith(("B-", "I-")) else self.label


def continues(piece: str, text: str, start: int, end: int, prefix: str | None) -> bool:
    """Whether the piece that stands for text[start:end] belongs to the word before it.

    A tokenizer that marks such pieces with a prefix (WordPiece: ##) makes them longer than their text. Others do not
    say: then it does if it neither begins the text nor has a space before it.
    """
    if prefix:
        return len(piece) != end - start
    return start > 0 and " " not in text[start - 1 : start + 1]


def entities(
    pieces: Sequence[Piece],
    probabilities: Probabilities,
    labels: Sequence[str],
    aggregation: Aggregation,
    ignore: Collection[str],
    spell: Spell,
) -> list[Entity]:
    """The entities of a window, in order, from the probabilities [piece, label] of its pieces.

    none: every piece is one. simple: every piece has its best label, and neighbors of one tag are grouped. first, max,
    average: the same for words, whose probabilities are those of the first piece, of the piece with the highest
    probability of all, or the mean. Those whose label or tag is in `ignore` are left out at the end.
    """
    found = _labelled(pieces, probabilities, labels, aggregation)
    if aggregation == "none":
        every = [_entity([one], one.label, one.pieces[0].spelling) for one in found]
    else:
        every = [_grouped(group, spell) for group in _groups(found)]
    return [entity for entity in every if entity.label not in ignore]


def _labelled(
    pieces: Sequence[Piece], probabilities: Probabilities, labels: Sequence[str], aggregation: Aggregation
) -> Iterator[_Labelled]:
    by_word = aggregation in ("first", "max", "average")
    begins = [place for place, piece in enumerate(pieces) if not (by_word and place and piece.continues)]
    for begin, end in pairwise([*begins, len(pieces)]):
        row = _merged(probabilities[begin:end], aggregation)
        best = int(row.argmax())
        yield _Labelled(labels[best], float(row[best]), pieces[begin:end])


def _merged(rows: Probabilities, aggregation: Aggregation) -> Probabilities:
    """The probabilities [label] of a word from those of its pieces."""
    if aggregation == "average":
        return np.asarray(rows.mean(axis=0))
    return np.asarray(rows[rows.max(axis=1).argmax() if aggregation == "max" else 0])


def _groups(labelled: Iterator[_Labelled]) -> Iterator[list[_Labelled]]:
    """Neighbors of one tag. B- begins a group; I-, or a label without either, continues one of the same tag."""
    group: list[_Labelled] = []
    for one in labelled:
        if group and (one.begins or one.tag != group[-1].tag):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def _grouped(group: list[_Labelled], spell: Spell) -> Entity:
    tag = group[0].label.split("-", 1)[-1]  # of any prefix: E-PER and S-PER are PER too, though they are not joined
    return _entity(group, tag, spell([piece.spelling for one in group for piece in one.pieces]))


def _entity(group: list[_Labelled], label: str, word: str) -> Entity:
    first, last = group[0].pieces[0], group[-1].pieces[-1]
    return Entity(label, sum(one.score for one in group) / len(group), word, first.start, last.end, first.position)


def merged(windows: Sequence[Sequence[Entity]]) -> list[Entity]:
    """The entities of a text read in overlapping windows: of two that overlap the longer, then the likelier one."""
    if len(windows) == 1:
        return list(windows[0])
    found: list[Entity] = []
    for entity in sorted((entity for window in windows for entity in window), key=lambda entity: entity.start):
        if not found or not found[-1].start <= entity.start < found[-1].end:
            found.append(entity)
        elif (entity.end - entity.start, entity.score) > (found[-1].end - found[-1].start, found[-1].score):
            found[-1] = entity
    return found


def merged_pieces(windows: Sequence[Sequence[Entity]]) -> list[Entity]:
    """The same where every piece is an entity: of one that is in two windows, the likelier label."""
    found: dict[int, Entity] = {}
    for entity in (entity for window in windows for entity in window):
        if entity.position not in found or entity.score > found[entity.position].score:
            found[entity.position] = entity
    return [found[position] for position in sorted(found)]
