"""Sparse vectors of many texts, one after the other in three arrays, and their products with a query.

wings/search/index.py stores them; tasks/parts/sparse_vectors.py makes them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


class Entries(Protocol):
    """A sparse vector: the places of its entries, and the entries."""

    @property
    def indices(self) -> NDArray[np.int32]: ...

    @property
    def values(self) -> NDArray[np.float32]: ...


class SparseRows(NamedTuple):
    """A row has `counts[row]` entries; those of all rows stand in `indices` and `values`, in the order of the rows."""

    counts: NDArray[np.int32]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Iterable[Entries]) -> Self:
        """Put vectors one after the other."""
        rows = [*vectors]
        counts = np.array([len(row.indices) for row in rows], np.int32)
        indices = [np.empty(0, np.int32), *(row.indices for row in rows)]
        values = [np.empty(0, np.float32), *(row.values for row in rows)]
        return cls(counts, np.concatenate(indices), np.concatenate(values))

    @classmethod
    def joined(cls, parts: "Sequence[SparseRows]") -> Self:
        """The rows of all parts, in their order."""
        counts, indices, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(counts, indices, values)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return len(self.counts)

    def part(self, begin: int, end: int) -> "SparseRows":
        """The rows from `begin` to before `end`."""
        first, last = int(self.counts[:begin].sum()), int(self.counts[:end].sum())
        return SparseRows(self.counts[begin:end], self.indices[first:last], self.values[first:last])

    def fits(self, width: int) -> bool:
        """True if every entry is one of a vector of this width, and finite."""
        inside = bool((self.indices >= 0).all() and (self.indices < width).all() and (self.counts >= 0).all())
        whole = int(self.counts.sum()) == len(self.indices) == len(self.values)
        return inside and whole and bool(np.isfinite(self.values).all())

    def products(self, vector: Entries, width: int, cosine: bool = False) -> Scores:
        """The product of each row with a vector; `cosine`: over the lengths of both, 0 for an empty one."""
        other = np.zeros(width)
        other[vector.indices] = vector.values
        values = self.values.astype(np.float64)
        products = self._sums(values * other[self.indices])
        if not cosine:
            return products
        lengths = np.sqrt(self._sums(values * values)) * np.sqrt((other * other).sum())
        return np.asarray(products / np.where(lengths > 0, lengths, 1))

    def _sums(self, numbers: Scores) -> Scores:
        """The sum of each row's numbers."""
        rows = np.repeat(np.arange(self.row_count), self.counts)
        sums: Scores = np.bincount(rows, weights=numbers, minlength=self.row_count).astype(np.float64)
        return sums
