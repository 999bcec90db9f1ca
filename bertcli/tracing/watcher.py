"""The watcher at the seam: runs the model, or only its shapes, and records what it does.

The trace is complete: an array that is neither a parameter, nor an input of the pass, nor an earlier result raises
RuntimeError when it is passed to an op, so nothing a model computes can go unreported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import Any

import numpy as np

from bertcli.dense import Dense
from bertcli.errors import BertcliError
from bertcli.memory import shape_only
from bertcli.model import Model, expect_model
from bertcli.output.document import Document, Documented
from bertcli.packing import Packed
from bertcli.parts import Array, Module, Op, watched, watching
from bertcli.tracing.axes import BATCH, Factor, plain, pooled, rows, rows_asked, unknown
from bertcli.tracing.labels import Place, words_for
from bertcli.tracing.records import Call, Step, Totals
from bertcli.tracing.steps import Given, Operand, stats_of, step_of
from bertcli.tracing.values import AnyArray, Values

Keep = Callable[[str], bool]


@contextmanager
def trace(model: Model, *, time: bool = False, stats: bool = False, keep: Keep | None = None) -> Iterator[Trace]:
    """`with bertcli.trace(model) as trace: model.forward(ids)`, then `trace.steps`, `trace.totals`.

    Watches only this thread; results are bit-identical to those without a trace. `forward` runs the encoder, `outputs`
    also every head. A model without weights is traced by its shapes: nothing is multiplied, and the result holds no
    numbers. `time` measures each op in seconds, `stats` describes each result, `keep(path)` says for which steps a copy
    of the result is kept in `trace.arrays`. Errors: BertcliError inside another trace.
    """
    expect_model(model)
    if watched():
        raise BertcliError("A trace is already in progress in this thread: begin another one when it has ended.")
    found = Trace(model, time=time, stats=stats, keep=keep)
    with watching(found):
        yield found


@dataclass
class _Frame:
    """A module that is running; `touched` is its field that was used last."""

    path: str
    module: Module
    outer: _Frame | None
    touched: str = ""

    def field(self, path: str) -> str:
        """The field of this module that a path goes through."""
        return path.removeprefix(f"{self.path}.").partition(".")[0]


class Trace(Documented):
    """What a model did, printed as a table: `steps`, one per op; `calls`, one per module; `totals`; kept `arrays`."""

    def __init__(self, model: Model, *, time: bool = False, stats: bool = False, keep: Keep | None = None) -> None:
        self.model = model.name
        self._whole = model
        self.batch: int | None = None  # sentences of a pass; None where passes differ
        self.sequence: int | None = None  # tokens of its longest sentence
        self.steps: list[Step] = []
        self.calls: list[Call] = []
        self.arrays: dict[str, Array] = {}
        self._dry, self.timed = not model.has_weights, time
        self._stats, self._keep = stats, keep
        self._values = Values(model.network)
        self._frame: _Frame | None = None
        self._named: dict[str, int] = {}  # how many steps have a path
        self._consumed: dict[str, int] = {}  # first path of every parameter passed to an op -> its size

    @property
    def totals(self) -> Totals:
        """Sums over all steps so far."""
        macs = sum(step.macs for step in self.steps)
        return Totals(
            params=sum(self._consumed.values()),
            macs=macs,
            matmul_flops=2 * macs,
            flops=sum(step.flops for step in self.steps),
            activation_bytes=sum(step.bytes for step in self.steps),
            seconds=sum(step.seconds or 0.0 for step in self.steps) if self.timed else None,
        )

    def record(self) -> dict[str, Any]:
        """The whole trace as `bertcli trace --format json` prints it."""
        return {
            "model": self.model,
            "batch": self.batch,
            "sequence": self.sequence,
            "steps": [step.record() for step in self.steps],
            "totals": self.totals.record(),
        }

    def document(self, room: int | None = None) -> Document:
        """The table that `bertcli trace` prints."""
        from bertcli.tracing.tables import trace_document

        return trace_document(self, self._whole.config.sizes, room=room)

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        """Run a module; the arguments of an outermost module are inputs of the pass."""
        if isinstance(module, Dense):
            self._note_dense(module, *arguments)
        path = self._values.paths.get(id(module))
        if path is None:
            raise RuntimeError(f"A {type(module).__name__} ran that is not part of the traced model '{self.model}'.")
        outer = self._frame
        if outer is None:
            self._note_inputs((*arguments, *keywords.values()))
        self._frame = _Frame(path, module, outer)
        try:
            output = module.forward(*arguments, **keywords)
        finally:
            self._frame = outer
        if outer is not None:
            outer.touched = outer.field(path)
        self.calls.append(Call(path, type(module).__name__, self._values.axes(output, ())))
        return output

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        """Run an op, or only its shapes, and record a step."""
        given = Given.to(op, arguments, keywords)
        operands = [self._operand(op, given, i, array) for i, array in enumerate(given.arrays) if array is not None]
        start = perf_counter()
        output = self._shape_alone(given) if self._dry else op.compute(*arguments, **keywords)
        seconds = perf_counter() - start if self.timed else None
        axes = given.axes(operands)
        self._values.bind(output, axes)
        path, words = self._path(op, operands), words_for(self._places(op), given.arguments)
        step = step_of(op, given, operands, axes, index=len(self.steps), path=path, words=words)
        stats = stats_of(output) if self._stats and not self._dry else None
        self.steps.append(replace(step, seconds=seconds, stats=stats))
        if self._keep is not None and not self._dry and self._keep(path):
            self.arrays[path] = np.array(output).reshape(step.output.shape)  # a copy: later ops work in place
        return output

    def _note_dense(self, module: Dense, vectors: Array) -> None:
        """Register the Dense layers after the pooling once one of them runs: only then have their files been read."""
        if id(module) not in self._values.paths and self._whole.path is not None:
            for number, layer in enumerate(self._whole.sentence.dense):
                symbols = {"inputs": pooled(number), "outputs": pooled(number + 1)}
                self._values.take_in(layer, f"dense.{number}", symbols)
        if self._values.axes(vectors, ()) is None:  # they are not made by an op
            self._values.bind(vectors, plain([BATCH, pooled(0)], vectors.shape))

    @staticmethod
    def _shape_alone(given: Given) -> Array:
        """The result as a shape that costs nothing, or the buffer it would have been written into."""
        into: Array | None = given.arguments.get("into")
        return shape_only(given.shape) if into is None else into

    def _operand(self, op: Op[Any], given: Given, position: int, array: AnyArray) -> Operand:
        axes = self._values.axes(array, given.signature.inputs[position])
        if axes is None:
            raise RuntimeError(
                f"The op {op.name} was given an array of shape {array.shape} that is not a parameter of '{self.model}',"
                " an input of the pass or a result of an op: something was computed that the trace cannot see."
            )
        names = self._values.names(array)
        if not names:
            return Operand(position, axes, None)
        self._consumed[names[0].path] = names[0].size
        here = f"{self._frame.path}." if self._frame else ""
        return Operand(position, axes, next((one for one in names if one.path.startswith(here)), names[0]))

    def _path(self, op: Op[Any], operands: list[Operand]) -> str:
        """The path of an op: the parameter it uses (for `weight` the module itself), else the module and the op.

        A path that is already taken gets a number: `encoder.layers.0.add`, `encoder.layers.0.add_2`.
        """
        frame = self._frame
        used = next((operand.parameter.path for operand in operands if operand.parameter), None)
        if frame is not None and used is not None:
            frame.touched = frame.field(used)
        name = op.name if used is None or frame is None else "" if frame.touched == "weight" else frame.touched
        path = ".".join(part for part in (frame.path if frame else "", name) if part)
        self._named[path] = count = self._named.get(path, 0) + 1
        return path if count == 1 else f"{path}_{count}"

    def _places(self, op: Op[Any]) -> list[Place]:
        """Keys of an op in the table of labels: its module and the field used last, or that module's place."""
        frame = self._frame
        if frame is None:
            return [(None, "", op.name)]
        places: list[Place] = [(type(frame.module), frame.touched, op.name)]
        if frame.outer is not None:
            places.append((type(frame.outer.module), frame.outer.field(frame.path), op.name))
        return places

    def _note_inputs(self, arguments: tuple[Any, ...]) -> None:
        """Register the inputs of a pass: arrays of a packed batch, rows asked for, and any others without symbols."""
        counts: list[int] = []
        for one in arguments:
            if isinstance(one, Packed):
                counts = np.diff(one.offsets).tolist()
                self._note_batch(one, counts)
        for one in arguments:
            if isinstance(one, np.ndarray) and self._values.axes(one, ()) is None:
                asked = counts and one.dtype.kind in "iu"
                self._values.bind(one, (rows_asked(one, counts),) if asked else unknown(one.shape))

    def _note_batch(self, batch: Packed, counts: list[int]) -> None:
        shape = len(counts), max(counts)
        alike = not self.steps or shape == (self.batch, self.sequence)
        self.batch, self.sequence = shape if alike else (None, None)
        for item in fields(batch):
            array = getattr(batch, item.name)
            if isinstance(array, np.ndarray):
                self._values.bind(array, ((Factor(BATCH, len(counts)),) if item.name == "offsets" else rows(counts),))
