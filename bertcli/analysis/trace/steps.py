"""What a trace records: an op that ran becomes a step, with its name, the sizes of its operands, and its cost.

The records have the field names of the JSON output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.seam import BATCH, ONE, Array, Axes, Signature, extent
from bertcli.report.documents import ByName

ITEM = np.dtype(np.float32).itemsize


@dataclass(frozen=True)
class Value(ByName):
    """An operand or a result: its name, and its shape in numbers and in symbols, such as `S × H`."""

    name: str
    shape: tuple[int, ...]
    symbols: str

    @property
    def size(self) -> str:
        """`S × H (512 × 768)`"""
        return f"{self.symbols} ({' × '.join(map(str, self.shape))})"


@dataclass(frozen=True)
class Stats(ByName):
    """Statistics of the numbers in an array; `std` is that of the population, None means not a finite number."""

    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    finite: bool

    @classmethod
    def of(cls, numbers: Iterable[Any], finite: bool) -> Stats:
        """From four numbers; those that are not finite become None."""
        low, high, mean, std = (float(number) if np.isfinite(number) else None for number in numbers)
        return cls(low, high, mean, std, finite)


class Rates(NamedTuple):
    """What a machine does: billions of floating-point operations, and of bytes from memory, a second."""

    gflops: float
    gbps: float


class Estimate(NamedTuple):
    """What a step must take: see estimate.py. `intensity` is FLOPs for each byte that is read or written."""

    read_bytes: int
    written_bytes: int
    intensity: float
    bound: str  # "products" or "memory"
    estimated_seconds: float


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
    read: int  # bytes of the operands; of a table that is looked up in, the rows that are
    op: str
    parameters: tuple[str, ...]  # paths of the parameters used
    sources: tuple[
        int | str, ...
    ]  # what it worked on: indices of earlier steps, paths of parameters (the first if tied)
    settings: Mapping[str, Any]  # the op's other arguments, such as eps; weight and bias where it has such vectors
    seconds: float | None = None
    stats: Stats | None = None
    estimate: Estimate | None = None
    formula: str | None = None

    def record(self) -> dict[str, Any]:
        """The step as `bertcli trace --format json` prints it."""
        record = {name: self[name] for name in RECORDED} | {"inputs": [asdict(value) for value in self.inputs]}
        record["output"] = asdict(self.output)
        record |= {} if self.seconds is None else {"seconds": self.seconds}
        record |= {} if self.estimate is None else self.estimate._asdict()
        record |= {} if self.formula is None else {"formula": self.formula}
        return record if self.stats is None else record | {"stats": asdict(self.stats)}


RECORDED = ("index", "path", "group", "operation", "inputs", "output", "params", "macs", "flops", "bytes")


class Call(NamedTuple):
    """One call of a module, in the order in which calls ended."""

    path: str
    axes: Axes  # of its result, the batch included
    made: tuple[int, ...]  # the steps that made its result


@dataclass(frozen=True)
class Totals(ByName):
    """Sums over the steps; `params` counts every parameter once."""

    params: int
    macs: int
    matmul_flops: int
    flops: int
    activation_bytes: int
    seconds: float | None = None
    estimated_seconds: float | None = None

    def record(self) -> dict[str, Any]:
        """The totals as in the JSON record."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Account:
    """What is known of a pass: its size, its steps and their sums."""

    model: str
    batch: int | None  # sentences of a pass; None where passes differ
    sequence: int | None  # tokens of its longest sentence
    timed: bool
    rates: Rates | None = None  # of the machine that its estimates are for
    steps: list[Step]
    consumed: dict[str, int]  # first path of every parameter passed to an op -> its size

    @property
    def totals(self) -> Totals:
        """Sums over all steps so far."""
        macs = sum(step.macs for step in self.steps)
        return Totals(
            params=sum(self.consumed.values()),
            macs=macs,
            matmul_flops=2 * macs,
            flops=sum(step.flops for step in self.steps),
            activation_bytes=sum(step.bytes for step in self.steps),
            seconds=sum(step.seconds or 0.0 for step in self.steps) if self.timed else None,
            estimated_seconds=sum(one.estimate.estimated_seconds for one in self.steps if one.estimate)
            if self.rates
            else None,
        )

    def record(self) -> dict[str, Any]:
        """The whole trace as `bertcli trace --format json` prints it."""
        return {
            "model": self.model,
            "batch": self.batch,
            "sequence": self.sequence,
            "steps": [step.record() for step in self.steps],
            "totals": self.totals.record() | ({} if self.rates is None else {"rates": self.rates._asdict()}),
        }


def stats_of(x: Array) -> Stats:
    """Smallest, largest, mean and standard deviation of an array's numbers, in float64."""
    finite = bool(np.isfinite(x).all())
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = [x.min(), x.max(), x.mean(dtype=np.float64), x.std(dtype=np.float64)] if x.size else [np.nan] * 4
    return Stats.of(numbers, finite)


def show(name: str, axes: Axes) -> Value:
    """A value for display: the batch has an axis of its own, left out for one sentence; other products are one."""
    parts: list[tuple[str, int]] = []
    for axis in axes:
        if axis and axis[0].symbol == BATCH:
            parts += [axis[0]] if axis[0].size != 1 else []
            axis = axis[1:]
        if axis:
            symbols = "·".join(factor.symbol for factor in axis)
            parts.append((f"({symbols})" if "·" in symbols else symbols, extent(axis)))
    parts = parts or [(ONE, 1)]
    return Value(name, tuple(size for _, size in parts), " × ".join(symbol for symbol, _ in parts))


def multiplied(signature: Signature, operand: int, axes: Axes) -> Axes:
    """The axes of a product's operand in multiplication order: in the second operand summed axes come before its own.

    Axes that both operands and the result have, such as heads, stay in front.
    """
    words = signature.inputs[operand]
    if operand != 1 or words[-1] in signature.output:
        return axes
    shared, kept = ([word in found for word in words] for found in (signature.inputs[0], signature.output))
    order = sorted(range(len(words)), key=lambda i: 1 if not kept[i] else 0 if shared[i] else 2)
    return tuple(axes[i] for i in order)
