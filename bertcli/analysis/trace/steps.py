"""The records of a trace, and its operation table: a step for each op, with names, shapes, parameters, MACs, time.

Fields have the names of the JSON output. The table has a row for each op, as in the literature, or in a narrow terminal
a line for each operand; layers that do the same are shown once, with the number of times they ran. The costs are not
decided here: an op's MACs and operations stand with the op (network/ops.py), recorder.py adds them up.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.layers import EVERY_LAYER
from bertcli.report.digits import short
from bertcli.report.documents import ByName, Document, Documented
from bertcli.report.tables import cell
from bertcli.report.terminal import BESIDE, Column
from bertcli.tracing.dispatch import Array, Signature
from bertcli.tracing.traced import BATCH, ONE, Axes, extent

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
    """Statistics of an array; `std` is of the population (divided by n). None: the number is not finite."""

    min: float | None
    max: float | None
    mean: float | None
    std: float | None
    finite: bool

    @classmethod
    def of(cls, numbers: Iterable[Any], finite: bool) -> "Stats":
        """Make Stats of (min, max, mean, std); those that are not finite become None."""
        low, high, mean, std = (float(number) if np.isfinite(number) else None for number in numbers)
        return cls(low, high, mean, std, finite)


class Multiplier(NamedTuple):
    """The parameter of a product: its path, its axes with the inputs at the end, and how many of these are inputs."""

    path: str
    axes: tuple[int, ...]
    inputs: int


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
    sources: tuple[int | str, ...]  # the operands: indices of earlier steps, paths of parameters (the first if tied)
    settings: Mapping[str, Any]  # the op's other arguments, such as eps; weight and bias where it has such vectors
    multiplier: Multiplier | None = None  # of a product by a parameter
    seconds: float | None = None
    stats: Stats | None = None
    formula: str | None = None

    def record(self) -> dict[str, Any]:
        """The step as `bertcli trace --format json` prints it."""
        record = {name: self[name] for name in RECORDED} | {"inputs": [asdict(value) for value in self.inputs]}
        record["output"] = asdict(self.output)
        record |= {} if self.seconds is None else {"seconds": self.seconds}
        record |= {} if self.formula is None else {"formula": self.formula}
        record |= {} if self.stats is None else {"stats": short(asdict(self.stats))}
        return record


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

    def record(self) -> dict[str, Any]:
        """The totals as `bertcli trace --format json` prints them."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Account(Documented):
    """The account of a pass: its size, its steps, their totals, and the table; recorder.Trace fills it."""

    model: str
    sizes: Mapping[str, int]  # of the symbols in shapes
    batch: int | None  # sentences of a pass; None where passes differ
    sequence: int | None  # tokens of its longest sentence
    timed: bool
    steps: list[Step]
    consumed: dict[str, int]  # first path of every parameter passed to an op -> its size

    @property
    def totals(self) -> Totals:
        """The sums over all steps so far."""
        macs = sum(step.macs for step in self.steps)
        return Totals(
            params=sum(self.consumed.values()),
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

    def document(self, *, all_layers: bool = False, width: int | None = None, results: Sequence[str] = ()) -> Document:
        """The table that `bertcli trace` prints; below it stand the sizes of symbols, the totals and the `results`.

        Identical layers are shown once, unless `all_layers`. `width` is that of the terminal, None if unlimited.
        """
        blocks = folded(self.steps, fold=not all_layers)
        seconds = self.totals.seconds
        # All steps have the same measurements.
        numbers = _numbers(self.steps[0], seconds) if self.steps else {}
        columns = [Column(name) for name in OPERANDS]
        columns += [Column(name, number=name != "Formula") for name in numbers]
        rows = _filled(_wide(blocks, seconds), len(columns))
        if width is not None and _text_width(columns, rows) > width:
            columns = [Column("Operation"), Column("Formula, sizes" if "Formula" in numbers else "Size")]
            columns += [Column(name, number=True) for name in numbers if name != "Formula"]
            rows = _filled(_stacked(blocks, seconds), len(columns))
            if _text_width(columns, rows) > width:
                columns = [Column("Operation"), Column("Size and cost")]
                rows = _filled(_narrow(blocks, seconds), len(columns))
        below = [*_totals(self), *_folding(self, blocks), *results]
        lines = [_line(block, step) for block in blocks for step in block.steps]
        return Document(columns, rows, below, self.record(), lines)


def stats_of(x: Array) -> Stats:
    """Smallest, largest, mean and standard deviation of an array's numbers, in float64."""
    if not x.size:
        return Stats.of([np.nan] * 4, finite=True)
    finite = bool(np.isfinite(x).all())
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = [x.min(), x.max(), x.mean(dtype=np.float64), x.std(dtype=np.float64)]
    return Stats.of(numbers, finite)


@lru_cache(maxsize=4096)  # the layers of a model have the same values
def show(name: str, axes: Axes) -> Value:
    """Name and shape of a value for display: B is an axis of its own, left out if 1; other merged axes stay one."""
    symbols: list[str] = []
    sizes: list[int] = []
    for axis in axes:
        if axis and axis[0].symbol == BATCH:
            if axis[0].size != 1:
                symbols.append(BATCH)
                sizes.append(axis[0].size)
            axis = axis[1:]
        if axis:
            product = "·".join(factor.symbol for factor in axis)
            symbols.append(f"({product})" if "·" in product else product)
            sizes.append(extent(axis))
    if not symbols:
        symbols, sizes = [ONE], [1]
    return Value(name, tuple(sizes), " × ".join(symbols))


def multiplied(signature: Signature, operand: int, axes: Axes) -> Axes:
    """An operand's axes in the order of a matrix product: the second operand's summed axes before its other ones.

    Axes that both operands and the result have, such as heads, stay in front.
    """
    words = signature.inputs[operand]
    if operand != 1 or words[-1] in signature.output:
        return axes
    both, summed, others = [], [], []
    for word, axis in zip(words, axes, strict=True):
        if word not in signature.output:
            summed.append(axis)
        elif word in signature.inputs[0]:
            both.append(axis)
        else:
            others.append(axis)
    return (*both, *summed, *others)


# ------------------------------------------------------------------------------------------------ layers shown once

LAYER_PATH = re.compile(r"(.*\blayers)\.(\d+)\.(.*)")


class Folded(NamedTuple):
    """Steps that ran `times` times, layer after layer.

    Where layers differ, seconds are the mean per layer, and statistics those of all results together. layers:
    "encoder.layers.*" or "encoder.layers.3"; empty outside of layers. name: "Encoder layer × 12"; where others do
    something else, "Encoder layers 2 to 3" or "Encoder layer 4".
    """

    layers: str
    times: int
    steps: tuple[Step, ...]
    name: str

    @property
    def heading(self) -> str:
        """The heading above the steps: `Encoder layer × 12, each:`."""
        return f"{self.name}{', each' if self.times > 1 else ''}:"


def folded(steps: Sequence[Step], *, fold: bool) -> list[Folded]:
    """Group the steps of a pass by layer, in order; with `fold`, consecutive layers that do the same become one."""
    stretches = [tuple(members) for _, members in groupby(steps, lambda step: _layer(step.path))]
    runs = [[stretch] for stretch in stretches]
    if fold:
        # Steps without their layer's number are equal in layers that do the same, and never outside of layers.
        runs = [[*layers] for _, layers in groupby(stretches, lambda stretch: [*map(_without_layer, stretch)])]
    runs_of_layers = [run for run in runs if _layer(run[0][0].path)]
    return [_joined(run, all_alike=len(runs_of_layers) == 1) for run in runs]


def _layer(path: str) -> str:
    match = LAYER_PATH.fullmatch(path)
    return f"{match[1]}.{match[2]}" if match else ""


def _without_layer(step: Step) -> Step:
    path = LAYER_PATH.sub(rf"\1.{EVERY_LAYER}.\3", step.path)
    return replace(step, index=0, path=path, parameters=(), sources=(), multiplier=None, seconds=None, stats=None)


def _joined(layers: list[tuple[Step, ...]], all_alike: bool) -> Folded:
    """Merge layers that do the same into one block; `all_alike`: they are all layers of the pass."""
    path, last_path = (_layer(steps[0].path) for steps in (layers[0], layers[-1]))
    if len(layers) == 1:
        return Folded(path, 1, layers[0], f"Encoder layer {_layer_number(path)}")
    name = f"Encoder layer × {len(layers)}"
    if not all_alike:
        name = f"Encoder layers {_layer_number(path)} to {_layer_number(last_path)}"
    steps = []
    for of_layers in zip(*layers, strict=True):
        times = [step.seconds for step in of_layers if step.seconds is not None]
        seconds = sum(times) / len(times) if times else None
        steps.append(replace(_without_layer(of_layers[0]), seconds=seconds, stats=_stats(of_layers)))
    return Folded(f"{path.rpartition('.')[0]}.{EVERY_LAYER}", len(layers), tuple(steps), name)


def _layer_number(path: str) -> int:
    """The number of a layer for people: paths count from 0, names from 1."""
    return int(path.rpartition(".")[2] or 0) + 1


def _stats(steps: Sequence[Step]) -> Stats | None:
    """The statistics of all results together, from each one's; this is exact, since all have the same size."""
    described = [step.stats for step in steps if step.stats is not None]
    if not described:
        return None
    rows = [(stats.min, stats.max, stats.mean, stats.std) for stats in described]
    low, high, mean, std = np.array(rows, dtype=np.float64).T
    variance = (mean**2 + std**2).mean() - mean.mean() ** 2
    numbers = low.min(), high.max(), mean.mean(), np.sqrt(np.maximum(0, variance))
    return Stats.of(numbers, all(stats.finite for stats in described))


# ----------------------------------------------------------------------------------------------------------- the table

OPERANDS = ("Group", "Operation", "Input 1", "Size", "Input 2", "Size", "Output", "Size")


def _wide(blocks: list[Folded], total: float | None) -> Iterator[list[str]]:
    """A row for each op, as in the literature; `total` is the time of all, None where none was measured."""
    for block in blocks:
        if block.layers:
            yield [block.heading]
        for group, steps in groupby(block.steps, lambda step: step.group):
            for number, step in enumerate(steps):
                cells = ["" if number else group, step.operation]
                for value in _operands(step):
                    cells += [value.name, value.size] if value else ["", ""]
                yield [*cells, *_numbers(step, total).values()]


def _stacked(blocks: list[Folded], total: float | None) -> Iterator[list[str]]:
    """A row for each operand and result, below the op, whose costs and measurements have columns of their own."""
    for step, row in _operand_rows(blocks):
        if step is None:
            yield row
            continue
        numbers = _numbers(step, total)
        formula = numbers.pop("Formula", "")
        yield [*row, formula, *numbers.values()]


def _narrow(blocks: list[Folded], total: float | None) -> Iterator[list[str]]:
    """A row for each operand and result, below the op with its costs and measurements as words."""
    for step, row in _operand_rows(blocks):
        if step is None:
            yield row
            continue
        costs = {"params": step.params, "MACs": step.macs, "bytes": step.bytes}
        texts = [f"{count:,} {name}" for name, count in costs.items() if count]
        yield [*row, ", ".join(texts)]
        measures = _measures(step, total)
        if measures:
            yield ["", ", ".join(f"{name} {value}" for name, value in measures.items())]


def _operand_rows(blocks: list[Folded]) -> Iterator[tuple[Step | None, list[str]]]:
    """The rows of a table too narrow for all operands side by side; an op's own row comes with its step."""
    for block in blocks:
        if block.layers:
            yield None, [block.heading]
        for group, steps in groupby(block.steps, lambda step: step.group):
            yield None, [group]
            for step in steps:
                yield step, [f"  {step.operation}"]
                for value in step.inputs:
                    yield None, [f"    {value.name}", value.size]
                yield None, [f"  → {step.output.name}", step.output.size]


def _filled(rows: Iterable[list[str]], count: int) -> list[list[str]]:
    """Rows with empty cells at their ends, so that each has `count`."""
    return [row + [""] * (count - len(row)) for row in rows]


def _text_width(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """The width of a table whose cells are not folded."""
    texts = zip([column.name for column in columns], *rows, strict=True)
    return sum(max(map(len, of_column)) + BESIDE for of_column in texts)


def _operands(step: Step) -> list[Value | None]:
    """The first two operands, None for a missing one, and the result: the columns of the table."""
    first, second, *_ = [*step.inputs, None, None]
    return [first, second, step.output]


def _numbers(step: Step, total: float | None) -> dict[str, str]:
    """A step's costs and measurements by column."""
    costs = {"Params": step.params, "MACs": step.macs, "Bytes": step.bytes}
    texts = {name: f"{count:,}" if count else "" for name, count in costs.items()}
    return texts | _measures(step, total)


def _measures(step: Step, total: float | None) -> dict[str, str]:
    """A step's time, formula and statistics by column, of those that there are."""
    measures: dict[str, str] = {}
    if total is not None:
        seconds = step.seconds or 0.0
        measures["ms"] = f"{1000 * seconds:.3f}"
        measures["% of time"] = f"{100 * seconds / (total or 1.0):.1f}"
    if step.formula is not None:
        measures["Formula"] = step.formula
    if step.stats is not None:
        for name in ("min", "max", "mean", "std"):
            measures[name] = cell(step.stats[name]) or "NaN"
        measures["NaN/Inf"] = "no" if step.stats.finite else "YES"
    return measures


# ------------------------------------------------------------------------------------------ what stands below, and CSV


def _idle(step: Step) -> int:
    """Parameters of a step that a token does not use: those of the experts that it is not routed to."""
    if step.op != "experts":
        return 0
    _, shares, inner, outer = step.inputs
    experts = int(shares.shape[-1] or 1)
    return int(prod(inner.shape) + prod(outer.shape)) * (experts - int(step.settings["top"])) // experts


def _totals(trace: Account) -> list[str]:
    """The lines below the table: sizes of symbols, and what the pass takes."""
    totals = trace.totals
    params = f"Params: {totals.params:,}"
    idle = sum(map(_idle, trace.steps))
    if idle:
        params += f", of which a token uses {totals.params - idle:,}"
    counting = "multiply-accumulates of matrix products"
    if any(step.op == "within" for step in trace.steps):
        counting += "; attention is counted whole, also where tokens are not seen"
    below = [
        f"{trace.model}: {_symbol_sizes(trace)}",
        params,
        f"MACs: {totals.macs:,} ({counting})",
        f"FLOPs: {totals.matmul_flops:,} of matrix products, {totals.flops:,} with element-wise operations",
        f"Activations: {totals.activation_bytes:,} bytes (every output, as float32)",
    ]
    if totals.seconds is not None:
        below.append(f"Time: {1000 * totals.seconds:,.3f} ms")
    return below


def _symbol_sizes(trace: Account) -> str:
    """The sizes of the symbols that occur in the table: `B = 1, S = 8, L = 12, H = 768`."""
    values = [value for step in trace.steps for value in (*step.inputs, step.output)]
    used = set(re.findall(r"\w+", " ".join(value.symbols for value in values)))
    # The number of layers is no size of an array.
    used.add("L")
    sizes: dict[str, int | None] = {"B": trace.batch, "S": trace.sequence}
    sizes |= {symbol: size for symbol, size in trace.sizes.items() if symbol in used}
    return ", ".join(f"{symbol} = {size}" for symbol, size in sizes.items() if size is not None)


def _folding(trace: Account, blocks: list[Folded]) -> list[str]:
    """The note that times are means and statistics joint where several layers are shown as one."""
    steps = [step for block in blocks for step in block.steps if block.times > 1]
    notes = []
    if trace.timed and steps:
        notes.append("times are averages per layer")
    if any(step.stats for step in steps):
        notes.append("statistics are over all layers")
    return [f"Where layers are shown once, {' and '.join(notes)}."] if notes else []


def _line(block: Folded, step: Step) -> dict[str, Any]:
    """An op in CSV: `times` is how many layers do the same; costs and time are for one, statistics for all of them."""
    record = step.record()
    line = {"times": block.times, "path": step.path, "group": step.group, "operation": step.operation}
    keys = (("input_1", "size_1"), ("input_2", "size_2"), ("output", "size"))
    for (name, size), value in zip(keys, _operands(step), strict=True):
        line[name] = value.name if value else ""
        line[size] = value.size if value else ""
    written = {*line, "index", "inputs", "stats"}
    costs = {name: value for name, value in record.items() if name not in written}
    return {**line, **costs, **record.get("stats", {})}
