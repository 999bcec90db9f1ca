"""A watcher that follows values: the arguments and the result of every op, and the module that called it.

Nothing escapes it. Inside a module an op takes traced values only: parameters of the model, inputs of the pass, and
results of ops; anything else is a RuntimeError. The outermost calls of a pass take and return arrays: the tracer
recognizes its own results, and the arrays of a batch, by identity. Subclasses record (`ran`, `returned`, …).
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from time import perf_counter
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from bertcli.tracing.dispatch import Array, Batch, Module, Op, Signature, shape_only, untraced, unwatched
from bertcli.tracing.traced import (
    ALL,
    BATCH,
    ONE,
    STARTS,
    UNKNOWN,
    UNNAMED,
    ArrayView,
    Axes,
    Axis,
    Factor,
    Origins,
    Traced,
    extent,
    unknown,
)

# Symbols for the words in an op's signature, for axes that have none yet.
WORDS = {"head": "A", "size": "D"}


@dataclass
class Frame:
    """A module that is running, with its arguments. `touched` is its field (a submodule) that was called last."""

    path: str
    module: Module
    outer: "Frame | None"
    arguments: tuple[Any, ...]
    touched: str = ""

    def field_of(self, path: str) -> str:
        """Return the field of this module on the path of a module inside it."""
        return path.removeprefix(f"{self.path}.").partition(".")[0]


class Ran(NamedTuple):
    """An op that has run: its arguments by name, its array operands in the order of its signature, its result.

    sizes: of the axes of its signature.
    """

    op: Op[Any]
    arguments: Mapping[str, Any]
    signature: Signature
    sizes: Mapping[str, int]
    operands: tuple[Traced | None, ...]
    output: Traced
    seconds: float


class _Noted(NamedTuple):
    # Weak: no array is kept alive, and a new array at the same address is not mistaken for it.
    array: ref[NDArray[Any]]
    axes: Axes
    source: Origins
    views: tuple[ArrayView, ...]


class Tracer:
    """Run a pass on traced values; with `dry` compute only shapes. Subclasses override `ran`, `returned` and so on."""

    def __init__(self, model: str, *, dry: bool) -> None:
        self.model = model
        self.dry = dry
        # Of the module that is running; None between the outermost calls of a pass.
        self.frame: Frame | None = None
        # Tokens of each sentence of the last batch.
        self.counts: list[int] = []
        # The id of a module of the model -> its path and its twin, which has traced parameters. A module that is used
        # at several paths has its first.
        self._twins: dict[int, tuple[str, Module]] = {}
        # The id of a twin -> its path.
        self._paths: dict[int, str] = {}
        # Keeps modules alive, so that their ids stay valid.
        self._kept: list[Module] = []
        self._noted: dict[int, _Noted] = {}

    # ------------------------------------------------------------------------------------------ hooks for subclasses

    def ran(self, ran: Ran) -> None:
        """Record an op. Whatever is appended to `ran.output.source` becomes the origin of values computed from it."""

    def returned(self, path: str, module: Module, arguments: Sequence[Any], output: Traced) -> None:
        """Record that a module has returned."""

    def source_of(self, name: str) -> list[Any]:
        """Return the origins of an array of the batch ("ids", "segments", …), or of the requested "rows"."""
        return []

    def began(self, batch: Any) -> None:
        """Record that a batch enters a pass."""

    # ------------------------------------------------------------------------------------------------- as a watcher

    def register(self, twins: Iterable[tuple[str, Any, Any]]) -> None:
        """Register the model: (path, module, its twin) and (path, parameter, its traced value), see traced_tree.py."""
        for path, item, twin in twins:
            if isinstance(item, Module):
                self._twins.setdefault(id(item), (path, twin))
                self._paths[id(twin)] = path
                self._kept += [item, twin]
            else:
                self.note(item, twin)

    def knows(self, module: Module) -> bool:
        """True if a module is part of the model."""
        return id(module) in self._twins

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run a module's twin, whose parameters are traced."""
        outer = self.frame
        if outer is None:
            arguments = tuple(self._to_traced(value) for value in arguments)
            keywords = {name: self._to_traced(value) for name, value in keywords.items()}
            path, twin = self._twins.get(id(module), (None, module))
        else:
            # Inside a twin, what is called is a twin already.
            path, twin = self._paths.get(id(module)), module
        if path is None:
            raise RuntimeError(f"A {type(module).__name__} ran that is not part of the traced model '{self.model}'.")
        self.frame = Frame(path, twin, outer, arguments)
        try:
            output: Any = twin.forward(*arguments, **keywords)
        finally:
            self.frame = outer
        if outer is not None:
            outer.touched = outer.field_of(path)
        self.returned(path, twin, (*arguments, *keywords.values()), output)
        return output if outer is not None else self._to_array(output)

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run an op; in a dry run compute only the shape of its result."""
        names = argument_names(op)
        by_name = {**dict(zip(names, arguments, strict=False)), **keywords}
        if self.frame is None:
            by_name = {name: self._to_traced(value, op) for name, value in by_name.items()}
        operands = [by_name.get(name) for name in names[: len(op.signature.inputs)]]
        for operand in operands:
            self._check_operand(op, operand)
        inferred = _inferred(op, tuple(None if value is None else (value.axes, value.shape) for value in operands))
        inputs = tuple(map(_with_axes, operands, inferred.inputs))
        # The buffer that the op writes into, for ops that have such an argument.
        into = by_name.get("into")
        values = {name: untraced(value) for name, value in by_name.items()}
        seconds = 0.0
        if not self.dry:
            with unwatched():
                start = perf_counter()
                array = op.compute(**values)
                seconds = perf_counter() - start
        elif into is not None:
            array = into.array
        else:
            # A shape that costs nothing.
            array = shape_only(inferred.shape)
        # What is written into a buffer adds to the buffer's origins, which all views of it share.
        source, views = (Origins(), ()) if into is None else (into.source, into.views)
        output = Traced(array, inferred.output, source, views)
        self.ran(Ran(op, by_name, inferred.signature, inferred.sizes, inputs, output, seconds))
        if op.over not in (None, "into"):
            by_name[op.over].source.over = op.name
        return output if self.frame is not None else self._to_array(output)

    def _check_operand(self, op: Op[Any], operand: Any) -> None:
        """Raise RuntimeError for an array that the trace does not know, or that an op has written over."""
        if operand is None:
            return
        if not isinstance(operand, Traced):
            raise self._unknown(op, operand)
        if operand.source.over is not None:
            raise RuntimeError(
                f"The op {op.name} reads a value that the op {operand.source.over} has written over: an op that "
                "makes a new array would have kept it, as new_norm does in place of norm."
            )

    # ------------------------------------------------------------------ arrays to traced values, and back to arrays

    def note(self, array: NDArray[Any], value: Traced) -> Traced:
        """Remember the value of an array: outermost calls that take the array then take the value."""
        self._noted[id(array)] = _Noted(ref(array), value.axes, value.source, value.views)
        return value

    def value_of(self, array: Any) -> Traced | None:
        """Return the traced value of an array that was noted; None for any other array."""
        noted = self._noted.get(id(array))
        return Traced(array, *noted[1:]) if noted is not None and noted.array() is array else None

    def _to_array(self, value: Traced) -> Array:
        self.note(value.array, value)
        array: Array = value.array
        return array

    def _to_traced(self, value: Any, op: Op[Any] | None = None) -> Any:
        """Wrap an argument of an outermost call: batches, lists and arrays; anything else is returned as it is."""
        if isinstance(value, Batch):
            return self._batch(value)
        if isinstance(value, list | tuple):
            values = [self._to_traced(item, op) for item in value]
            return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
        if not isinstance(value, np.ndarray):
            return value
        noted = self.value_of(value)
        is_integer = value.dtype.kind in "iu"
        if noted is None and op is not None and not is_integer:
            raise self._unknown(op, value)
        if noted is not None:
            return noted
        if is_integer and value.ndim == 1 and self.counts:
            # The rows of the batch that are requested, in ascending order.
            return Traced(value, (self._requested_axis(value),), Origins(self.source_of("rows")))
        return Traced(value, unknown(value.shape), Origins())

    def _batch(self, batch: Any) -> Any:
        """The batch with traced arrays."""
        self.counts = np.diff(batch.offsets).tolist()
        self.began(batch)
        tokens: Axes = (_rows(self.counts),)
        starts: Axes = ((Factor(STARTS, len(batch.offsets)),),)
        values: dict[str, Any] = {}
        for name, axes in (("ids", tokens), ("segments", tokens), ("positions", tokens), ("offsets", starts)):
            array = getattr(batch, name)
            values[name] = self.note(array, Traced(array, axes, Origins(self.source_of(name))))
        self.note(batch.first, values["offsets"][:-1])
        return replace(batch, **values)

    def _requested_axis(self, rows: NDArray[Any]) -> Axis:
        """The axis of requested rows: how many of each sentence."""
        ends = np.cumsum([0, *self.counts])
        counts = np.diff(np.searchsorted(rows, ends))
        return _rows(counts.tolist(), "R")

    def _unknown(self, op: Op[Any], array: Any) -> RuntimeError:
        return RuntimeError(
            f"The op {op.name} was given an array of shape {np.shape(array)} that is not a parameter of '{self.model}',"
            " an input of the pass or a result of an op: something was computed that the trace cannot see."
        )


@cache
def argument_names(op: Op[Any]) -> tuple[str, ...]:
    """The names of an op's arguments, beginning with the arrays in its signature."""
    return tuple(inspect.signature(op.compute).parameters)


def _rows(counts: Sequence[int], symbol: str = "S") -> Axis:
    """The axis of the rows of a packed batch: B·S if every sentence has the same count of rows, else ΣS."""
    if len(set(counts)) == 1:
        return (Factor(BATCH, len(counts)), Factor(symbol, counts[0]))
    return (Factor(ALL + symbol, sum(counts)),)


class _Inferred(NamedTuple):
    """What follows from the axes and shapes of an op's operands: of these and of its result the axes, with names."""

    signature: Signature
    sizes: Mapping[str, int]
    inputs: tuple[Axes | None, ...]
    output: Axes
    shape: tuple[int, ...]


@lru_cache(maxsize=4096)  # the layers of a model have the same ops
def _inferred(op: Op[Any], operands: tuple[tuple[Axes, tuple[int, ...]] | None, ...]) -> _Inferred:
    """Infer an op's axes from those of its operands, (axes, shape) each, or None for one that is left out."""
    shapes = [None if operand is None else operand[1] for operand in operands]
    signature = op.signature.spread(shapes)
    sizes = signature.sizes(shapes)
    shape = signature.shape(sizes)
    inputs = tuple(
        None if operand is None else tuple(map(_named, operand[0], words))
        for operand, words in zip(operands, signature.inputs, strict=True)
    )
    return _Inferred(signature, sizes, inputs, _result_axes(signature, inputs, shape), shape)


def _with_axes(operand: Traced | None, axes: Axes | None) -> Traced | None:
    """An operand with the names of its axes."""
    if operand is None or axes is None:
        return None
    return Traced(operand.array, axes, operand.source, operand.views)


def _named(axis: Axis, word: str) -> Axis:
    symbol = WORDS.get(word, UNKNOWN)
    return tuple(Factor(symbol, factor.size) if factor.symbol == UNNAMED else factor for factor in axis)


def _result_axes(signature: Signature, operands: Sequence[Axes | None], shape: Sequence[int]) -> Axes:
    """Derive the axes of an op's result from those of its operands; a size that does not fit makes one unknown."""
    axis_of: dict[str, Axis] = {}
    for words, axes in zip(signature.inputs, operands, strict=False):
        for word, axis in zip(words, axes or (), strict=False):
            if word not in axis_of or axis_of[word][0].symbol == UNKNOWN:
                axis_of[word] = axis
    result = []
    for product, size in zip(signature.output, shape, strict=True):
        axis = joined(*(axis_of[word] for word in product.split("·")))
        result.append(axis if extent(axis) == size else unknown([size])[0])
    return tuple(result)


def joined(*axes: Axis) -> Axis:
    """Join axes into one that is their product, without the factors 1."""
    factors = tuple(factor for axis in axes for factor in axis)
    return tuple(factor for factor in factors if factor.symbol != ONE) or factors
