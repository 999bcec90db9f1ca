"""Attention weights as a table of shades: lines of cells for a terminal, with or without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from bertcli.attention.weights import Selected, cells

NUMBER = 3  # cells of a percentage


class Cell(NamedTuple):
    """Part of a line; `shade`, 0 to 1, says how dark it is; None for a label."""

    text: str
    shade: float | None = None


Line = list[Cell]


def shaded_lines(selected: Selected, room: int | None) -> Iterator[Line]:
    """A row for each query token, a column for each key token, weights in percent.

    If columns headed by whole tokens do not fit into `room`, the headings are written downwards; columns that still do
    not fit follow in further tables.
    """
    labels = selected.labels
    beside = max(map(cells, labels)) + 1
    widths = [max(cells(label), NUMBER + 1) + 1 for label in labels]
    if room is None or beside + sum(widths) <= room:
        yield from _panel(selected, slice(None), [[label] for label in labels], widths, beside)
        return
    width = NUMBER + 2
    count = max(1, (room - beside) // width)
    for first in range(0, len(labels), count):
        some = slice(first, first + count)
        if first:
            yield []
        yield from _panel(selected, some, [list(label) for label in labels[some]], [width] * count, beside)


def _panel(
    selected: Selected, columns: slice, heads: list[list[str]], widths: Sequence[int], beside: int
) -> Iterator[Line]:
    for letters in _standing(heads):
        yield [Cell(" " * beside), *(Cell(_right(text, width)) for text, width in zip(letters, widths, strict=False))]
    for label, weights in zip(selected.labels, selected.weights, strict=True):
        numbers = [
            Cell(f"{100 * float(weight):{width}.0f}", float(weight) / (selected.largest or 1))
            for weight, width in zip(weights[columns], widths, strict=False)
        ]
        yield [Cell(_right(label, beside - 1) + " "), *numbers]


def _standing(heads: list[list[str]]) -> Iterator[tuple[str, ...]]:
    """Lines of headings, bottom-aligned, however many lines each has."""
    lines = zip_longest(*(reversed(head) for head in heads), fillvalue="")
    yield from reversed(list(lines))


def _right(text: str, width: int) -> str:
    return " " * (width - cells(text)) + text
