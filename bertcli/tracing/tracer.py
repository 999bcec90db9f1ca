"""A watcher that follows values: the arguments and the result of every op, and the module that called it.

Nothing escapes it. Inside a module an op takes traced values only: parameters of the model, inputs of the pass, and
results of ops; anything else is a RuntimeError. The outermost calls of a pass take and return arrays: the tracer
recognizes its own results, and the arrays of a batch, by identity. Subclasses record (`ran`, `returned`, …).
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
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

WORDS = {"head": "A", "size": "D"}  # symbols for the words in an op's signature, for axes that have none yet


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
    """An op that has run: its arguments by name, its array operands in the order of its signature, its result."""

    op: Op[Any]
    arguments: Mapping[str, Any]
    signature: Signature
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
        self.frame: Frame | None = None  # of the module that is running
        self.counts: list[int] = []  # tokens of each sentence of the last batch
        # The id of a module of the model -> its path and its twin, which has traced parameters. A module that is used
        # at several paths has its first.
        self._twins: dict[int, tuple[str, Module]] = {}
        self._paths: dict[int, str] = {}  # the id of a twin -> its path
        self._kept: list[Module] = []  # keeps modules alive, so that their ids stay valid
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

    def register(self, places: Iterable[tuple[str, Any, Any]]) -> None:
        """Register the model: (path, module, its twin) and (path, parameter, its traced value), see traced_tree.py."""
        for path, item, other in places:
            if isinstance(item, Module):
                self._twins.setdefault(id(item), (path, other))
                self._paths[id(other)] = path
                self._kept += [item, other]
            else:
                self.note(item.array, other.array)

    def knows(self, module: Module) -> bool:
        """True if a module is part of the model."""
        return id(module) in self._twins

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run a module's twin, whose parameters are traced."""
        outer = self.frame
        if outer is None:
            arguments = tuple(self._to_traced(value) for value in arguments)
            keywords = {name: self._to_traced(value) for name, value in keywords.items()}
        path, twin = (self._paths.get(id(module)), module) if outer else self._twins.get(id(module), (None, module))
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
            by_name = {name: self._to_traced(operand, op) for name, operand in by_name.items()}
        operands = [by_name.get(name) for name in names[: len(op.signature.inputs)]]
        for operand in operands:
            if not isinstance(operand, Traced | None):
                raise self._unknown(op, operand)
            if operand is not None and operand.source.over is not None:
                raise RuntimeError(
                    f"The op {op.name} reads a value that the op {operand.source.over} has written over: an op that "
                    "makes a new array would have kept it, as new_norm does in place of norm."
                )
        signature, into = op.signature.spread(operands), by_name.get("into")
        inputs = tuple(
            None
            if operand is None
            else Traced(operand.array, _named(operand.axes, words), operand.source, operand.views)
            for operand, words in zip(operands, signature.inputs, strict=True)
        )
        shape = signature.shape(inputs)
        values = {name: untraced(operand) for name, operand in by_name.items()}
        seconds = 0.0
        if self.dry:  # a shape that costs nothing, or the buffer that would have been written into
            array = shape_only(shape) if into is None else into.array
        else:
            with unwatched():
                start = perf_counter()
                array = op.compute(**values)
                seconds = perf_counter() - start
        axes = _result(signature, [None if operand is None else operand.axes for operand in inputs], shape)
        output = Traced(array, axes, *((Origins(),) if into is None else (into.source, into.views)))
        self.ran(Ran(op, by_name, signature, inputs, output, seconds))
        if op.over not in (None, "into"):
            by_name[op.over].source.over = op.name
        return output if self.frame is not None else self._to_array(output)

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
        noted, whole = self.value_of(value), value.dtype.kind in "iu"
        if noted is None and op is not None and not whole:
            raise self._unknown(op, value)
        asked = whole and value.ndim == 1 and bool(self.counts)
        if asked:
            return noted or Traced(value, (self._rows_asked(value),), Origins(self.source_of("rows")))
        return noted or Traced(value, unknown(value.shape), Origins())

    def _batch(self, batch: Any) -> Any:
        self.counts = np.diff(batch.offsets).tolist()
        self.began(batch)
        tokens, starts = (_rows(self.counts),), ((Factor(STARTS, len(batch.offsets)),),)
        values: dict[str, Any] = {
            name: self.note(array, Traced(array, axes, Origins(self.source_of(name))))
            for name, axes in (("ids", tokens), ("segments", tokens), ("positions", tokens), ("offsets", starts))
            for array in (getattr(batch, name),)
        }
        self.note(batch.first, values["offsets"][:-1])
        return replace(batch, **values)

    def _rows_asked(self, rows: NDArray[Any]) -> Axis:
        return _rows(np.diff(np.searchsorted(rows, np.cumsum([0, *self.counts]))).tolist(), "R")

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


def _named(axes: Axes, words: Sequence[str]) -> Axes:
    """Name the unnamed axes by the words in an op's signature."""
    return tuple(
        tuple(
            Factor(WORDS.get(word, UNKNOWN), size) if symbol == UNNAMED else Factor(symbol, size)
            for symbol, size in axis
        )
        for axis, word in zip(axes, words, strict=True)
    )


def _result(signature: Signature, operands: Sequence[Axes | None], shape: Sequence[int]) -> Axes:
    """Derive the axes of an op's result from those of its operands; a size that does not fit makes one unknown."""
    bound: dict[str, Axis] = {}
    for words, axes in zip(signature.inputs, operands, strict=False):
        for word, axis in zip(words, axes or (), strict=False):
            if word not in bound or bound[word][0].symbol == UNKNOWN:
                bound[word] = axis
    named = tuple(joined(*(bound[word] for word in product.split("·"))) for product in signature.output)
    return tuple(axis if extent(axis) == size else unknown([size])[0] for axis, size in zip(named, shape, strict=True))


def joined(*axes: Axis) -> Axis:
    """Join axes into one that is their product, without the factors 1."""
    factors = tuple(factor for axis in axes for factor in axis)
    return tuple(factor for factor in factors if factor.symbol != ONE) or factors
