"""How alike the layers of two models are: linear CKA (Kornblith et al. 2019, arXiv 1905.00414) over many tokens.

CKA(X, Y) = ‖YᵀX‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F)        X, Y [token, feature], columns centered
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.packing import pack
from bertcli.engine.seam import Array
from bertcli.errors import BertcliError, damaged
from bertcli.model import Model
from bertcli.report.documents import Document, View
from bertcli.report.page import element, page, shaded, table
from bertcli.report.tables import Column
from bertcli.tokens import Tokens

NO_TEXT = "There is no text to compare on: give one."
OF_CKA = (
    "Linear CKA compares what two layers say about the same tokens: 1 where one is the other up to rotation and scale, "
    "near 0 where they have nothing in common. It says how alike the representations are, not which is better, and "
    "with fewer tokens than dimensions it is too large."
)


@dataclass(frozen=True)
class Similarity(View):
    """Linear CKA of the layers of two models over `rows` tokens: [layer of the first, layer of the second]."""

    names: tuple[str, str]
    rows: int
    cka: tuple[tuple[float, ...], ...]

    @property
    def record(self) -> dict[str, Any]:
        """The comparison as a JSON record."""
        return {"rows": self.rows, "cka": [list(row) for row in self.cka]}

    def document(self) -> Document:
        """The table that `bertcli diff` prints for two architectures."""
        layers = range(len(self.cka[0]))
        columns = [Column("Layer", number=True), *(Column(str(layer), number=True) for layer in layers)]
        rows = [[str(layer), *(f"{one:.3f}" for one in row)] for layer, row in enumerate(self.cka)]
        lines = [{"layer": layer, **{str(i): one for i, one in enumerate(row)}} for layer, row in enumerate(self.cka)]
        one, other = self.names
        below = [
            f"Rows: layers of {one}; columns: layers of {other}; layer 0 is the embeddings' output",
            f"Linear CKA over {self.rows:,} tokens: 1 for the same up to rotation and scale, near 0 for unrelated ones",
        ]
        if self.rows < 10 * len(self.cka):
            below.append("So few tokens make CKA too large: give more text (-i FILE).")
        return Document(columns, rows, below, self.record, lines)


def similarity(model: Model, other: Model, both: Iterable[tuple[Tokens, Tokens]]) -> Similarity:
    """The layers of two models compared over the tokens of several texts, each as either model reads it."""
    states: tuple[list[list[Array]], list[list[Array]]] = ([], [])
    for pair in both:
        for one, tokens, of_model in zip((model, other), pair, states, strict=True):
            with np.errstate(all="ignore"):
                of_model.append([np.array(state) for state in one.network.states(pack([tokens]))])
    if not states[0]:
        raise BertcliError(NO_TEXT)
    layers = [[_centered(np.concatenate(column)) for column in zip(*of_model, strict=True)] for of_model in states]
    cka = tuple(tuple(linear_cka(x, y) for y in layers[1]) for x in layers[0])
    return Similarity((model.name, other.name), len(layers[0][0]), cka)


def _centered(rows: Array) -> NDArray[np.float64]:
    if not np.isfinite(rows).all():
        raise damaged()
    centered: NDArray[np.float64] = rows - rows.mean(axis=0, dtype=np.float64)
    return centered


def linear_cka(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Similarity of two representations [row, feature] of the same rows, columns centered; 0 where one is constant."""
    if len(x) < min(x.shape[1], y.shape[1]):  # the same number from the products of rows, of which there are fewer
        k, m = x @ x.T, y @ y.T
        above, below = (k * m).sum(), np.linalg.norm(k) * np.linalg.norm(m)
    else:
        above, below = np.linalg.norm(y.T @ x) ** 2, np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(above / below) if below else 0.0


def similarity_page(view: Similarity) -> str:
    """The layers' similarities as a shaded table."""
    document = view.document()
    rows = [[row[0], *(shaded(text, float(text)) for text in row[1:])] for row in document.rows]
    below = [element("p", line) for line in document.below]
    return page(" and ".join(view.names), *below, table("Linear CKA of layers", document.columns, rows), lead=OF_CKA)
