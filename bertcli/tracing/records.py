"""The records of a trace: steps, calls and totals, with the field names of the JSON output."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from bertcli.output.document import ByName
from bertcli.tracing.axes import Axes


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
    parameters: tuple[str, ...]  # paths of the parameters used
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
