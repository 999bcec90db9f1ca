"""Attention weights of a traced pass for people to look at: shades in a terminal, a matrix."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bertcli.analysis.trace import Trace
from bertcli.errors import BertcliError, damaged
from bertcli.models.config import Config
from bertcli.report.documents import Document
from bertcli.report.shades import Shaded
from bertcli.report.terminal import Column, cell_count, padded, visible
from bertcli.tracing.dispatch import Array

NUMBER = 3  # cells of a percentage


class Choice(NamedTuple):
    """A layer, and one of its heads or (None) the mean of all; both count from 0, as in the paths of a trace."""

    layer: int
    head: int | None


@dataclass(frozen=True)
class Attention:
    """The weights that were chosen [query token, key token], whose rows sum to 1, of the layer's [head, query, key]."""

    title: str
    choice: Choice
    pieces: list[str]
    layer: Array

    @property
    def weights(self) -> Array:
        """One head's weights, or the mean of the layer's heads."""
        head = self.choice.head
        return np.asarray(self.layer.mean(axis=0, dtype=np.float64) if head is None else self.layer[head], np.float32)


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


def attention_of(trace: Trace, pieces: list[str], choice: Choice) -> Attention:
    """The weights a trace has kept for its first sentence. Errors: BertcliError for weights that are not finite."""
    layer = [array for path, array in trace.arrays.items() if keeps_attention(path)][choice.layer]
    layer = layer[0] if layer.ndim == 4 else layer  # one sentence has no batch axis
    if not np.isfinite(layer).all():
        raise damaged()
    which = f"mean of {len(layer)} heads" if choice.head is None else f"head {choice.head}"
    title = f"{trace.model}: layer {choice.layer}, {which} (encoder.layers.{choice.layer}.attention.softmax)"
    return Attention(title, choice, pieces, layer)


def attention_document(attention: Attention, trace: Trace) -> Document:
    """For CSV and Markdown a matrix (rows are queries, columns are keys) headed by tokens; for JSON added to the trace.

    Columns of CSV are numbered, since a token may occur twice. JSON has every head of a layer whose mean was chosen.
    """
    matrix, (number, head) = attention.weights.tolist(), attention.choice
    columns = [Column("Token"), *(Column(piece, number=True) for piece in attention.pieces)]
    names = ["token", *(f"{i} {piece}" for i, piece in enumerate(attention.pieces))]
    by_token = list(zip(attention.pieces, matrix, strict=True))
    rows = [[piece, *(f"{weight:.4f}" for weight in weights)] for piece, weights in by_token]
    lines = [dict(zip(names, [piece, *weights], strict=True)) for piece, weights in by_token]
    weights = matrix if head is not None else attention.layer.tolist()
    record = {"layer": number, "head": head, "tokens": attention.pieces, "weights": weights}
    return Document(columns, rows, [attention.title], {**trace.record(), "attention": record}, lines)


def shaded_lines(attention: Attention, width: int | None) -> Iterator[list[str]]:
    """A row for each query token, a column for each key token, weights in percent; the largest is the darkest.

    A line is a list of cells. Columns that do not fit into `width` follow in further tables.
    """
    labels, matrix = [visible(piece) for piece in attention.pieces], attention.weights.tolist()
    largest = float(attention.weights.max()) or 1.0
    beside = max(map(cell_count, labels)) + 1
    widths = [max(cell_count(label), NUMBER + 1) + 1 for label in labels]
    for columns in _fitting(widths, None if width is None else width - beside):
        if columns[0]:
            yield []
        yield [" " * beside, *(padded(labels[i], widths[i], number=True) for i in columns)]
        for label, weights in zip(labels, matrix, strict=True):
            cells = [Shaded(f"{100 * weights[i]:{widths[i]}.0f}", weights[i] / largest) for i in columns]
            yield [padded(label, beside - 1, number=True) + " ", *cells]


def _fitting(widths: list[int], room: int | None) -> list[list[int]]:
    """The numbers of columns with these widths, in groups that fit; a group has at least one column."""
    groups: list[list[int]] = []
    left = 0
    for column, width in enumerate(widths):
        if not groups or (room is not None and width > left):
            groups.append([])
            left = room or 0
        groups[-1].append(column)
        left -= width
    return groups
