"""`VectorGraph`: adds the steps from hidden states to a result to a graph of another engine.

Those to a vector (vectors.py) and to a pair's logits (pair_scores.py) are given the builder of the wing that exports.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from bertcli.tracing.dispatch import Array

X = TypeVar("X")


class VectorGraph(Protocol[X]):
    """A graph's builder; X is a tensor of the graph."""

    def pooled(self, hidden: X, modes: Sequence[str]) -> X:
        """[batch, token, hidden] -> [batch, modes · hidden]: of MODES in pooling.py, side by side."""

    def applied(self, layer: Callable[[Array], Array], x: X) -> X:
        """Apply a layer to [batch, number]."""

    def unit(self, x: X, smallest: float) -> X:
        """x / max(|x|, smallest) of every row."""

    def first(self, x: X, width: int) -> X:
        """The first numbers of every row."""
