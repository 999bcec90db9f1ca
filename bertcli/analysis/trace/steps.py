"""What a trace records: an op that ran becomes a step, with its name, the sizes of its operands, and its cost.

The records have the field names of the JSON output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.values import Axes, Value
from bertcli.engine.array import Array
from bertcli.report.documents import ByName

ITEM = np.dtype(np.float32).itemsize


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
    settings: Mapping[str, Any]  # the op's other arguments, such as eps; weight and bias where it has such vectors
    seconds: float | None = None
    stats: Stats | None = None

    def record(self) -> dict[str, Any]:
        """The step as `bertcli trace --format json` prints it."""
        found = {name: self[name] for name in RECORDED} | {"inputs": [asdict(value) for value in self.inputs]}
        found["output"] = asdict(self.output)
        seconds = {} if self.seconds is None else {"seconds": self.seconds}
        return found | seconds | ({} if self.stats is None else {"stats": asdict(self.stats)})


RECORDED = ("index", "path", "group", "operation", "inputs", "output", "params", "macs", "flops", "bytes")


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


def stats_of(x: Array) -> Stats:
    """Smallest, largest, mean and standard deviation of an array's numbers, in float64."""
    finite = bool(np.isfinite(x).all())
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = [x.min(), x.max(), x.mean(dtype=np.float64), x.std(dtype=np.float64)] if x.size else [np.nan] * 4
    return Stats.of(numbers, finite)
