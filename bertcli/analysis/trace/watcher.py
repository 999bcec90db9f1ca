"""The watcher at the seam: runs the model, or only its shapes, and records what it does.

The trace is complete: an array that is neither a parameter, nor an input of the pass, nor an earlier result raises
RuntimeError when it is passed to an op, so nothing a model computes can go unreported.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import prod
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.labels import Place, Words, words_for
from bertcli.analysis.trace.steps import ITEM, Call, Step, Totals, stats_of
from bertcli.analysis.trace.tables import trace_document
from bertcli.analysis.trace.values import (
    BATCH,
    AnyArray,
    Axes,
    Factor,
    Named,
    Values,
    multiplied,
    plain,
    pooled,
    result,
    rows,
    rows_asked,
    show,
    unknown,
)
from bertcli.checkpoint.sentence import Dense
from bertcli.engine.array import Array, Integers, shape_only
from bertcli.engine.packing import Packed, SameLength
from bertcli.engine.watcher import watched, watching
from bertcli.errors import BertcliError
from bertcli.model import Model, expect_model
from bertcli.network.module import Module, Op, Signature
from bertcli.network.network import outputs
from bertcli.report.documents import Document, Documented
from bertcli.report.tables import terminal_width

Keep = Callable[[str], bool]


@contextmanager
def trace(model: Model, *, time: bool = False, stats: bool = False, keep: Keep | None = None) -> Iterator[Trace]:
    """`with bertcli.trace(model) as trace: model.forward(ids)`, then `trace.steps`, `trace.totals`.

    Watches only this thread. Results are bit-identical to those without a trace; only a `forward` of so many tokens
    that it is otherwise computed in micro-batches differs, by at most 1e-6 of a vector's largest number. `forward` runs
    the encoder, `outputs` also every head. A model without weights is traced by its shapes: nothing is multiplied, and
    the result holds no numbers. `time` measures each op in seconds, `stats` describes each result, `keep(path)` says
    for which steps a copy of the result is kept in `trace.arrays`. Errors: BertcliError inside another trace.
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
    begun: Counter[int] = field(default_factory=Counter)  # how often each module inside was called, by its id

    def field_of(self, path: str) -> str:
        """The field of this module that a path goes through."""
        return path.removeprefix(f"{self.path}.").partition(".")[0]


class Operand(NamedTuple):
    """An array that was passed to an op: its axes, and which parameter it is, if any.

    `sources` are the steps that made it, or the path of the parameter.
    """

    axes: Axes
    parameter: Named | None
    sources: tuple[int | str, ...]

    @property
    def is_vector(self) -> bool:
        """Whether it is a bias, scale or shift: a parameter that is not listed as an operand."""
        return self.parameter is not None and len(self.axes) == 1


@cache
def _argument_names(op: Op[Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(op.compute).parameters)


class Trace(Documented):
    """What a model did, printed as a table: `steps`, one per op; `calls`, one per module; `totals`; kept `arrays`."""

    def __init__(
        self,
        model: Model,
        *,
        time: bool = False,
        stats: bool = False,
        keep: Keep | None = None,
        shapes_only: bool = False,
    ) -> None:
        self.model = model.name
        self._whole = model
        self.batch: int | None = None  # sentences of a pass; None where passes differ
        self.sequence: int | None = None  # tokens of its longest sentence
        self.steps: list[Step] = []
        self.calls: list[Call] = []
        self.arrays: dict[str, Array] = {}
        self._dry, self.timed = shapes_only or not model.has_weights, time
        self._stats, self._keep = stats, keep
        self._values = Values(model.network, model.config.aliases)
        self._frame: _Frame | None = None
        self._named: dict[str, int] = {}  # how many steps have a path
        self._consumed: dict[str, int] = {}  # first path of every parameter passed to an op -> its size
        self._used: set[str] = set()  # the same since the outermost module that is running began

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

    def document(self, width: int | None = None) -> Document:
        """The table that `bertcli trace` prints; `width` is that of the terminal, None if it is not for one."""
        return trace_document(self, self._whole.config.sizes, width=width)

    def __str__(self) -> str:
        return str(self.document(terminal_width()))

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        """Run a module; the arguments of an outermost module are inputs of the pass."""
        if isinstance(module, Dense):
            self._note_dense(module, *arguments)
        outer, path = self._frame, self._path_of(module)
        given = (*arguments, *keywords.values())
        if outer is None:
            self._used.clear()
            self._note_inputs(given)
        makers = self._makers(given)
        self._frame = _Frame(path, module, outer)
        try:
            output = module.forward(*arguments, **keywords)
        finally:
            self._frame = outer
        if outer is not None:
            outer.touched = outer.field_of(path)
        axes, made = self._values.axes(output, ()), self._makers([output])
        self.calls.append(Call(path, type(module).__name__, axes, makers, made, len(self.steps)))
        return output

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        """Run an op, or only its shapes, and record a step."""
        names = _argument_names(op)
        given = {**dict(zip(names, arguments, strict=False)), **keywords}
        arrays = tuple(given.get(name) for name in names[: len(op.signature.inputs)])
        signature, into = op.signature.spread(arrays), given.get("into")
        operands = [
            None if array is None else self._operand(op, array, words)
            for array, words in zip(arrays, signature.inputs, strict=True)
        ]
        shape = signature.shape(arrays)
        start = perf_counter()
        if self._dry:  # a shape that costs nothing, or the buffer that would have been written into
            output: Array = shape_only(shape) if into is None else into
        else:
            output = op.compute(*arguments, **keywords)
        seconds = perf_counter() - start if self.timed else None
        axes, index = result(signature, [operand and operand.axes for operand in operands], shape), len(self.steps)
        self._values.bind(output, axes, makers=(index,) if into is None else (*self._values.makers(into), index))
        macs = prod(signature.sizes(arrays).values()) if op.contracts else 0
        stats = stats_of(output) if self._stats and not self._dry else None
        step = replace(self._step(op, given, signature, operands, axes, macs), seconds=seconds, stats=stats)
        self.steps.append(step)
        if self._keep is not None and not self._dry and self._keep(step.path):
            self.arrays[step.path] = np.array(output).reshape(step.output.shape)  # a copy: later ops work in place
        return output

    def _step(
        self,
        op: Op[Any],
        given: Mapping[str, Any],
        signature: Signature,
        operands: Sequence[Operand | None],
        axes: Axes,
        macs: int,
    ) -> Step:
        """The record of an op with these operands, in the order of its signature, and a result with these axes.

        FLOPs are 2·MACs plus the op's `work` for every number of the result.
        """
        used = [operand.parameter for operand in operands if operand and operand.parameter]
        path = self._path(op, used)
        group, operation, names, name = words_for(self._places(op), given) or Words("", op.name, (), "")
        matrices = [(i, one) for i, one in enumerate(operands) if one and not one.is_vector]
        matrices.sort(key=lambda pair: pair[1].parameter is not None)  # data before parameters
        inputs = []
        for word, (i, one) in zip([*names, *[""] * len(matrices)], matrices, strict=False):
            tied = " (tied)" if one.parameter and one.parameter.tied else ""
            inputs.append(show(f"{word}{tied}", multiplied(signature, i, one.axes) if op.contracts else one.axes))
        output = show(name, axes)
        return Step(
            index=len(self.steps),
            path=path,
            group=group,
            operation=operation,
            inputs=tuple(inputs),
            output=output,
            params=sum(parameter.size for parameter in used if not parameter.tied),
            macs=macs,
            flops=2 * macs + op.work(given) * prod(output.shape),
            bytes=ITEM * prod(output.shape),
            op=op.name,
            module=self._frame.path if self._frame else "",
            parameters=tuple(parameter.path for parameter in used),
            sources=tuple(dict.fromkeys(source for operand in operands if operand for source in operand.sources)),
            axes=axes,
            settings={name: value for name, value in given.items() if isinstance(value, int | float | str)}
            | {name: True for name in ("weight", "bias") if given.get(name) is not None},
        )

    def _note_dense(self, module: Dense, vectors: Array) -> None:
        """Register the Dense layers after the pooling once one of them runs: only then have their files been read."""
        if id(module) not in self._values.paths and self._whole.path is not None:
            for number, layer in enumerate(self._whole.sentence.dense):
                symbols = {"inputs": pooled(number), "outputs": pooled(number + 1)}
                self._values.take_in(layer, f"dense.{number}", symbols)
        if self._values.axes(vectors, ()) is None:  # they are not made by an op
            self._values.bind(vectors, plain([BATCH, pooled(0)], vectors.shape))

    def _operand(self, op: Op[Any], array: AnyArray, words: tuple[str, ...]) -> Operand:
        axes = self._values.axes(array, words)
        if axes is None:
            raise RuntimeError(
                f"The op {op.name} was given an array of shape {array.shape} that is not a parameter of '{self.model}',"
                " an input of the pass or a result of an op: something was computed that the trace cannot see."
            )
        names = self._values.names(array)
        if not names:
            return Operand(axes, None, self._values.makers(array))
        first = names[0]
        self._consumed[first.path] = first.size
        here = f"{self._frame.path}." if self._frame else ""
        used = next((one for one in names if one.path.startswith(here)), first)
        used = used._replace(tied=used.tied or first.path in self._used)
        self._used.add(first.path)
        return Operand(axes, used, (first.path,))

    def _path_of(self, module: Module) -> str:
        """The path of a module that is about to run; one that occurs several times runs in the order of its paths."""
        paths = self._values.paths.get(id(module))
        if paths is None:
            raise RuntimeError(f"A {type(module).__name__} ran that is not part of the traced model '{self.model}'.")
        if self._frame is None or len(paths) == 1:
            return paths[0]
        here = [path for path in paths if path.startswith(f"{self._frame.path}.")] or paths
        turn = self._frame.begun[id(module)]
        self._frame.begun[id(module)] += 1
        return here[turn % len(here)]

    def _makers(self, values: Iterable[Any]) -> tuple[int, ...]:
        """The steps that made the arrays among these values."""
        arrays = [value for value in values if isinstance(value, np.ndarray)]
        return tuple(dict.fromkeys(maker for array in arrays for maker in self._values.makers(array)))

    def _path(self, op: Op[Any], used: Sequence[Named]) -> str:
        """The path of an op: the parameter it uses (for `weight` the module itself), else the module and the op.

        A path that is already taken gets a number: `encoder.layers.0.add`, `encoder.layers.0.add_2`.
        """
        frame = self._frame
        name = op.name
        if frame is not None and used:
            frame.touched = frame.field_of(used[0].path)
            name = "" if frame.touched == "weight" else frame.touched
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
            places.append((type(frame.outer.module), frame.outer.field_of(frame.path), op.name))
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


SEED = 0  # of random ids: the same every time


class Pass(NamedTuple):
    """The input of a pass: the ids, segments and pieces of sentences of equal length."""

    ids: Integers  # [batch, token]
    segments: Integers
    pieces: list[str]  # of the first sentence; for random ids, their numbers


def pass_of_text(model: Model, text: str, pair: str | None = None) -> Pass:
    """A text as the model reads it; one that is too long is cut, with a warning."""
    from bertcli.analysis.results import tokens_of  # imports the tokenizer, which random ids do not need

    tokens = tokens_of(model, text, pair)
    return Pass(np.array([tokens.ids]), np.array([tokens.segments]), list(tokens.pieces))


def random_pass(model: Model, batch: int, sequence: int) -> Pass:
    """Random token ids, the same every time; BertcliError for a size that is not possible."""
    model.config.check_input(batch, sequence)
    ids = np.random.default_rng(SEED).integers(0, model.config.vocab_size, (batch, sequence))
    return Pass(ids, np.zeros_like(ids), [f"#{id}" for id in ids[0]])


def run_shapes(model: Model, batch: int, sequence: int) -> Trace:
    """The trace of a pass through every head, by its shapes: no memory, no time, whatever the sizes, and no weights."""
    model.config.check_input(batch, sequence)
    rows = batch * sequence
    ids = shape_only((rows,), np.intp)
    whole = SameLength(batch, slice(0, rows), slice(0, rows))
    with watching(found := Trace(model, shapes_only=True)):
        outputs(model.network, Packed(ids, ids, ids, np.arange(batch + 1) * sequence, (whole,)))
    return found
