"""A watched pass becomes a graph: every op adds its nodes by its ONNX rule, and every array is a value of the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bertcli.engine.array import Array
from bertcli.engine.onnx import rules
from bertcli.engine.onnx.graph import IDS, SEGMENTS, Axis, Dim, Graph, Tensor
from bertcli.engine.onnx.values import AnyArray, Values, merge, same
from bertcli.engine.packing import Packed, pack_padded
from bertcli.engine.watcher import watching

if TYPE_CHECKING:
    from bertcli.network.module import Module, Op

BATCH, SEQUENCE = Dim(2, "batch"), Dim(3, "sequence")  # of the watched pass; any sizes above 1 would do
TOKENS: Axis = (BATCH, SEQUENCE)


class Exporter:
    """A watcher that builds `graph` from the passes it sees.

    modules: the path of every module by its id, for the names of nodes.
    """

    def __init__(self, graph: Graph, modules: Mapping[int, str]) -> None:
        self.graph = graph
        self._modules = modules
        self._values = Values(graph)
        tokens = np.zeros((BATCH.size, SEQUENCE.size), np.intp)  # which ones they are does not matter
        self.batch, _ = pack_padded(tokens, tokens, tokens == 0)
        for path, array in graph.parameters.items():
            if self._values.find(array) is None:  # else it is tied to an earlier one
                self._values.bind(array, Tensor(path, tuple((Dim(size),) for size in array.shape)))
        self._values.bind(self.batch.ids, Tensor(IDS, (TOKENS,)))
        self._values.bind(self.batch.segments, Tensor(SEGMENTS, (TOKENS,)))
        self._values.bind(self.batch.positions, Tensor(rules.positions(graph), (TOKENS,)))

    def watch(self, run: Callable[[Packed], Mapping[str, Array]]) -> dict[str, Tensor]:
        """Watch what `run` does with the batch; its results as tensors."""
        with watching(self), np.errstate(all="ignore"):
            return {name: self.tensor(array) for name, array in run(self.batch).items()}

    def applied(self, layer: Callable[[Array], Array], x: Tensor) -> Tensor:
        """What a layer makes of a tensor with an axis for sentences and one of numbers."""
        stand_in = np.zeros([dim.size for dim in x.dims], np.float32)
        self._values.bind(stand_in, x)
        with watching(self):
            return self.tensor(layer(stand_in))

    def tensor(self, array: AnyArray) -> Tensor:
        """The value that an array holds; RuntimeError if it came about without an op."""
        if same(array, self.batch.first):
            return Tensor(rules.FIRST, ((BATCH,),))
        if same(array, self.batch.offsets):
            return Tensor(rules.OFFSETS, ((Dim(array.size),),))
        found = self._values.find(array)
        if found is None:
            raise RuntimeError(
                f"An array of shape {array.shape} is not a parameter, an input of the pass or a result of an op: "
                "something was computed that the exporter cannot see."
            )
        return found

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        """Run a module; the nodes of its ops have its path in their names."""
        with self.graph.scope(self._modules.get(id(module), type(module).__name__)):
            return module.forward(*arguments, **keywords)

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        """Run an op and add its nodes."""
        if op.onnx is None:
            raise RuntimeError(f"The op {op.name} has no ONNX rule.")
        given = inspect.signature(op.compute).bind(*arguments, **keywords).arguments
        names = [*inspect.signature(op.compute).parameters][: len(op.signature.inputs)]
        arrays = tuple(given.get(name) for name in names)
        tensors = [None if array is None else self.tensor(array) for array in arrays]
        settings = {name: value for name, value in given.items() if name not in names and name != "into"}
        axes = _result_axes(op, arrays, tensors)
        name = op.onnx(self.graph, *tensors, **settings)
        output = op.compute(*arguments, **keywords)
        self._values.bind(output, Tensor(name, axes))
        return output


def _result_axes(op: Op[Any], arrays: tuple[Any, ...], tensors: list[Tensor | None]) -> tuple[Axis, ...]:
    """The axes of the result, taken from those of the operands that have the same words in the op's signature."""
    signature = op.signature.spread(arrays)
    known: dict[str, Axis] = {}
    for words, tensor in zip(signature.inputs, tensors, strict=False):
        for word, axis in zip(words, tensor.axes if tensor else (), strict=bool(tensor)):
            known.setdefault(word, axis)
    return tuple(merge([dim for word in axis.split("·") for dim in known[word]]) for axis in signature.output)
