"""Similarities of vectors, and the choice of the best rows, of those that are compared a block at a time.

Not here: how `bertcli search` compares a file with its queries (wings/search/nearest.py).
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.formats import BY_ENDING, ending_of
from bertcli.files.read.vector_reader import AnyNumbers, StoredVectors
from bertcli.ranking import ROUNDING, best_first

Scores = NDArray[np.float64]


class Nearest(NamedTuple):
    """The rows nearest to each query, and their scores, both [query, at most top_k]; `of` rows were compared.

    Best first; ties are in file order.
    """

    rows: NDArray[np.int64]
    scores: Scores
    of: int


class Best:
    """Keeps the `top_k` rows with the largest scores for each query, among all rows that are added.

    Of scores that are equal up to rounding the better row is the one with the lower rank in `order` [row]; without
    `order` the one that is added first.
    """

    def __init__(self, queries: int, top_k: int, order: NDArray[np.intp] | None = None) -> None:
        self.count = 0
        self._top_k, self._order = top_k, order
        self._rows = [np.empty(0, np.int64)] * queries
        self._scores = [np.empty(0)] * queries

    def add(self, scores: Scores) -> None:
        """Add rows by their scores [query, row]."""
        numbers = np.arange(self.count, self.count + scores.shape[1])
        self.count += len(numbers)
        for i, (new, kept_scores) in enumerate(zip(scores, self._scores, strict=True)):
            least = -np.inf
            if 0 < self._top_k == len(kept_scores):
                # A new row that equals the worst one up to rounding may be the better of the two.
                least = kept_scores.min() - ROUNDING * np.abs(kept_scores).max()
            chosen = new >= least
            rows = np.append(self._rows[i], numbers[chosen])
            values = np.append(kept_scores, new[chosen])
            if self._order is not None:
                by_rank = np.argsort(self._order[rows])
                rows, values = rows[by_rank], values[by_rank]
            # Sorted, so that they stay in the order that decides between equal ones.
            kept = np.sort(best_first(values, self._top_k))
            self._rows[i], self._scores[i] = rows[kept], values[kept]

    def found(self) -> Nearest:
        """Return the best rows, best first."""
        orders = [best_first(scores) for scores in self._scores]
        rows = [of_query[order] for of_query, order in zip(self._rows, orders, strict=True)]
        scores = [of_query[order] for of_query, order in zip(self._scores, orders, strict=True)]
        queries = len(orders)
        return Nearest(np.array(rows).reshape(queries, -1), np.array(scores).reshape(queries, -1), self.count)


def similarities(x: AnyNumbers, y: AnyNumbers, how: str = "cosine") -> Scores:
    """Similarities [..., n, m] of the rows of x [..., n, width] and y [..., m, width]; larger means more similar.

        cosine x · y / (|x| |y|), 0 for a zero vector;   dot x · y;   euclidean −|x − y|;   manhattan −Σ |x_i − y_i|

    As sentence-transformers has them.
    """
    x, y = x.astype(np.float64), y.astype(np.float64)
    if how == "manhattan":
        return -np.stack([np.abs(row[..., None, :] - y).sum(axis=-1) for row in np.moveaxis(x, -2, 0)], axis=-2)
    with np.errstate(all="ignore"):  # what is not finite shows in the result
        products: Scores = x @ y.swapaxes(-1, -2)
        squares = [np.einsum("...i,...i->...", rows, rows) for rows in (x, y)]
        if how == "euclidean":
            return np.asarray(-np.sqrt((squares[0][..., None] + squares[1][..., None, :] - 2 * products).clip(0)))
        if how == "cosine":
            lengths = [np.sqrt(np.where(square == 0, 1, square)) for square in squares]
            products = (products / lengths[0][..., None] / lengths[1][..., None, :]).clip(-1, 1)
    return products


def open_vectors(file: str) -> StoredVectors:
    """Open a file that `bertcli encode -o` wrote.

    Errors: BertcliError for a file that is missing, damaged, or holds no vectors of whole texts.
    """
    path, format = Path(file), BY_ENDING.get(ending_of(file))
    if format is None or format.stored is None:
        known = [ending for ending, other in BY_ENDING.items() if other.stored is not None]
        raise BertcliError(f"{file}: a file of vectors ends in {', '.join(known)}.")
    if not path.is_file():
        raise BertcliError(f"{file} is missing: give an existing file of vectors, such as encode -o writes.")
    stored: StoredVectors = format.stored(path)
    return stored
