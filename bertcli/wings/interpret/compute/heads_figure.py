"""The figure of `bertcli heads`: pictures of the attention weights, with the numbers of the page's grid below them."""

import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from struct import pack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.report.page import Markup, element
from bertcli.report.shades import HeatMap, Shaded
from bertcli.report.terminal import Column
from bertcli.wings.evaluate.report.drawing import (
    GAP,
    HALF,
    LABELS,
    LINE,
    MARGIN,
    NUMBERS,
    QUIET,
    WIDTH,
    FigurePart,
    beside,
    ground,
    heat_map,
    label,
    sentence,
    shape,
    shortened,
    stacked,
    text_width,
    upright,
)
from bertcli.wings.interpret.compute.attention import Attention

# In points: the largest picture of one head, and the smallest number below it.
LARGEST, LEAST = 50.0, 5.4
# Tokens of a text whose weights are a table of numbers; those of a longer one are a picture.
MOST_NUMBERS = 20
# Of a picture: pixels at least, so that no program that smooths it blurs a weight into the next.
LEAST_PIXELS = 160
# As heads.js draws a weight w from 0 to 1: white for 0, dark blue for 1, in between by this power of w.
DARKEST, POWER = (8, 48, 107), 0.7


def attention_parts(attention: Attention) -> list[FigurePart]:
    """One head's weights, or the mean of a layer's: in percent for a short text, as a picture for a long one."""
    weights, pieces = attention.weights, attention.pieces
    caption = f"{attention.title}, from each token (row) to the tokens it attends to (columns)"
    if len(pieces) > MOST_NUMBERS:
        return [stacked([sentence(caption, QUIET), _large(weights, pieces, WIDTH - 2 * MARGIN)])]
    largest = float(weights.max()) or 1.0
    rows = []
    for piece, row in zip(pieces, weights.tolist(), strict=True):
        cells = [Shaded(f"{100 * weight:.0f}", weight / largest, note=f"{weight:.4f}") for weight in row]
        rows.append([piece, *cells])
    return [heat_map(HeatMap(f"{caption}, in percent", [Column(""), *map(Column, pieces)], rows))]


class Pictures(NamedTuple):
    """The weights of all heads [layer, head, query, key], and of those that are drawn the number below each.

    numbers: by layer and head, which count from 1.
    """

    weights: NDArray[Any]
    numbers: Mapping[tuple[int, int], Shaded]

    def parts(self, measure: str) -> list[FigurePart]:
        """A picture of each head, layers down and heads across; `measure` is what the numbers are.

        Heads that have no room in one row of pictures are divided into several grids.
        """
        heads = max(head for _, head in self.numbers)
        caption = (
            f"Attention weights of each head (layers down, heads across) from tokens (rows) to tokens, and {measure}"
        )
        room = WIDTH - 2 * MARGIN - self._left
        widest = max(text_width(number, LEAST) for number in self.numbers.values()) + 1
        grids = -(-heads * widest // room)
        each = -(-heads // int(grids))
        pitch = min(LARGEST + 4, room / each)
        size = min(NUMBERS, LEAST * (pitch - 1) / (widest - 1))
        parts = [sentence(caption, QUIET)]
        for first in range(1, heads + 1, each):
            parts.append(self._grid(range(first, min(first + each, heads + 1)), pitch, size))
        return [stacked(parts, GAP)]

    @property
    def _layers(self) -> int:
        return max(layer for layer, _ in self.numbers)

    @property
    def _left(self) -> float:
        """The room for the numbers of layers."""
        return text_width(str(self._layers), LABELS) + 4

    def _grid(self, heads: range, pitch: float, number_size: float) -> FigurePart:
        """The pictures of some heads, every `pitch` points."""
        size = pitch - 2
        top, below = LINE * LABELS + 2, LINE * NUMBERS
        shapes = []
        for column, head in enumerate(heads):
            name = f"Head {head}" if pitch > text_width("Head 10", LABELS) else str(head)
            shapes.append(label(name, self._left + column * pitch + size / 2, top / 2, anchor="middle"))
        y = top
        for layer in range(1, self._layers + 1):
            shapes.append(label(str(layer), 0, y + size / 2))
            for column, head in enumerate(heads):
                number = self.numbers.get((layer, head))
                if number is None:
                    continue
                x, under = self._left + column * pitch, y + size + 0.5
                shapes.append(_picture(self.weights[layer - 1, head - 1], x, y, size))
                shapes.append(shape("rect", x=x, y=under, width=size, height=below, fill=ground(number.shade)))
                shapes.append(label(number, x + size / 2, under + below / 2, number_size, "middle"))
            y += size + below + 3
        return FigurePart(y, shapes)


def rollout_part(layers: NDArray[Any], mean: NDArray[Any], pieces: Sequence[str]) -> FigurePart:
    """The rollout through all layers and the mean weights [token, token] as pictures beside each other."""
    names = ("Rollout through all layers", "Mean weight")
    pictures = [_large(matrix, pieces, HALF) for matrix in (layers, mean)]
    through, average = (stacked([sentence(name, QUIET), part]) for name, part in zip(names, pictures, strict=True))
    return beside(through, average)


def _large(weights: NDArray[Any], pieces: Sequence[str], width: float) -> FigurePart:
    """A picture of weights [row, column] with its tokens; where these would overlap, every second or third of them."""
    names = [shortened(piece, NUMBERS, 45) for piece in pieces]
    longest = max(text_width(name, NUMBERS) for name in names) + 3
    size = width - longest
    step = size / len(pieces)
    every = -(-LINE * NUMBERS // step)
    shapes = [_picture(weights, longest, longest, size)]
    for i, name in enumerate(names):
        if i % every == 0:
            at = longest + (i + 0.5) * step
            shapes += [label(name, longest - 3, at, NUMBERS, "end"), upright(name, at, longest - 3, NUMBERS)]
    return FigurePart(longest + size, shapes)


def _picture(weights: NDArray[Any], x: float, y: float, size: float) -> Markup:
    """Weights from 0 to 1 as a picture without texts, in a thin frame."""
    levels = np.round(255 * np.clip(weights, 0, 1)).astype(np.uint8)
    times = -(-LEAST_PIXELS // len(levels))
    data = b64encode(_png(levels.repeat(times, axis=0).repeat(times, axis=1))).decode()
    picture = shape("image", x=x, y=y, width=size, height=size, href=f"data:image/png;base64,{data}")
    return element(
        "g", picture, shape("rect", x=x, y=y, width=size, height=size, fill="none", stroke="#c9c9d1", stroke_width=0.5)
    )


def _png(levels: NDArray[np.uint8]) -> bytes:
    """A picture [row, column] of levels from 0 to 255 as a PNG file (ISO/IEC 15948) whose palette has their colors."""
    height, width = levels.shape
    strengths = (np.arange(256) / 255) ** POWER
    palette = np.round(255 + strengths[:, None] * (np.array(DARKEST) - 255)).astype(np.uint8)
    # Before each row stands its filter: none.
    rows = np.pad(levels, ((0, 0), (1, 0)))
    chunks = {
        b"IHDR": pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0),
        b"PLTE": palette.tobytes(),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    parts = [pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data)) for name, data in chunks.items()]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
