"""What a trace records: an op that ran becomes a step, with its name, the sizes of its operands, and its cost.

The records have the field names of the JSON output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from inspect import signature
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.labels import Words
from bertcli.analysis.trace.values import Axes, Named, multiplied, result, show
from bertcli.engine.array import Array
from bertcli.network.module import Op, Signature
from bertcli.report import ByName

ITEM = np.dtype(np.float32).itemsize


@dataclass(frozen=True)
class Value(ByName):
    """An operand or a result: its name, and its shape in numbers and in symbols, such as `S × H`."""

    name: str
    shape: tuple[int, ...]
    symbols: str


@dataclass(frozen=True)
class Stats(ByName):
    """Statistics of the numbers in an array; `std` is that of the population, None means not a finite number."""

    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    finite: bool


@dataclass(frozen=True)
class Step(ByName):
    """One op that ran.

    Matrices are shown in the way they are multiplied: a weight stored [outputs, inputs] as inputs × outputs. Vectors
    (bias, scale, shift) are not listed as operands: they are in `parameters` and in the count `params`, which does not
    count a tied parameter again.
    """

    index: int
    path: str
    group: str
    operation: str
    inputs: tuple[Value, ...]
    output: Value
    params: int
    macs: int  # multiply-accumulates of matrix products
    flops: int  # 2·macs + element-wise operations, by the rule on the op
    bytes: int  # of the output
    op: str
    module: str  # path of the module that ran it
    parameters: tuple[str, ...]  # paths of the parameters used
    sources: tuple[
        int | str, ...
    ]  # what it worked on: indices of earlier steps, paths of parameters (the first if tied)
    axes: Axes  # of the output, the batch included
    seconds: float | None = None
    stats: Stats | None = None

    def record(self) -> dict[str, Any]:
        """The step as `bertcli trace --format json` prints it."""
        found: dict[str, Any] = {
            "index": self.index,
            "path": self.path,
            "group": self.group,
            "operation": self.operation,
            "inputs": [asdict(value) for value in self.inputs],
            "output": asdict(self.output),
            "params": self.params,
            "macs": self.macs,
            "flops": self.flops,
            "bytes": self.bytes,
        }
        if self.seconds is not None:
            found["seconds"] = self.seconds
        if self.stats is not None:
            found["stats"] = asdict(self.stats)
        return found


class Call(NamedTuple):
    """One call of a module, in the order in which calls ended."""

    path: str
    type: str
    axes: Axes | None  # of its result, the batch included
    given: tuple[int, ...]  # the steps that made its arguments
    made: tuple[int, ...]  # the steps that made its result
    stop: int  # how many steps there were when it ended


@dataclass(frozen=True)
class Totals(ByName):
    """Sums over the steps; `params` counts every parameter once."""

    params: int
    macs: int
    matmul_flops: int
    flops: int
    activation_bytes: int
    seconds: float | None = None

    def record(self) -> dict[str, Any]:
        """The totals as in the JSON record."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Operand(NamedTuple):
    """An array that was passed to an op: its place in the signature, its axes, and which parameter it is, if any.

    `sources` are the steps that made it, or the path of the parameter.
    """

    position: int
    axes: Axes
    parameter: Named | None
    sources: tuple[int | str, ...]

    @property
    def is_vector(self) -> bool:
        """Whether it is a bias, scale or shift: a parameter that is not listed as an operand."""
        return self.parameter is not None and len(self.axes) == 1


class Given(NamedTuple):
    """What an op was called with: every argument by name, and the arrays in the order of its signature."""

    arguments: dict[str, Any]
    arrays: tuple[Array | None, ...]
    signature: Signature  # without `…`

    @classmethod
    def to(cls, op: Op[Any], arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Given:
        """The arguments of one call of an op, by name and place."""
        names = _argument_names(op)
        by_name = {**dict(zip(names, arguments, strict=False)), **keywords}
        arrays = tuple(by_name.get(name) for name in names[: len(op.signature.inputs)])
        return cls(by_name, arrays, op.signature.spread(arrays))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return self.signature.shape(self.arrays)

    def axes(self, operands: list[Operand]) -> Axes:
        """Axes of the result."""
        known = {operand.position: operand.axes for operand in operands}
        return result(self.signature, [known.get(i) for i in range(len(self.arrays))], self.shape)


def step_of(
    op: Op[Any],
    given: Given,
    operands: list[Operand],
    axes: Axes,
    *,
    index: int,
    module: str,
    path: str,
    words: Words | None,
) -> Step:
    """The record of one op. FLOPs are 2·MACs plus the op's `work` for every number of the result."""
    shown = show(axes)
    numbers = prod(shown.shape)
    macs = prod(given.signature.sizes(given.arrays).values()) if op.contracts else 0
    parameters = [operand.parameter for operand in operands if operand.parameter]
    group, operation, names, output = words or Words("", op.name, (), "")
    return Step(
        index=index,
        path=path,
        group=group,
        operation=operation,
        inputs=_inputs(op, given.signature, operands, names),
        output=Value(output, shown.shape, shown.symbols),
        params=sum(parameter.size for parameter in parameters if not parameter.tied),
        macs=macs,
        flops=2 * macs + op.work(given.arguments) * numbers,
        bytes=ITEM * numbers,
        op=op.name,
        module=module,
        parameters=tuple(parameter.path for parameter in parameters),
        sources=tuple(dict.fromkeys(source for operand in operands for source in operand.sources)),
        axes=axes,
    )


def stats_of(x: Array) -> Stats:
    """Smallest, largest, mean and standard deviation of an array's numbers, in float64."""
    finite = bool(np.isfinite(x).all())
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = [x.min(), x.max(), x.mean(dtype=np.float64), x.std(dtype=np.float64)] if x.size else [np.nan] * 4
    low, high, mean, std = (float(one) if np.isfinite(one) else None for one in numbers)
    return Stats(low, high, mean, std, finite)


def _inputs(op: Op[Any], signature: Signature, operands: list[Operand], names: tuple[str, ...]) -> tuple[Value, ...]:
    shown = sorted((one for one in operands if not one.is_vector), key=lambda one: one.parameter is not None)
    values = []
    for i, operand in enumerate(shown):
        name = names[i] if i < len(names) else ""
        size = show(multiplied(signature, operand.position, operand.axes) if op.contracts else operand.axes)
        tied = " (tied)" if operand.parameter and operand.parameter.tied else ""
        values.append(Value(f"{name}{tied}", size.shape, size.symbols))
    return tuple(values)


@cache
def _argument_names(op: Op[Any]) -> tuple[str, ...]:
    return tuple(signature(op.compute).parameters)
