"""`PairScores`: the logits of pairs, where sentence-transformers modules compute them and no head does."""

from typing import NamedTuple, TypeVar

import numpy as np

from bertcli.kinds.graph import VectorGraph
from bertcli.kinds.vectors import pool
from bertcli.network.after_pooling import Dense, LayerNorm
from bertcli.tracing.dispatch import Array, Integers

X = TypeVar("X")


class PairScores(NamedTuple):
    """The pooling of a pair's token vectors, and the layers from the pooled vector to the logits."""

    pooling: tuple[str, ...]
    layers: tuple[Dense | LayerNorm, ...]

    @property
    def outputs(self) -> int:
        """The number of logits."""
        return len(self.layers[-1].weight)

    def of(self, states: Array, offsets: Integers) -> Array:
        """The logits [sentence, output] from the hidden states [token, hidden] of packed sentences."""
        x = np.concatenate([pool(states, offsets, mode) for mode in self.pooling], axis=1)
        for layer in self.layers:
            x = layer(x)
        return x

    def in_graph(self, graph: VectorGraph[X], hidden: X) -> X:
        """Add the same steps to a graph."""
        x = graph.pooled(hidden, self.pooling)
        for layer in self.layers:
            x = graph.applied(layer, x)
        return x
