"""The vectors of passages' parts, a row each: dense, or sparse. index.py stores their arrays by their names."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bertcli.files.search import Scores, similarities
from bertcli.kinds.sparse_vectors import SparseProduct, SparseVector, SparseVectors


class DenseRows(NamedTuple):
    """A vector [width] of each part."""

    embeddings: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Sequence[NDArray[np.float32]]) -> Self:
        return cls(np.asarray(vectors, np.float32))

    @property
    def number(self) -> int:
        """The number of rows."""
        return len(self.embeddings)

    def between(self, bounds: Sequence[int]) -> Iterator["DenseRows"]:
        """Yield the rows from each of some numbers of rows to before the next."""
        for begin, end in pairwise(bounds):
            yield DenseRows(self.embeddings[begin:end])

    @property
    def are_whole(self) -> bool:
        """True if arrays of a file, which may hold anything, are rows."""
        return self.embeddings.ndim == 2 and self.embeddings.dtype == np.float32

    def fit(self, width: int) -> bool:
        """True if the vectors have this width and are finite."""
        return self.embeddings.shape[1] == width and bool(np.isfinite(self.embeddings).all())

    def scores(self, queries: Sequence[NDArray[np.float32]], how: str) -> Scores:
        """Compare vectors of queries with the rows [query, row]."""
        return similarities(np.asarray(queries), self.embeddings, how)


class SparseRows(SparseVectors):
    """A sparse vector of each part."""

    @property
    def number(self) -> int:
        return len(self.counts)

    def between(self, bounds: Sequence[int]) -> Iterator["SparseRows"]:
        # Summed once: there may be many files.
        entries = np.append(0, np.cumsum(self.counts))[[*bounds]].tolist()
        for (begin, end), (first, last) in zip(pairwise(bounds), pairwise(entries), strict=True):
            yield SparseRows(self.counts[begin:end], self.indices[first:last], self.values[first:last])

    @property
    def are_whole(self) -> bool:
        types = [array.dtype if array.ndim == 1 else None for array in self]
        if types != [np.int32, np.int32, np.float32] or (self.counts < 0).any():
            return False
        return int(self.counts.sum()) == len(self.indices) == len(self.values)

    def fit(self, width: int) -> bool:
        inside = bool((self.indices >= 0).all() and (self.indices < width).all())
        return inside and bool(np.isfinite(self.values).all())

    def scores(self, queries: Sequence[SparseVector], how: str) -> Scores:
        return np.array([SparseProduct(how == "cosine").scores(query, self) for query in queries])


Rows = DenseRows | SparseRows


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of one or more parts, in their order."""
    return type(parts[0])(*map(np.concatenate, zip(*parts, strict=True)))
