"""`heads --layer`: the attention weights of one head, or their mean over a layer's heads, tokens by tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertcli.analysis.layers import LayerAndHead
from bertcli.report.documents import Document
from bertcli.report.shades import Shaded, fitting
from bertcli.report.terminal import Column, cell_count, padded, visible
from bertcli.tracing.dispatch import Array

NUMBER = 3  # cells of a percentage


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
        mean = self.layer.mean(axis=0, dtype=np.float64) if head is None else self.layer[head - 1]
        return np.asarray(mean, np.float32)

    @property
    def title(self) -> str:
        """`bert-mini-mlm: attention weights of layer 3, head 2 (encoder.layers.2.attention.softmax)`"""
        heads = len(self.layer)
        which = "" if self.chosen.head or heads == 1 else f", mean of {heads} heads"
        path = f"encoder.layers.{self.chosen.layer - 1}.attention.softmax"
        return f"{self.model}: attention weights of {self.chosen.name}{which} ({path})"

    @property
    def record(self) -> dict[str, Any]:
        """The weights as JSON: [query, key] of one head, or [head, query, key] of all heads of a layer."""
        weights = self.layer.tolist() if self.chosen.head is None else self.weights.tolist()
        return {**self.chosen._asdict(), "tokens": list(self.pieces), "weights": weights}

    def document(self, record: dict[str, Any]) -> Document:
        """A matrix (rows are queries, columns are keys) headed by tokens, beside the `record` of the whole view.

        Columns of CSV are numbered, since a token may occur twice.
        """
        matrix = self.weights.tolist()
        columns = [Column("Token"), *(Column(piece, number=True) for piece in self.pieces)]
        names = ["token", *(f"{i} {piece}" for i, piece in enumerate(self.pieces))]
        by_token = list(zip(self.pieces, matrix, strict=True))
        rows = [[piece, *(f"{weight:.4f}" for weight in weights)] for piece, weights in by_token]
        lines = [dict(zip(names, [piece, *weights], strict=True)) for piece, weights in by_token]
        return Document(columns, rows, [self.title], record, lines)


def shaded_lines(attention: Attention, width: int | None) -> Iterator[list[str]]:
    """A row for each query token, a column for each key token, weights in percent; the largest is the darkest.

    A line is a list of cells. Columns that do not fit into `width` follow in further tables.
    """
    labels, matrix = [visible(piece) for piece in attention.pieces], attention.weights.tolist()
    largest = float(attention.weights.max()) or 1.0
    beside = max(map(cell_count, labels)) + 1
    widths = [max(cell_count(label), NUMBER + 1) + 1 for label in labels]
    for columns in fitting(widths, None if width is None else width - beside):
        if columns[0]:
            yield []
        yield [" " * beside, *(padded(labels[i], widths[i], number=True) for i in columns)]
        for label, weights in zip(labels, matrix, strict=True):
            cells = [Shaded(f"{100 * weights[i]:{widths[i]}.0f}", weights[i] / largest) for i in columns]
            yield [padded(label, beside - 1, number=True) + " ", *cells]
