"""`heads --layer`: the attention weights of one head, or their mean over a layer's heads, tokens by tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertcli.analysis.layers import LayerAndHead
from bertcli.report.digits import short_rows
from bertcli.report.documents import Document
from bertcli.report.shades import Shaded, fitting
from bertcli.report.terminal import Column, cell_count, padded, visible
from bertcli.tracing.dispatch import Array

# Cells of a percentage.
NUMBER = 3


@dataclass(frozen=True)
class Attention:
    """The weights of the layer of `--layer` [head, query token, key token]; each row sums to 1."""

    model: str
    chosen: LayerAndHead
    pieces: Sequence[str]
    layer: Array

    @property
    def weights(self) -> Array:
        """One head's weights [query, key], or the mean of the layer's heads."""
        head = self.chosen.head
        if head is None:
            return np.asarray(self.layer.mean(axis=0, dtype=np.float64), np.float32)
        return np.asarray(self.layer[head - 1], np.float32)

    @property
    def chosen_weights(self) -> Array:
        """[query, key] of one head, or [head, query, key] of all heads of a layer."""
        return self.layer if self.chosen.head is None else self.weights

    @property
    def title(self) -> str:
        """`bert-mini-mlm: attention weights of layer 3, head 2 (encoder.layers.2.attention.softmax)`"""
        heads = len(self.layer)
        which = "" if self.chosen.head or heads == 1 else f", mean of {heads} heads"
        path = f"encoder.layers.{self.chosen.layer - 1}.attention.softmax"
        return f"{self.model}: attention weights of {self.chosen.name}{which} ({path})"

    @property
    def record(self) -> dict[str, Any]:
        """The chosen weights as JSON."""
        weights = short_rows(self.chosen_weights)
        return {**self.chosen._asdict(), "tokens": list(self.pieces), "weights": weights}

    def document(self, record: dict[str, Any]) -> Document:
        """A matrix (rows are queries, columns are keys) headed by tokens, beside the `record` of the whole view.

        Columns of CSV are numbered, since a token may occur twice.
        """
        columns = [Column("Token")]
        columns += [Column(piece, number=True) for piece in self.pieces]
        names = [f"{position} {piece}" for position, piece in enumerate(self.pieces)]
        rows: list[list[str]] = []
        lines: list[dict[str, Any]] = []
        for piece, weights in zip(self.pieces, short_rows(self.weights), strict=True):
            rows.append([piece, *(f"{weight:.4f}" for weight in weights)])
            lines.append({"token": piece, **dict(zip(names, weights, strict=True))})
        return Document(columns, rows, [self.title], record, lines)


def shaded_lines(attention: Attention, width: int | None) -> Iterator[list[str]]:
    """A row for each query token, a column for each key token, weights in percent; the largest is the darkest.

    A line is a list of cells. Columns that do not fit into `width` follow in further tables.
    """
    labels = [visible(piece) for piece in attention.pieces]
    matrix = attention.weights.tolist()
    largest = float(attention.weights.max()) or 1.0
    label_width = max(map(cell_count, labels))
    widths = [max(cell_count(label), NUMBER + 1) + 1 for label in labels]
    room = None if width is None else width - label_width - 1
    for keys in fitting(widths, room):
        is_further_table = keys[0] > 0
        if is_further_table:
            yield []
        yield [" " * (label_width + 1), *(padded(labels[key], widths[key], number=True) for key in keys)]
        for label, weights in zip(labels, matrix, strict=True):
            cells = [Shaded(f"{100 * weights[key]:{widths[key]}.0f}", weights[key] / largest) for key in keys]
            yield [padded(label, label_width, number=True) + " ", *cells]
