"""Attention weights of a traced pass for people to look at: shades in a terminal, a page, a drawing, a matrix."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.analysis.trace import Trace
from bertcli.errors import BertcliError, damaged
from bertcli.models.config import Config
from bertcli.report.documents import Document
from bertcli.report.page import element, page
from bertcli.report.tables import Column, cell_count, visible

PATH = "encoder.layers.{}.attention.softmax"
Weights = NDArray[np.float32]


class Choice(NamedTuple):
    """A layer, and one of its heads or (None) the mean of all; both count from 0, as in the paths of a trace."""

    layer: int
    head: int | None


@dataclass(frozen=True)
class Selected:
    """One table of weights [query token, key token]; every row sums to 1."""

    title: str
    labels: list[str]  # the tokens, with control characters escaped
    weights: Weights

    @property
    def largest(self) -> float:
        """The largest weight, which gets the darkest shade."""
        return float(self.weights.max())


@dataclass(frozen=True)
class Attention:
    """The weights of all layers [layer, head, token, token] of one sentence."""

    model: str
    pieces: list[str]
    weights: Weights

    def select(self, choice: Choice) -> Selected:
        """One head's weights, or the mean of a layer's heads."""
        layer = self.weights[choice.layer]
        mean = choice.head is None
        which = f"mean of {len(layer)} heads" if mean else f"head {choice.head}"
        title = f"{self.model}: layer {choice.layer}, {which} ({PATH.format(choice.layer)})"
        weights = layer.mean(axis=0, dtype=np.float64).astype(np.float32) if mean else layer[choice.head]
        return Selected(title, [visible(piece) for piece in self.pieces], weights)

    def record(self, choice: Choice) -> dict[str, Any]:
        """The chosen weights for JSON: of one head a matrix, of a layer one for every head."""
        layer = self.weights[choice.layer]
        chosen = layer if choice.head is None else layer[choice.head]
        return {"layer": choice.layer, "head": choice.head, "tokens": self.pieces, "weights": chosen.tolist()}


def parse_choice(text: str, config: Config) -> Choice:
    """Parse `LAYER` or `LAYER.HEAD`; the BertcliError for any other text says which exist."""
    layers, heads = config.num_hidden_layers, config.num_attention_heads
    match = re.fullmatch(r"(\d{1,9})(?:\.(\d{1,9}))?", text, re.ASCII)
    if match is None:
        raise BertcliError(
            f"'{text}' is not a LAYER or LAYER.HEAD: give a layer, 0 to {layers - 1}, as in 0 or 0.{heads - 1}."
        )
    choice = Choice(int(match[1]), None if match[2] is None else int(match[2]))
    if not layers:
        raise BertcliError("This model has no layers, so there is no attention to show.")
    if choice.layer >= layers:
        raise BertcliError(f"There is no layer {choice.layer}: this model has layers 0 to {layers - 1}.")
    if choice.head is not None and choice.head >= heads:
        raise BertcliError(f"There is no head {choice.head}: this model has heads 0 to {heads - 1}.")
    return choice


def keeps_attention(path: str) -> bool:
    """Whether a step's result is attention weights: for `bertcli.trace(model, keep=keeps_attention)`."""
    return path.endswith(".attention.softmax")


def attention_of(trace: Trace, pieces: list[str]) -> Attention:
    """The weights a trace has kept for its first sentence. Errors: BertcliError for weights that are not finite."""
    layers = [array for path, array in trace.arrays.items() if keeps_attention(path)]
    weights = np.stack([layer[0] if layer.ndim == 4 else layer for layer in layers])  # one sentence has no batch axis
    if not np.isfinite(weights).all():
        raise damaged()
    return Attention(trace.model, pieces, weights)


def attention_document(attention: Attention, choice: Choice, trace: Trace) -> Document:
    """For CSV and Markdown a matrix (rows are queries, columns are keys) headed by tokens; for JSON added to the trace.

    Columns of CSV are numbered, since a token may occur twice.
    """
    selected = attention.select(choice)
    columns = [Column("Token"), *(Column(label, number=True) for label in selected.labels)]
    rows = [
        [label, *(f"{float(weight):.4f}" for weight in weights)]
        for label, weights in zip(selected.labels, selected.weights, strict=True)
    ]
    heads = [f"{i} {piece}" for i, piece in enumerate(attention.pieces)]
    lines = [
        {"token": piece, **dict(zip(heads, weights.tolist(), strict=True))}
        for piece, weights in zip(attention.pieces, selected.weights, strict=True)
    ]
    record = {**trace.record(), "attention": attention.record(choice)}
    return Document(columns, rows, [selected.title], record, lines)


NUMBER = 3  # cells of a percentage


class Shade(NamedTuple):
    """Part of a line; `shade`, 0 to 1, says how dark it is; None for a label."""

    text: str
    shade: float | None = None


Line = list[Shade]


def shaded_lines(selected: Selected, width: int | None) -> Iterator[Line]:
    """A row for each query token, a column for each key token, weights in percent.

    If columns headed by whole tokens do not fit into `width`, the headings are written downwards; columns that still
    do not fit follow in further tables.
    """
    labels = selected.labels
    beside = max(map(cell_count, labels)) + 1
    widths = [max(cell_count(label), NUMBER + 1) + 1 for label in labels]
    if width is None or beside + sum(widths) <= width:
        yield from _panel(selected, slice(None), [[label] for label in labels], widths, beside)
        return
    each = NUMBER + 2
    count = max(1, (width - beside) // each)
    for first in range(0, len(labels), count):
        some = slice(first, first + count)
        if first:
            yield []
        yield from _panel(selected, some, [list(label) for label in labels[some]], [each] * count, beside)


def _panel(
    selected: Selected, columns: slice, heads: list[list[str]], widths: Sequence[int], beside: int
) -> Iterator[Line]:
    for letters in _standing(heads):
        yield [Shade(" " * beside), *(Shade(_right(text, width)) for text, width in zip(letters, widths, strict=False))]
    for label, weights in zip(selected.labels, selected.weights, strict=True):
        numbers = [
            Shade(f"{100 * float(weight):{width}.0f}", float(weight) / (selected.largest or 1))
            for weight, width in zip(weights[columns], widths, strict=False)
        ]
        yield [Shade(_right(label, beside - 1) + " "), *numbers]


def _standing(heads: list[list[str]]) -> Iterator[tuple[str, ...]]:
    """Lines of headings, bottom-aligned, however many lines each has."""
    lines = zip_longest(*(reversed(head) for head in heads), fillvalue="")
    yield from reversed(list(lines))


def _right(text: str, width: int) -> str:
    return " " * (width - cell_count(text)) + text


MOST = 50_000_000  # weights in a page: 12 heads of 12 layers at 512 tokens are 38 million, a file of 100 MB
LEAD = (
    "A row asks, a column is looked at: a cell is the share of its weight that a token gives to another one, and every "
    "row sums to 100 %. The strongest color is the largest weight shown. Weights say where a head looks; they do not "
    "say how much that contributes to the result."
)
KEYS = "Point at a cell, or move with the arrow keys, to read its weight."
STYLE = """
#region { height: 80vh; position: relative; }
#matrix { position: relative; }
#matrix canvas { position: sticky; top: 0; left: 0; display: block; touch-action: pan-x pan-y; }
#ramp { display: inline-block; width: 12rem; height: 1em; margin: 0 .5em; vertical-align: middle;
  border: 1px solid var(--line); background: linear-gradient(to right, transparent, rgb(var(--shade-of))); }
#said { display: block; min-height: 3em; overflow-wrap: anywhere; }
"""


def attention_page(attention: Attention, choice: Choice) -> str:
    """All layers and heads of a sentence, the chosen one first; weights are rounded to 1/65535."""
    if attention.weights.size > MOST:
        raise BertcliError(
            f"{attention.weights.size:,} weights are too many for a page: give a shorter text, or leave out -o."
        )
    fractions = np.rint(np.clip(attention.weights, 0, 1) * 65535).astype("<u2")
    layers, heads, size, _ = attention.weights.shape
    data = {
        "pieces": [visible(piece) for piece in attention.pieces],
        "shape": [layers, heads, size],
        "layer": choice.layer,
        "head": choice.head,
        "weights": b64encode(fractions.tobytes()).decode("ascii"),
    }
    choices = element(
        "form",
        element("label", "Layer ", element("select", id="layer")),
        element("label", "Head ", element("select", id="head")),
    )
    matrix = element("div", element("canvas"), id="matrix")
    region = element(
        "div", matrix, id="region", class_="scrolled", tabindex="0", role="application", aria_label=f"Weights. {KEYS}"
    )
    script = files(__package__).joinpath("attention.js").read_text(encoding="utf-8")
    scale = element("p", "0 %", element("span", id="ramp"), element("span", id="largest"))
    title = f"Attention of {attention.model}"
    content = choices, scale, element("output", KEYS, id="said"), region
    return page(title, *content, lead=LEAD, style=STYLE, script=script, data=data)
