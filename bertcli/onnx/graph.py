"""A graph under construction: nodes, weights and constants by name. Nothing here needs the onnx package."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.seam import Array

IDS, SEGMENTS, MASK = INPUTS = ("input_ids", "token_type_ids", "attention_mask")  # the names that every tool expects
FLOAT, INT64, FLOAT16 = 1, 7, 10  # of onnx.TensorProto
TRANSPOSED = ".T"  # ends the name of a parameter that is stored transposed


class Dim(NamedTuple):
    """A dimension of a tensor: its size in the watched pass and, if it may have any other, its name."""

    size: int
    symbol: str | None = None  # "batch" or "sequence"


Axis = tuple[Dim, ...]  # of an array: an axis of packed tokens is two of the tensor's dimensions, batch and sequence


class Tensor(NamedTuple):
    """A value of the graph as an op sees it: its dimensions, grouped by the axes of the op's array."""

    name: str
    axes: tuple[Axis, ...]

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The tensor's own dimensions."""
        return tuple(dim for axis in self.axes for dim in axis)


class Node(NamedTuple):
    """An operator with its one result."""

    kind: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


class Graph:
    """Nodes in the order in which they run. A parameter is stored when a node first has its path as an input."""

    def __init__(self, parameters: Mapping[str, Array], opset: int, *, half: bool = False) -> None:
        self.parameters = parameters
        self.opset = opset
        self.half = half  # parameters are stored as float16 and computed with as float32
        self.nodes: list[Node] = []
        self.weights: dict[str, Array] = {}  # parameters, as the model has them or transposed
        self.constants: dict[str, NDArray[Any]] = {}
        self._scope = ""
        self._made: dict[str, Node] = {}
        self._counts: dict[str, int] = {}
        self._names: dict[Any, str] = {}

    @contextmanager
    def scope(self, path: str) -> Iterator[None]:
        """Nodes that are added inside have names that begin with the path of a module."""
        before, self._scope = self._scope, path
        try:
            yield
        finally:
            self._scope = before

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; the name of its result."""
        return self._add(kind, tuple(self._float(self._stored(name)) for name in inputs), attributes)

    def once(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The same; a result that is there already is used again."""
        return self._once(kind, tuple(self._float(self._stored(name)) for name in inputs), attributes)

    def matrix(self, name: str) -> str:
        """A parameter [out, in] as [in, out], as MatMul wants it: stored so, unless something else reads it, too."""
        if name not in self.parameters or name in self.weights:
            return self.once("Transpose", name, perm=(1, 0))
        self.weights.setdefault(name + TRANSPOSED, self.parameters[name].T)
        return self._float(name + TRANSPOSED)

    def rows(self, table: str, indices: str) -> str:
        """Rows of a table; of one that is stored as float16 only these are converted."""
        stored = self._stored(table)
        rows = self._add("Gather", (stored, indices), {"axis": 0})
        return self._add("Cast", (rows,), {"to": FLOAT}) if self.half and stored in self.weights else rows

    def reshaped(self, name: str, before: Sequence[Dim], after: Sequence[Dim]) -> str:
        """A tensor with the dimensions `before` as one with the dimensions `after`."""
        if [*before] == [*after]:
            return name
        shape: list[int] = []
        for number, dim in enumerate(after):
            kept = dim.symbol and number < len(before) and before[number] == dim
            shape.append(0 if kept else -1 if dim.symbol else dim.size)  # 0: as it was; -1: what is left
        if shape.count(-1) > 1:
            raise RuntimeError(f"ONNX cannot reshape {[*before]} into {[*after]}: two sizes are unknown.")
        return self.node("Reshape", name, self.integers(shape))

    def permuted(self, name: str, order: Sequence[int]) -> str:
        """A tensor with its dimensions in another order; one that has been permuted is permuted once, not twice."""
        made = self._made.get(name)
        if made is not None and made.kind == "Transpose":
            name, order = made.inputs[0], [made.attributes["perm"][number] for number in order]
        return name if [*order] == sorted(order) else self.node("Transpose", name, perm=tuple(order))

    def number(self, value: float) -> str:
        """A float32 constant without axes."""
        return self.constant(np.array(value, dtype=np.float32))

    def integers(self, values: Sequence[int] | int) -> str:
        """An int64 constant: one axis for a sequence, none for a number."""
        return self.constant(np.array(values, dtype=np.int64))

    def constant(self, value: NDArray[Any]) -> str:
        """A constant; equal ones are stored once."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._names:
            self._names[key] = name = f"constant_{len(self.constants)}"
            self.constants[name] = value
        return self._names[key]

    def needed(self, outputs: Sequence[str]) -> list[Node]:
        """The nodes that these results depend on."""
        wanted, nodes = {*outputs}, []
        for node in reversed(self.nodes):
            if node.output in wanted:
                wanted.update(node.inputs)
                nodes.append(node)
        return nodes[::-1]

    def _stored(self, name: str) -> str:
        """The name under which a value is stored; a parameter that only products have read until now is transposed."""
        if name not in self.parameters:
            return name
        if name + TRANSPOSED in self.weights:
            return self._once("Transpose", (self._float(name + TRANSPOSED),), {"perm": (1, 0)})
        self.weights.setdefault(name, self.parameters[name])
        return name

    def _float(self, name: str) -> str:
        return self._once("Cast", (name,), {"to": FLOAT}) if self.half and name in self.weights else name

    def _once(self, kind: str, inputs: tuple[str, ...], attributes: dict[str, Any]) -> str:
        key = (kind, inputs, tuple(sorted(attributes.items())))
        if key not in self._names:
            with self.scope(""):
                self._names[key] = self._add(kind, inputs, attributes)
        return self._names[key]

    def _add(self, kind: str, inputs: tuple[str, ...], attributes: dict[str, Any]) -> str:
        name = f"{self._scope}/{kind}" if self._scope else kind
        self._counts[name] = count = self._counts.get(name, 0) + 1
        output = name if count == 1 else f"{name}_{count}"
        self._made[output] = node = Node(kind, inputs, output, attributes)
        self.nodes.append(node)
        return output
