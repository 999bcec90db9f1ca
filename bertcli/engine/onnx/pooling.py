"""Nodes that read a whole sentence, such as one vector of its tokens' vectors: padding counts for nothing in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertcli.engine.onnx.graph import FLOAT, MASK, Dim, Graph, Tensor

LEAST = float(np.finfo(np.float32).min)  # added to what is to have no weight: with -inf, padding alone would give NaN


def pooled(graph: Graph, hidden: Tensor, modes: Sequence[str]) -> Tensor:
    """[batch, sequence, hidden] -> [batch, modes · hidden]: "mean", "mean_sqrt_len", "max" or "cls", side by side."""
    batch, _, width = hidden.dims
    found = [_pooled(graph, hidden.name, mode) for mode in modes]
    name = graph.node("Concat", *found, axis=1) if len(found) > 1 else found[0]
    return Tensor(name, ((batch,), (Dim(width.size * len(found)),)))


def _pooled(graph: Graph, x: str, mode: str) -> str:
    match mode:
        case "mean":
            return mean(graph, x)
        case "mean_sqrt_len":
            return graph.node("Div", _sums(graph, x), graph.node("Sqrt", _counts(graph)))
        case "max":
            least = graph.node("Add", x, _least(graph, tokens(graph)))
            return graph.node("ReduceMax", least, graph.integers([1]), keepdims=0)
        case "cls":
            return graph.node("Gather", x, graph.integers(0), axis=1)
    raise RuntimeError(f"The pooling {mode} has no nodes.")


def mean(graph: Graph, x: str) -> str:
    """[batch, sequence, hidden] -> [batch, hidden]: the mean of a sentence's tokens; 0 for a sentence without any."""
    return graph.node("Div", _sums(graph, x), _counts(graph))


def unit(graph: Graph, x: Tensor, smallest: float) -> Tensor:
    """x / max(|x|, smallest) of every row."""
    length = graph.node("ReduceL2", x.name, graph.integers([1]), keepdims=1)
    return x._replace(name=graph.node("Div", x.name, graph.node("Max", length, graph.number(smallest))))


def first(graph: Graph, x: Tensor, width: int) -> Tensor:
    """The first numbers of every row."""
    if x.dims[1].size == width:
        return x
    cut = graph.node("Slice", x.name, graph.integers([0]), graph.integers([width]), graph.integers([1]))
    return Tensor(cut, (x.axes[0], (Dim(width),)))


def column(graph: Graph, x: Tensor, number: int) -> Tensor:
    """[batch, sequence, number] -> [batch, sequence]: one of the numbers of every token."""
    return Tensor(graph.node("Gather", x.name, graph.integers(number), axis=2), x.axes[:1])


def padding(graph: Graph, dims: Sequence[Dim]) -> str:
    """[batch, …, key]: 0 for tokens and -3.4e38 for padding, to be added to scores with these dimensions."""
    symbols = [dim.symbol for dim in dims]
    between = range(symbols.index("batch") + 1, len(symbols) - 1)
    return graph.once("Unsqueeze", _least(graph, _real(graph)), graph.integers([*between]))


def tokens(graph: Graph) -> str:
    """[batch, sequence, 1]: 1 for tokens, 0 for padding."""
    return graph.once("Unsqueeze", _real(graph), graph.integers([2]))


def _real(graph: Graph) -> str:
    return graph.once("Cast", MASK, to=FLOAT)


def _least(graph: Graph, real: str) -> str:
    return graph.once("Mul", graph.once("Sub", graph.number(1), real), graph.number(LEAST))


def _sums(graph: Graph, x: str) -> str:
    return graph.node("ReduceSum", graph.node("Mul", x, tokens(graph)), graph.integers([1]), keepdims=0)


def _counts(graph: Graph) -> str:
    count = graph.once("ReduceSum", tokens(graph), graph.integers([1]), keepdims=0)
    return graph.once("Max", count, graph.number(1))
