"""What of a padded batch is a token and what is padding, for those nodes that read a whole sentence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertcli.engine.onnx.graph import FLOAT, MASK, Dim, Graph

LEAST = float(np.finfo(np.float32).min)  # added to what is to have no weight: with -inf, padding alone would give NaN


def padding(graph: Graph, dims: Sequence[Dim]) -> str:
    """[batch, …, key]: 0 for tokens and -3.4e38 for padding, to be added to scores with these dimensions."""
    least = graph.once("Mul", graph.once("Sub", graph.number(1), _real(graph)), graph.number(LEAST))
    symbols = [dim.symbol for dim in dims]
    between = range(symbols.index("batch") + 1, len(symbols) - 1)
    return graph.once("Unsqueeze", least, graph.integers([*between]))


def largest(graph: Graph, x: str) -> str:
    """[batch, sequence, hidden] -> [batch, hidden]: the largest number of every column among a sentence's tokens."""
    least = graph.once("Mul", graph.once("Sub", graph.number(1), tokens(graph)), graph.number(LEAST))
    return graph.node("ReduceMax", graph.node("Add", x, least), graph.integers([1]), keepdims=0)


def sums(graph: Graph, x: str) -> str:
    """[batch, sequence, hidden] -> [batch, hidden]: the sum of a sentence's tokens."""
    return graph.node("ReduceSum", graph.node("Mul", x, tokens(graph)), graph.integers([1]), keepdims=0)


def counts(graph: Graph) -> str:
    """[batch, 1]: the number of a sentence's tokens; 1 for a sentence without any, so that its mean is 0."""
    found = graph.once("ReduceSum", tokens(graph), graph.integers([1]), keepdims=0)
    return graph.once("Max", found, graph.number(1))


def tokens(graph: Graph) -> str:
    """[batch, sequence, 1]: 1 for tokens, 0 for padding."""
    return graph.once("Unsqueeze", _real(graph), graph.integers([2]))


def _real(graph: Graph) -> str:
    return graph.once("Cast", MASK, to=FLOAT)
