"""Turns an op that ran into a step of the trace: its name, the sizes of its operands, and its cost."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import signature
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bertcli.parts import Array, Op, Signature
from bertcli.tracing.axes import Axes, multiplied, result, show
from bertcli.tracing.labels import Words
from bertcli.tracing.records import Stats, Step, Value
from bertcli.tracing.values import Named

ITEM = np.dtype(np.float32).itemsize


class Operand(NamedTuple):
    """An array that was passed to an op: its place in the signature, its axes, and which parameter it is, if any."""

    position: int
    axes: Axes
    parameter: Named | None

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
    op: Op[Any], given: Given, operands: list[Operand], axes: Axes, *, index: int, path: str, words: Words | None
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
        parameters=tuple(parameter.path for parameter in parameters),
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
