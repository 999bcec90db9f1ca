"""Make an ONNX graph of a network: trace a dry pass; each op adds the nodes of its rule in rules.py, each view its own.

file.py writes the graph, session.py runs it, open_session.py opens it for a model.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bertcli.engine.packing import Packed
from bertcli.engine.padded_batch import pack_padded
from bertcli.network.heads import Network
from bertcli.network.module import Module
from bertcli.network.traced_tree import twins
from bertcli.tracing.dispatch import Array, watching
from bertcli.tracing.traced import ArrayView, Axes, Origins, Traced, Weight, named_axes
from bertcli.tracing.tracer import Ran, Tracer, argument_names
from bertcli.wings.onnx import rules
from bertcli.wings.onnx.graph import (
    BATCH,
    IDS,
    POSITIONS,
    ROWS,
    SEGMENTS,
    SEQUENCE,
    TOKENS,
    Axis,
    Dim,
    Graph,
    OnnxValue,
    StoredType,
)

logger = logging.getLogger("bertcli")

OPSET = 20  # the first with Gelu
HIDDEN = "last_hidden_state"
SYMBOLS = {"B": BATCH, "S": SEQUENCE}  # of the dimensions that may have any size
SENTENCES, LENGTH = 2, 3  # of the pass; any sizes above 1 would do


class Exporter(Tracer):
    """A tracer that builds `graph`; the origin of a value is the name of its tensor.

    model_twins: the model and its twin, as in `Tracer.register`.
    """

    def __init__(self, graph: Graph, model_twins: Iterable[tuple[str, Any, Any]]) -> None:
        super().__init__("the model", dry=True)
        self.graph = graph
        self.register(model_twins)
        tokens = np.zeros((SENTENCES, LENGTH), np.intp)  # a dry pass computes only shapes: any ids will do
        self.batch, _ = pack_padded(tokens, tokens, tokens == 0)

    def watch(self, run: Callable[[Packed], Mapping[str, Array]]) -> dict[str, OnnxValue]:
        """Trace `run` on the batch, and return its results as tensors; they must come from modules or ops."""
        with watching(self):
            return {name: self._result(array) for name, array in run(self.batch).items()}

    def applied(self, layer: Callable[[Array], Array], x: OnnxValue) -> OnnxValue:
        """Apply a layer to a tensor [sentence, number]."""
        stand_in = np.zeros([dim.size for dim in x.dims], np.float32)
        self.note(stand_in, Traced(stand_in, named_axes(["B", "E"], stand_in.shape), Origins([x.name])))
        with watching(self):
            return self._result(layer(stand_in))

    def pooled(self, hidden: OnnxValue, modes: Sequence[str]) -> OnnxValue:
        """Pool [sentence, token, hidden]; this and the next two are for a kind's steps (kinds/graph.py)."""
        return rules.pooled(hidden, modes)

    def unit(self, x: OnnxValue, smallest: float) -> OnnxValue:
        """Normalize every row."""
        return rules.unit(x, smallest)

    def first(self, x: OnnxValue, width: int) -> OnnxValue:
        """Keep the first numbers of every row."""
        return rules.first(x, width)

    def source_of(self, name: str) -> list[Any]:
        """Return the tensor for an array of the batch."""
        positions = POSITIONS if self.graph.packed else rules.positions(self.graph).name
        return [{"ids": IDS, "segments": SEGMENTS, "positions": positions, "offsets": rules.OFFSETS}[name]]

    def ran(self, ran: Ran) -> None:
        """Add the nodes of an op."""
        rule: Callable[..., OnnxValue] | None = getattr(rules, ran.op.name, None)
        if rule is None:
            raise RuntimeError(f"The op {ran.op.name} has no ONNX rule.")
        names = argument_names(ran.op)[: len(ran.operands)]
        settings = {name: value for name, value in ran.arguments.items() if name not in names and name != "into"}
        with self.graph.scope(self.frame.path if self.frame else ""):
            made = rule(*(operand and self.tensor(operand) for operand in ran.operands), **settings)
            # A result was written into a view of a buffer: the tensor of the buffer is what later views are taken of.
            for view in reversed(ran.output.views):
                made = self._undo_view(made, view)
        ran.output.source[:] = [made.name]

    def tensor(self, value: Traced) -> OnnxValue:
        """Turn a traced value into a tensor; its views become nodes."""
        (source,) = value.source
        tensor = OnnxValue(self.graph, source.home if isinstance(source, Weight) else source)
        for view in value.views:
            tensor = self._apply_view(tensor, view)
        return tensor.with_axes(*self._dimensions(value.axes))

    def _result(self, array: Array) -> OnnxValue:
        value = self.value_of(array)
        if value is None:
            raise RuntimeError(f"An array of shape {array.shape} was computed that the exporter cannot see.")
        return self.tensor(value)

    def _apply_view(self, x: OnnxValue, view: ArrayView) -> OnnxValue:
        """Apply a view to a tensor."""
        before, numbers = self._dimensions(view.before), view.numbers
        if x.name == rules.OFFSETS:
            # The only view of offsets that modules take is that of the sentences' first tokens.
            return OnnxValue(x.graph, rules.FIRST)
        match view.operation:
            case "divide":
                after = self._dimensions(view.after)
                axis = _sentences_of(_flat(before), _flat(after))
                if axis is None:
                    return x.reshaped(_flat(before), _flat(after))
                # Every token stands at its position in the padded layout, so positions are 0, 1, 2 … there.
                return rules.positions(x.graph) if x.name == POSITIONS else x.node("Gather", ROWS, axis=axis)
            case "transpose":
                return x.permuted(*_order(before, numbers))
            case "index":
                return x.node("Gather", numbers[1], axis=0)
            case "slice":
                axis, start, stop = numbers
                if any(dim.symbol for dim in before[axis]):
                    raise RuntimeError("A module takes a view of some tokens: no graph can have that.")
                return x.cut(len(_flat(before[:axis])), [start], [stop])

    def _undo_view(self, x: OnnxValue, view: ArrayView) -> OnnxValue:
        """Undo a view: return the tensor that it was taken from."""
        before, after = self._dimensions(view.before), self._dimensions(view.after)
        if view.operation == "divide":
            if _sentences_of(_flat(before), _flat(after)) == 0:
                return rules.unpadded(x, *(dim.size for dim in _flat(after)[2:]))
            return x.reshaped(_flat(after), _flat(before))
        if view.operation == "transpose":
            return x.permuted(*_order(after, [view.numbers.index(i) for i in range(len(after))]))
        raise RuntimeError("An op wrote into a part of a value: no graph can have that.")

    def _dimensions(self, axes: Axes) -> tuple[Axis, ...]:
        """Map each axis to the tensor's dimensions: an axis of packed tokens has two where the graph is padded."""
        dimensions = []
        for axis in axes:
            of_axis = _merged([Dim(size, SYMBOLS.get(symbol)) for symbol, size in axis])
            is_tokens = len(of_axis) == 2  # batch and sequence
            dimensions.append((Dim(SENTENCES * LENGTH, TOKENS),) if self.graph.packed and is_tokens else of_axis)
        return tuple(dimensions)


def _sentences_of(before: list[Dim], after: list[Dim]) -> int | None:
    """The dimension of packed tokens that a view divides into sentences and their tokens; None for other views."""
    numbers = [number for number, dim in enumerate(before) if dim.symbol == TOKENS and dim not in after]
    return numbers[0] if numbers else None


def _merged(dims: list[Dim]) -> Axis:
    """Merge adjacent dimensions of fixed size into one; the outer ones come first."""
    merged: list[Dim] = []
    for dim in dims:
        if merged and not dim.symbol and not merged[-1].symbol:
            merged[-1] = Dim(merged[-1].size * dim.size)
        else:
            merged.append(dim)
    return tuple(merged)


def _flat(axes: Iterable[Axis]) -> list[Dim]:
    return [dim for axis in axes for dim in axis]


def _order(axes: tuple[Axis, ...], order: Iterable[int]) -> list[int]:
    """Translate an order of axes into an order of dimensions."""
    first = [len(_flat(axes[:number])) for number in range(len(axes))]
    return [first[number] + i for number in order for i in range(len(axes[number]))]


def exporter_of(
    network: Network,
    after: Sequence[Module] = (),
    *,
    opset: int,
    stored: StoredType = "float32",
    packed: bool = False,
) -> Exporter:
    """Make an exporter for this network, and for the Dense layers that come `after` its pooling."""
    trees: dict[str, Module] = {"": network, **{f"dense.{number}": layer for number, layer in enumerate(after)}}
    model_twins = [twin for path, tree in trees.items() for twin in twins(tree, path)]
    weights = {path: item for path, item, _ in model_twins if not isinstance(item, Module)}
    return Exporter(Graph(weights, opset, stored, packed=packed), model_twins)
