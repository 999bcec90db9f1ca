"""From an op that ran to a step of the trace: what it is called, how large its operands are, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bertcli.parts import Array, Op, Signature
from bertcli.tracing.axes import Axes, multiplied, show
from bertcli.tracing.labels import Words
from bertcli.tracing.records import Stats, Step, Value
from bertcli.tracing.values import Named

ITEM = np.dtype(np.float32).itemsize


class Operand(NamedTuple):
    """An array an op was given: its place in the op's signature, its axes, and which parameter it is."""

    position: int
    axes: Axes
    parameter: Named | None

    @property
    def is_vector(self) -> bool:
        """A bias, scale or shift: a parameter that is no operand of its own."""
        return self.parameter is not None and len(self.axes) == 1


def step_of(
    op: Op[Any],
    signature: Signature,
    operands: list[Operand],
    settings: Mapping[str, Any],
    axes: Axes,
    *,
    index: int,
    path: str,
    words: Words,
) -> Step:
    """The record of one op. FLOPs are 2·MACs and the op's `work` for every number of the result."""
    shown = show(axes)
    numbers = prod(shown.shape)
    macs = prod(_sizes(signature, operands).values()) if op.contracts else 0
    return Step(
        index=index,
        path=path,
        group=words.group,
        operation=words.operation,
        inputs=_inputs(op, signature, operands, words),
        output=Value(words.output, shown.shape, shown.symbols),
        params=sum(operand.parameter.size for operand in operands if operand.parameter and not operand.parameter.tied),
        macs=macs,
        flops=2 * macs + op.work(settings) * numbers,
        bytes=ITEM * numbers,
        op=op.name,
        parameters=tuple(operand.parameter.path for operand in operands if operand.parameter),
        axes=axes,
    )


def stats_of(x: Array) -> Stats:
    """Smallest, largest, mean and standard deviation of an array's numbers, in float64."""
    finite = bool(np.isfinite(x).all())
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = [x.min(), x.max(), x.mean(dtype=np.float64), x.std(dtype=np.float64)] if x.size else [np.nan] * 4
    low, high, mean, std = (float(one) if np.isfinite(one) else None for one in numbers)
    return Stats(low, high, mean, std, finite)


def _inputs(op: Op[Any], signature: Signature, operands: list[Operand], words: Words) -> tuple[Value, ...]:
    shown = sorted((one for one in operands if not one.is_vector), key=lambda one: one.parameter is not None)
    values = []
    for name, operand in zip(words.inputs, shown, strict=True):
        size = show(multiplied(signature, operand.position, operand.axes) if op.contracts else operand.axes)
        values.append(Value(name, size.shape, size.symbols))
    return tuple(values)


def _sizes(signature: Signature, operands: list[Operand]) -> dict[str, int]:
    return {
        word: prod(factor.size for factor in axis)
        for operand in operands
        for word, axis in zip(signature.inputs[operand.position], operand.axes, strict=True)
    }
