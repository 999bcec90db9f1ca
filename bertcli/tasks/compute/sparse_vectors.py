"""Sparse vectors: of each text the entries of the vocabulary whose weight is not 0."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.seam import Array
from bertcli.lean import lean_dataclass
from bertcli.order import best_first
from bertcli.tasks.compute.encode import PreparedBlock
from bertcli.tasks.compute.task import Record


class SparseVector(NamedTuple):
    """The entries that are not 0: ids of the vocabulary, ascending, and their weights."""

    indices: NDArray[np.int32]
    values: NDArray[np.float32]


@lean_dataclass
class SparseBlock(PreparedBlock):
    """Consecutive texts with their vectors, and if asked for the pieces of each one's entries."""

    vectors: list[SparseVector]
    words: list[list[str]] | None = None

    def values(self) -> Iterator[Record]:
        """{indices, values}, and if asked for `words`."""
        for number, vector in enumerate(self.vectors):
            words = {} if self.words is None else {"words": self.words[number]}
            yield {"indices": vector.indices.tolist(), "values": vector.values.tolist(), **words}


def largest(indices: NDArray[Any], values: Array, most: int | None) -> SparseVector:
    """The vector with these entries, or with so many of them, the largest."""
    kept = np.sort(best_first(np.abs(values), most)) if most else slice(None)
    return SparseVector(indices[kept].astype(np.int32), values[kept])
