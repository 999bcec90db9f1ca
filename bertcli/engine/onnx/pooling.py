"""One vector of a sentence from its tokens' vectors, as nodes of a graph: padding counts for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from bertcli.engine.onnx.graph import Dim, Graph, Tensor
from bertcli.engine.onnx.masks import counts, largest, sums


def pooled(graph: Graph, hidden: Tensor, modes: Sequence[str]) -> Tensor:
    """[batch, sequence, hidden] -> [batch, modes · hidden]: "mean", "mean_sqrt_len", "max" or "cls", side by side."""
    batch, _, width = hidden.dims
    found = [_pool(graph, hidden.name, mode) for mode in modes]
    name = graph.node("Concat", *found, axis=1) if len(found) > 1 else found[0]
    return Tensor(name, ((batch,), (Dim(width.size * len(found)),)))


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


def _pool(graph: Graph, x: str, mode: str) -> str:
    match mode:
        case "mean":
            return graph.node("Div", sums(graph, x), counts(graph))
        case "mean_sqrt_len":
            return graph.node("Div", sums(graph, x), graph.node("Sqrt", counts(graph)))
        case "max":
            return largest(graph, x)
        case "cls":
            return graph.node("Gather", x, graph.integers(0), axis=1)
    raise RuntimeError(f"The pooling {mode} has no nodes.")
