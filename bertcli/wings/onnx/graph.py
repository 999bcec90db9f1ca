"""An ONNX graph under construction: nodes, weights and constants by name. The onnx package is not needed here."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.tracing.dispatch import Array

IDS, SEGMENTS, MASK = INPUTS = ("input_ids", "token_type_ids", "attention_mask")  # the names that every tool expects
POSITIONS, ROWS, PLACES = ("position_ids", "token_rows", "padded_places")  # of packed graphs alone, see Graph
BATCH, SEQUENCE, TOKENS = "batch", "sequence", "tokens"  # dimensions that may have any size
FLOAT, INT64 = 1, 7  # of onnx.TensorProto
BLOCK = 32  # numbers with one scale, where matrices and tables are stored as int8
StoredType = Literal["float32", "float16", "int8"]  # how weights are; they are always computed with as float32
TRANSPOSED = ".T"  # ends the name of a parameter that is stored transposed


class Dim(NamedTuple):
    """A dimension of a tensor: its size in the watched pass and, if it may have any other, its name."""

    size: int
    symbol: str | None = None  # BATCH, SEQUENCE or TOKENS


# Of an array: in a padded graph an axis of packed tokens is two of the tensor's dimensions, batch and sequence.
Axis = tuple[Dim, ...]


@dataclass(frozen=True, eq=False)
class OnnxValue:
    """A value of a graph, with NumPy's arithmetic: every operation adds its node.

    axes: the dimensions, grouped by the axes of an op's array; set only for the arguments of an op.
    """

    graph: "Graph"
    name: str
    axes: tuple[Axis, ...] = ()

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The tensor's own dimensions."""
        return tuple(dim for axis in self.axes for dim in axis)

    def with_axes(self, *axes: Axis) -> "OnnxValue":
        """Return a copy with these axes."""
        return OnnxValue(self.graph, self.name, axes)

    def node(self, op_type: str, *others: "Operand", **attributes: Any) -> "OnnxValue":
        """Add an operator on this tensor and others, and return its result."""
        return self.graph.node(op_type, self, *others, **attributes)

    def __add__(self, other: "Operand") -> "OnnxValue":
        return self.node("Add", other)

    def __sub__(self, other: "Operand") -> "OnnxValue":
        return self.node("Sub", other)

    def __rsub__(self, other: float) -> "OnnxValue":
        return self.graph.node("Sub", other, self)

    def __mul__(self, other: "Operand") -> "OnnxValue":
        return self.node("Mul", other)

    def __truediv__(self, other: "Operand") -> "OnnxValue":
        return self.node("Div", other)

    def __matmul__(self, other: "Operand") -> "OnnxValue":
        return self.node("MatMul", other)

    def cast(self, type: int = FLOAT) -> "OnnxValue":
        """Convert the numbers to another type."""
        return self.node("Cast", to=type)

    def unsqueezed(self, *axes: int) -> "OnnxValue":
        """Insert axes of length 1 at these positions of the result."""
        return self.node("Unsqueeze", [*axes])

    def cut(self, axis: int, start: "Operand", stop: "Operand") -> "OnnxValue":
        """Slice an axis; the bounds are vectors of one number."""
        return self.node("Slice", start, stop, [axis])

    def reshaped(self, before: Sequence[Dim], after: Sequence[Dim]) -> "OnnxValue":
        """Reshape from the dimensions `before` to the dimensions `after`."""
        if [*before] == [*after]:
            return self
        shape: list[int] = []
        for number, dim in enumerate(after):
            if not dim.symbol:
                shape.append(dim.size)
                continue
            # ONNX's 0 is the size that stood there before, -1 whatever is left.
            stays = number < len(before) and before[number] == dim
            shape.append(0 if stays else -1)
        if shape.count(-1) > 1:
            raise RuntimeError(f"ONNX cannot reshape {[*before]} into {[*after]}: two sizes are unknown.")
        return self.node("Reshape", shape)

    def permuted(self, *order: int) -> "OnnxValue":
        """Reorder the dimensions; two permutations in a row become one node."""
        whole, made = self, self.graph.made.get(self.name)
        if made is not None and made.op_type == "Transpose":
            whole, order = OnnxValue(self.graph, made.inputs[0]), tuple(made.attributes["perm"][i] for i in order)
        return whole if [*order] == sorted(order) else whole.node("Transpose", perm=order)


# What an operator reads: a tensor, the name of an input or a parameter, or a constant. A number is float32 or int64, as
# it is written, and has no axes; a list is a vector of int64.
Operand = OnnxValue | str | float | Sequence[int] | NDArray[Any]


class Band(NamedTuple):
    """The mask to add to scores of windows, and the positions of their keys [block, key]; None: they have all keys."""

    mask: OnnxValue
    keys: OnnxValue | None


class Node(NamedTuple):
    """An operator with its one result."""

    op_type: str
    inputs: tuple[str, ...]
    output: str
    attributes: dict[str, Any]


class Graph:
    """Nodes in the order in which they run. A parameter is stored when a node first has its path as an input.

    packed: tokens are one dimension, as in NumPy, and sentences are padded for attention alone. Ids, segments and
    POSITIONS are [tokens]. ROWS [batch, sequence] has for each place of the padded layout the row of its token, and any
    row where MASK [batch, sequence] is 0; PLACES [tokens] has the index of each token among all those places. Otherwise
    the graph is what other tools expect: ids, segments and mask, all [batch, sequence].
    """

    def __init__(
        self, parameters: Mapping[str, Array], opset: int, stored: StoredType = "float32", *, packed: bool = False
    ) -> None:
        self.parameters = parameters
        self.opset = opset
        self.stored = stored
        self.packed = packed
        padded = (BATCH, SEQUENCE)
        self.inputs: dict[str, tuple[str, ...]] = dict.fromkeys(INPUTS, padded)  # their dimensions
        if packed:
            self.inputs |= dict.fromkeys((IDS, SEGMENTS, POSITIONS, PLACES), (TOKENS,)) | {ROWS: padded}
        self.nodes: list[Node] = []
        self.made: dict[str, Node] = {}  # by the name of their result
        self.weights: dict[str, NDArray[Any]] = {}  # parameters, as the model has them or transposed; and as int8
        self.constants: dict[str, NDArray[Any]] = {}
        self.bands: dict[str, Band] = {}  # by the names of scores, and of weights made of them; see rules.within
        self._scope = ""
        self._counts: dict[str, int] = {}
        self._names: dict[Any, str] = {}
        self._shared = {*self.inputs}  # the inputs, constants, and what is made of these alone

    @contextmanager
    def scope(self, path: str) -> Iterator[None]:
        """Begin the names of nodes that are added in this context with the path of a module."""
        before, self._scope = self._scope, path
        try:
            yield
        finally:
            self._scope = before

    def node(self, op_type: str, *operands: Operand, **attributes: Any) -> OnnxValue:
        """Add an operator, and return its result. Operators on inputs and constants only are added once per graph."""
        inputs = tuple(self._float(self._stored(self._name(operand))) for operand in operands)
        if not self._shared.issuperset(inputs):
            return OnnxValue(self, self._add(op_type, inputs, attributes))
        name = self._once(op_type, inputs, attributes)
        self._shared.add(name)
        return OnnxValue(self, name)

    def matrix(self, weight: Operand) -> OnnxValue:
        """Return a parameter [out, in] as [in, out] for MatMul; it is stored transposed, unless others read it too."""
        name = self._name(weight)
        if name not in self.parameters or name in self.weights:
            return OnnxValue(self, self._once("Transpose", (self._float(self._stored(name)),), {"perm": (1, 0)}))
        self.weights.setdefault(name + TRANSPOSED, self.parameters[name].T)
        return OnnxValue(self, self._float(name + TRANSPOSED))

    def rows(self, table: Operand, indices: Operand) -> OnnxValue:
        """Gather rows of a table; if it is stored as float16, convert only these rows."""
        stored = self._stored(self._name(table))
        half = self.stored == "float16" and stored in self.weights
        rows = self._add("Gather", (stored if half else self._float(stored), self._name(indices)), {"axis": 0})
        return OnnxValue(self, rows).cast() if half else OnnxValue(self, rows)

    def constant(self, value: NDArray[Any]) -> str:
        """Add a constant; equal ones are stored once."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._names:
            self._names[key] = name = f"constant_{len(self.constants)}"
            self.constants[name] = value
            self._shared.add(name)
        return self._names[key]

    def needed(self, outputs: Sequence[str]) -> list[Node]:
        """List the nodes that these results depend on."""
        read, nodes = {*outputs}, []
        for node in reversed(self.nodes):
            if node.output in read:
                read.update(node.inputs)
                nodes.append(node)
        return nodes[::-1]

    def _name(self, operand: Operand) -> str:
        if isinstance(operand, OnnxValue | str):
            return operand if isinstance(operand, str) else operand.name
        if isinstance(operand, np.ndarray):
            return self.constant(operand)
        return self.constant(np.array(operand, np.float32 if isinstance(operand, float) else np.int64))

    def _stored(self, name: str) -> str:
        """Return the name that a value is stored under; transpose back a parameter that only products have read yet."""
        if name not in self.parameters:
            return name
        if name + TRANSPOSED in self.weights:
            return self._once("Transpose", (self._float(name + TRANSPOSED),), {"perm": (1, 0)})
        self.weights.setdefault(name, self.parameters[name])
        return name

    def _float(self, name: str) -> str:
        """Return a value as float32; add nodes that convert it if it is stored otherwise.

        int8: w ≈ scale · q with scale = max|w| / 127 of a block, so that every weight is off by at most scale / 2.
        """
        weight = self.weights.get(name)
        if weight is None or self.stored == "float32":
            return name
        if self.stored == "float16":
            return self._once("Cast", (name,), {"to": FLOAT})
        if weight.ndim < 2 or weight.size % BLOCK:
            return name
        if f"{name}.int8" not in self.weights:
            blocks = weight.reshape(-1, BLOCK)
            scales = np.maximum(np.abs(blocks).max(axis=1, keepdims=True) / 127, np.finfo(np.float32).tiny)
            self.weights |= {f"{name}.int8": np.rint(blocks / scales).astype(np.int8), f"{name}.scales": scales}
        whole = self._once("Cast", (f"{name}.int8",), {"to": FLOAT})
        whole = self._once("Mul", (whole, f"{name}.scales"), {})
        return self._once("Reshape", (whole, self._name(weight.shape)), {})

    def _once(self, op_type: str, inputs: tuple[str, ...], attributes: dict[str, Any]) -> str:
        key = (op_type, inputs, tuple(sorted(attributes.items())))
        if key not in self._names:
            with self.scope(""):
                self._names[key] = self._add(op_type, inputs, attributes)
        return self._names[key]

    def _add(self, op_type: str, inputs: tuple[str, ...], attributes: dict[str, Any]) -> str:
        name = f"{self._scope}/{op_type}" if self._scope else op_type
        self._counts[name] = count = self._counts.get(name, 0) + 1
        output = name if count == 1 else f"{name}_{count}"
        self.made[output] = node = Node(op_type, inputs, output, attributes)
        self.nodes.append(node)
        return output
