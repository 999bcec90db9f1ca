"""Hidden states to the vector of a text: pooling, layers, and normalization to length 1; in a graph, too.

pooling.py reads which pooling a folder asks for; network/after_pooling.py has the layers.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from bertcli.kinds.graph import VectorGraph
from bertcli.network.after_pooling import Dense
from bertcli.tracing.dispatch import Array, Integers

X = TypeVar("X")  # a tensor of a graph
SMALLEST_LENGTH = 1e-12  # a shorter vector is not scaled to length 1: the bound of torch.nn.functional.normalize


def unit(vectors: Array) -> Array:
    """Normalize every row, x / |x|; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, SMALLEST_LENGTH), dtype=np.float32)


def pool(states: Array, offsets: Integers, mode: str, left_out: int = 0) -> Array:
    """Pool packed rows [token, hidden] to one vector per sentence [sentence, hidden], special tokens included.

    The first `left_out` tokens of each do not count. A sentence without tokens, such as an empty text of a static
    model, has the zero vector.
    """
    filled = offsets[:-1] + left_out < offsets[1:]
    first, last = offsets[:-1][filled] + left_out, offsets[1:][filled]
    vectors = np.zeros((len(filled), states.shape[1]), np.float32)
    if mode == "cls":
        vectors[filled] = states[first]
    elif mode == "lasttoken":
        vectors[filled] = states[last - 1]
    elif filled.any():
        bounds = np.stack([first, last], axis=1).reshape(-1)[:-1]  # every other result is of what lies between
        if mode == "max":
            vectors[filled] = np.maximum.reduceat(states, bounds, axis=0)[::2]
        else:
            # In each sentence, from 1.
            positions = np.arange(1, len(states) + 1) - np.repeat(offsets[:-1], np.diff(offsets))
            weights = positions if mode == "weightedmean" else np.ones_like(positions)
            divisor = np.add.reduceat(weights, bounds)[::2]
            divisor = np.sqrt(divisor) if mode == "mean_sqrt_len" else divisor
            weighted = states * weights[:, None].astype(np.float32) if mode == "weightedmean" else states
            vectors[filled] = np.add.reduceat(weighted, bounds, axis=0, dtype=np.float64)[::2] / divisor[:, None]
    return vectors


@dataclass(frozen=True, eq=False, repr=False)
class VectorSteps:
    """The steps from hidden states to a vector; empty `pooling` keeps every token.

    width      the length of the vector
    cut_last   it is cut after the normalization, as the model's own truncate_dim does it
    """

    pooling: tuple[str, ...]
    normalize: bool
    dense: tuple[Dense, ...]
    width: int
    cut_last: bool

    def finish(self, vectors: Array) -> Array:
        """Apply Dense layers, truncation of dimensions and normalization, in this order; see cut_last."""
        for layer in self.dense:
            vectors = layer(vectors)
        vectors = vectors if self.cut_last else vectors[:, : self.width]
        vectors = unit(vectors) if self.normalize else vectors
        return vectors[:, : self.width]

    def in_graph(self, graph: VectorGraph[X], hidden: X, pooler: X | None) -> X:
        """Add pooling and the steps of `finish` to a graph; `pooler`: the pooler's output, if that is the pooling."""
        x = pooler if pooler is not None else graph.pooled(hidden, self.pooling)
        for layer in self.dense:
            x = graph.applied(layer, x)
        x = x if self.cut_last else graph.first(x, self.width)
        x = graph.unit(x, SMALLEST_LENGTH) if self.normalize else x
        return graph.first(x, self.width)
