"""Attention weights as a drawing: one self-contained SVG file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from bertcli.attention.weights import Selected, cells, printable

CELL, FONT, MARGIN = 20, 12, 10
LETTER = 0.62  # width of a letter as a fraction of the font size
INK = "#08306b"
FAINTEST = 1 / 255  # of the largest weight: anything below is as white as the page


def svg(selected: Selected) -> str:
    """One table of weights: rows are queries, columns are keys; pointing at a cell shows its weight."""
    return "\n".join(_lines(selected)) + "\n"


def _lines(selected: Selected) -> Iterator[str]:
    labels, weights = selected.labels, selected.weights
    beside = max(map(_width, labels)) + 2 * MARGIN
    top, side = beside + 3 * FONT, CELL * len(labels)
    title = f"{printable(selected.title)}; darkest: {100 * selected.largest:.1f} %"
    width, height = max(beside + side + MARGIN, _width(title) + 2 * MARGIN), top + side + MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace" '
        f'font-size="{FONT}" fill="#222">'
    )
    yield f"<title>{escape(title)}</title>"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    yield f'<text x="{MARGIN}" y="{MARGIN + FONT}">{escape(title)}</text>'
    for i, label in enumerate(labels):
        middle = CELL * (i + 0.5)
        x, y = beside - MARGIN / 2, top + middle + FONT / 3
        yield f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="end">{escape(label)}</text>'
        x, y = beside + middle + FONT / 3, top - MARGIN / 2
        yield f'<text transform="translate({x:.1f} {y:.1f}) rotate(-90)">{escape(label)}</text>'
    yield f'<g transform="translate({beside:.1f} {top:.1f})" fill="{INK}">'
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            opacity = float(weight) / (selected.largest or 1)
            if opacity >= FAINTEST:
                words = escape(f"{labels[i]} \N{RIGHTWARDS ARROW} {labels[j]}: {100 * float(weight):.1f} %")
                yield (
                    f'<rect x="{CELL * j}" y="{CELL * i}" width="{CELL}" height="{CELL}" '
                    f'fill-opacity="{opacity:.3f}"><title>{words}</title></rect>'
                )
    yield f'</g><rect x="{beside:.1f}" y="{top:.1f}" width="{side}" height="{side}" fill="none" stroke="#999"/>'
    yield "</svg>"


def _width(text: str) -> float:
    """Width of a text in the font of the drawing."""
    return FONT * LETTER * cells(text)
