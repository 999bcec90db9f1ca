"""Drawings, each one self-contained SVG file: a grid of shaded cells, and bars to both sides of a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from bertcli.report.tables import cell_count, visible

CELL, FONT, MARGIN = 20, 12, 10
LETTER = 0.62  # width of a letter as a fraction of the font size
FOR, AGAINST = "#08306b", "#8b1a10"
FAINTEST = 1 / 255  # of full strength: anything below is as white as the page
BAR = 320  # width of the bars, both sides together


class Cell(NamedTuple):
    """A shaded cell: `shade` -1 to 1, what is written in it, and what is said when it is pointed at."""

    shade: float
    text: str
    title: str


def grid(title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[Cell]]) -> str:
    """A table of cells, as dark as their shade; the columns' headings stand upright."""
    return "\n".join(_grid(visible(title), [*map(visible, rows)], [*map(visible, columns)], cells)) + "\n"


def bars(title: str, rows: Sequence[tuple[str, float, str]]) -> str:
    """For each row a label, a bar from the middle to the right or (negative) to the left, and what is written there.

    The longest bar has the size 1.
    """
    return "\n".join(_bars(visible(title), rows)) + "\n"


def _grid(title: str, rows: list[str], columns: list[str], cells: Sequence[Sequence[Cell]]) -> Iterator[str]:
    wide = max([CELL, *(text_width(cell.text) + MARGIN for row in cells for cell in row if cell.text)])
    beside = max(map(text_width, rows)) + 2 * MARGIN
    top = max(map(text_width, columns)) + 2 * MARGIN + 3 * FONT
    inner_width, inner_height = wide * len(columns), CELL * len(rows)
    yield from _opening(title, beside + inner_width + MARGIN, top + inner_height + MARGIN)
    for i, label in enumerate(rows):
        x, y = beside - MARGIN / 2, top + CELL * (i + 0.5) + FONT / 3
        yield f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end">{escape(label)}</text>'
    for j, label in enumerate(columns):
        x, y = beside + wide * (j + 0.5) + FONT / 3, top - MARGIN / 2
        yield f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)">{escape(label)}</text>'
    yield f'<g transform="translate({beside:.1f} {top:.1f})">'
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            yield from _cell(cell, wide * j, CELL * i, wide)
    yield f'</g><rect x="{beside:.1f}" y="{top:.1f}" width="{inner_width:.1f}" height="{inner_height}" {FRAME}/></svg>'


FRAME = 'fill="none" stroke="#999"'


def _cell(cell: Cell, x: float, y: float, wide: float) -> Iterator[str]:
    strength = min(1.0, abs(cell.shade))
    if strength >= FAINTEST or cell.text:
        color = AGAINST if cell.shade < 0 else FOR
        yield (
            f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{CELL}" fill="{color}" '
            f'fill-opacity="{strength:.3f}"><title>{escape(visible(cell.title))}</title></rect>'
        )
    if cell.text:
        ink = "#fff" if strength > 0.5 else "#222"
        x, y = x + MARGIN / 2, y + CELL / 2 + FONT / 3
        yield f'<text x="{x:.1f}" y="{y:.1f}" fill="{ink}">{escape(visible(cell.text))}</text>'


def _bars(title: str, rows: Sequence[tuple[str, float, str]]) -> Iterator[str]:
    labels = [visible(label) for label, _, _ in rows]
    beside = max(map(text_width, labels), default=0) + 2 * MARGIN
    behind = max((text_width(note) for _, _, note in rows), default=0) + 2 * MARGIN
    top = 4 * FONT
    negative = any(size < 0 for _, size, _ in rows)
    middle, longest = beside + (BAR / 2 if negative else 0), BAR / 2 if negative else BAR
    yield from _opening(title, beside + BAR + behind, top + CELL * len(rows) + MARGIN)
    for i, (label, (_, size, note)) in enumerate(zip(labels, rows, strict=True)):
        y, length = top + CELL * i, abs(size) * longest
        x, baseline = middle - (length if size < 0 else 0), y + CELL / 2 + FONT / 3
        yield f'<text x="{beside - MARGIN:.1f}" y="{baseline:.1f}" text-anchor="end">{escape(label)}</text>'
        color = AGAINST if size < 0 else FOR
        yield f'<rect x="{x:.1f}" y="{y + 3}" width="{length:.1f}" height="{CELL - 6}" fill="{color}"/>'
        yield f'<text x="{beside + BAR + MARGIN:.1f}" y="{baseline:.1f}">{escape(visible(note))}</text>'
    yield f'<path d="M{middle:.1f} {top}V{top + CELL * len(rows)}" {FRAME}/></svg>'


def _opening(title: str, width: float, height: float) -> Iterator[str]:
    width = max(width, text_width(title) + 2 * MARGIN)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="{FONT}" fill="#222">'
    )
    yield f"<title>{escape(title)}</title>"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    yield f'<text x="{MARGIN}" y="{MARGIN + FONT}">{escape(title)}</text>'


def text_width(text: str) -> float:
    """Width of a text in the font of the drawing."""
    return FONT * LETTER * cell_count(text)
