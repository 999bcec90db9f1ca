"""A trace as a document: the operation table, wide as in the literature, else with a line for each operand.

Layers that do the same are shown once, with the number of times they ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.steps import Account, Estimate, Stats, Step, Value
from bertcli.files.table import cell
from bertcli.report.documents import Document
from bertcli.report.tables import Column

LAYER = re.compile(r"(.*\blayers)\.(\d+)\.(.*)")
EVERY = "*"  # in place of a layer's number


class Folded(NamedTuple):
    """Steps that ran `times` times, layer after layer.

    Where layers differ, seconds are the mean per layer, and statistics those of all results together.
    """

    layers: str  # "encoder.layers.*" or "encoder.layers.3"; empty outside of layers
    times: int
    steps: tuple[Step, ...]
    name: str  # "Encoder layer × 12"; where others do something else, "Encoder layers 1 to 2" or "Encoder layer 3"

    @property
    def heading(self) -> str:
        """What stands above the steps."""
        return f"{self.name}{', each' if self.times > 1 else ''}:"

    @property
    def whole(self) -> Step:
        """All layers together as a step, whose costs are their sums."""
        return replace(
            self.steps[0],
            operation=f"{self.name}, all",
            params=self.times * sum(step.params for step in self.steps),
            macs=self.times * sum(step.macs for step in self.steps),
            bytes=self.times * sum(step.bytes for step in self.steps),
            seconds=self.times * sum(step.seconds or 0.0 for step in self.steps),
            stats=None,
            estimate=self._estimate,
        )

    @property
    def _estimate(self) -> Estimate | None:
        """The sums over all layers; what bounds them is not one thing."""
        each = [step.estimate for step in self.steps if step.estimate is not None]
        if not each:
            return None
        read, written, seconds = (
            self.times * sum(column) for column in zip(*((one[0], one[1], one[4]) for one in each), strict=True)
        )
        flops = self.times * sum(step.flops for step in self.steps)
        return Estimate(int(read), int(written), flops / max(1, read + written), "", seconds)


def folded(steps: Sequence[Step], *, fold: bool) -> list[Folded]:
    """The steps of a pass in the order they ran; with `fold`, consecutive layers that do the same become one."""
    found: list[list[tuple[Step, ...]]] = []  # runs of identical layers, or what lies between layers
    for layer, several in groupby(steps, lambda step: _layer(step.path)):
        stretch = tuple(several)
        same = fold and layer and found and [*map(_without_layer, found[-1][-1])] == [*map(_without_layer, stretch)]
        if same:
            found[-1].append(stretch)
        else:
            found.append([stretch])
    alike = sum(bool(_layer(several[0][0].path)) for several in found) == 1
    return [_joined(several, alike) for several in found]


def _layer(path: str) -> str:
    match = LAYER.fullmatch(path)
    return f"{match[1]}.{match[2]}" if match else ""


def _without_layer(step: Step) -> Step:
    path = LAYER.sub(rf"\1.{EVERY}.\3", step.path)
    return replace(step, index=0, path=path, parameters=(), sources=(), seconds=None, stats=None)


def _joined(several: list[tuple[Step, ...]], alike: bool) -> Folded:
    """Layers that do the same; `alike`: all layers do."""
    layer, last = (_layer(steps[0].path) for steps in (several[0], several[-1]))
    first, last = layer.rpartition(".")[2], last.rpartition(".")[2]
    if len(several) == 1:
        return Folded(layer, 1, several[0], f"Encoder layer {first}")
    name = f"Encoder layer × {len(several)}" if alike else f"Encoder layers {first} to {last}"
    steps = tuple(
        replace(_without_layer(column[0]), seconds=_seconds(column), stats=_stats(column))
        for column in zip(*several, strict=True)
    )
    return Folded(f"{layer.rpartition('.')[0]}.{EVERY}", len(several), steps, name)


def _seconds(steps: Sequence[Step]) -> float | None:
    known = [step.seconds for step in steps if step.seconds is not None]
    return sum(known) / len(known) if known else None


def _stats(steps: Sequence[Step]) -> Stats | None:
    """Statistics of all results together; they all have the same size."""
    each = [step.stats for step in steps if step.stats is not None]
    if not each:
        return None
    low, high, mean, std = np.array([(one.min, one.max, one.mean, one.std) for one in each], dtype=np.float64).T
    variance = (mean**2 + std**2).mean() - mean.mean() ** 2
    numbers = low.min(), high.max(), mean.mean(), np.sqrt(np.maximum(0, variance))
    return Stats.of(numbers, all(one.finite for one in each))


# ----------------------------------------------------------------------------------------------------------- the table

BESIDE = 3  # cells a column takes besides its text
OPERANDS = ("Group", "Operation", "Input 1", "Size", "Input 2", "Size", "Output", "Size")


def trace_document(
    trace: Account,
    sizes: Mapping[str, int],
    *,
    all_layers: bool = False,
    width: int | None = None,
    results: Sequence[str] = (),
) -> Document:
    """The steps, with identical layers shown once; the `sizes` of symbols and the `results` are shown below.

    `width` is the width of the terminal, None if unlimited.
    """
    found = folded(trace.steps, fold=not all_layers)
    numbers = _numbers(trace, trace.steps[0]) if trace.steps else {}
    columns = [*map(Column, OPERANDS), *(Column(name, number=name != "Formula") for name in numbers)]
    rows = [row + [""] * (len(columns) - len(row)) for row in _wide(trace, found)]
    texts = zip([column.name for column in columns], *rows, strict=True)
    if width is not None and sum(max(map(len, column)) + BESIDE for column in texts) > width:
        columns = [Column("Operation"), Column("Size and cost")]
        rows = [row + [""] * (len(columns) - len(row)) for row in _narrow(trace, found)]
    lines = [_line(block, step) for block in found for step in block.steps]
    return Document(columns, rows, [*_totals(trace, sizes), *_folding(trace, found), *results], trace.record(), lines)


def _wide(trace: Account, found: list[Folded]) -> Iterator[list[str]]:
    """A row for each op, as in the literature."""
    for block in found:
        if block.layers:
            yield [block.heading]
        for group, steps in groupby(block.steps, lambda step: step.group):
            for number, step in enumerate(steps):
                first, second = [*step.inputs, None, None][:2]
                names = [text for one in (first, second, step.output) for text in (one.name if one else "", _size(one))]
                yield ["" if number else group, step.operation, *names, *_numbers(trace, step).values()]
        if block.times > 1:
            yield [block.whole.operation, *[""] * (len(OPERANDS) - 1), *_numbers(trace, block.whole).values()]


def _narrow(trace: Account, found: list[Folded]) -> Iterator[list[str]]:
    """A row for each operand and result, below the op and its cost."""
    for block in found:
        if block.layers:
            yield [block.heading]
        for group, steps in groupby(block.steps, lambda step: step.group):
            yield [group]
            for step in steps:
                costs, measures = _in_words(trace, step)
                yield [f"  {step.operation}", costs]
                yield from ([f"    {value.name}", _size(value)] for value in step.inputs)
                yield [f"  → {step.output.name}", _size(step.output)]
                yield from [["", measures]] if measures else []
        if block.times > 1:
            costs, measures = _in_words(trace, block.whole)
            yield [block.whole.operation, costs]
            yield from [["", measures]] if measures else []


def _numbers(trace: Account, step: Step) -> dict[str, str]:
    """A step's costs and measurements by column."""
    found = {"Params": step.params, "MACs": step.macs, "Bytes": step.bytes}
    return {name: f"{count:,}" if count else "" for name, count in found.items()} | _measures(trace, step)


def _in_words(trace: Account, step: Step) -> tuple[str, str]:
    """A step's costs that are not 0, and its measurements."""
    costs = {"params": step.params, "MACs": step.macs, "bytes": step.bytes}
    measures = _measures(trace, step).items()
    return (
        ", ".join(f"{count:,} {name}" for name, count in costs.items() if count),
        ", ".join(f"{name} {value}" for name, value in measures),
    )


def _measures(trace: Account, step: Step) -> dict[str, str]:
    found: dict[str, str] = {}
    if trace.timed:
        seconds, total = step.seconds or 0.0, trace.totals.seconds or 1.0
        found = {"ms": f"{1000 * seconds:.3f}", "% of time": f"{100 * seconds / total:.1f}"}
    if step.estimate is not None:
        read, written, intensity, bound, seconds = step.estimate
        found |= {"Read": f"{read:,}", "Written": f"{written:,}", "FLOP/byte": f"{intensity:.2f}", "Bound": bound}
        found["Est. ms"] = f"{1000 * seconds:.3f}"
    if step.formula is not None:
        found["Formula"] = step.formula
    if step.stats is not None:
        found |= {name: cell(step.stats[name]) or "NaN" for name in ("min", "max", "mean", "std")}
        found["NaN/Inf"] = "no" if step.stats.finite else "YES"
    return found


def _size(value: Value | None) -> str:
    """`S × H (512 × 768)`"""
    return f"{value.symbols} ({' × '.join(map(str, value.shape))})" if value else ""


# ------------------------------------------------------------------------------------------ what stands below, and CSV


def _totals(trace: Account, sizes: Mapping[str, int]) -> list[str]:
    totals = trace.totals
    values = [value for step in trace.steps for value in (*step.inputs, step.output)]
    used = {"L", *re.findall(r"\w+", " ".join(value.symbols for value in values))}
    known = {"B": trace.batch, "S": trace.sequence, **{name: size for name, size in sizes.items() if name in used}}
    symbols = ", ".join(f"{symbol} = {size}" for symbol, size in known.items() if size is not None)
    below = [
        f"{trace.model}: {symbols}",
        f"Params: {totals.params:,}",
        f"MACs: {totals.macs:,} (multiply-accumulates of matrix products)",
        f"FLOPs: {totals.matmul_flops:,} of matrix products, {totals.flops:,} with element-wise operations",
        f"Activations: {totals.activation_bytes:,} bytes (every output, as float32)",
    ]
    below += [] if totals.seconds is None else [f"Time: {1000 * totals.seconds:,.3f} ms"]
    if trace.rates is not None and totals.estimated_seconds is not None:
        seconds, (gflops, gbps) = totals.estimated_seconds, trace.rates
        below.append(f"Estimated: {1000 * seconds:,.3f} ms at {gflops:,.1f} GFLOP/s and {gbps:,.1f} GB/s")
        if trace.batch is not None:
            below.append(f"1,000 texts of this length: {1000 * seconds / trace.batch:,.3g} s")
    return below


def _folding(trace: Account, found: list[Folded]) -> list[str]:
    """What measured numbers refer to, where layers are shown once."""
    steps = [step for block in found for step in block.steps if block.times > 1]
    times = ["times are averages per layer"] * (trace.timed and bool(steps))
    stats = ["statistics are over all layers"] * any(step.stats for step in steps)
    return [f"Where layers are shown once, {' and '.join(times + stats)}."] if times or stats else []


def _line(block: Folded, step: Step) -> dict[str, Any]:
    """An op in CSV: `times` is how many layers do the same; costs and time are for one, statistics for all of them."""
    line: dict[str, Any] = {"times": block.times, "path": step.path, "group": step.group, "operation": step.operation}
    for i in (0, 1):
        value = step.inputs[i] if i < len(step.inputs) else None
        line |= {f"input_{i + 1}": value.name if value else "", f"size_{i + 1}": _size(value)}
    line |= {"output": step.output.name, "size": _size(step.output)}
    line |= {"params": step.params, "macs": step.macs, "flops": step.flops, "bytes": step.bytes}
    if step.seconds is not None:
        line["seconds"] = step.seconds
    line |= {} if step.estimate is None else step.estimate._asdict()
    line |= {} if step.formula is None else {"formula": step.formula}
    return line | (asdict(step.stats) if step.stats is not None else {})
