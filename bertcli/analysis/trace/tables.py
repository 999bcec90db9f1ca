"""A trace as a document: the operation table, wide as in the literature, else with a line for each operand.

Layers that do the same are shown once, with the number of times they ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from bertcli.analysis.trace.steps import Account, Stats, Step, Value
from bertcli.files.records import cell
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


def folded(steps: Sequence[Step], *, fold: bool) -> list[Folded]:
    """The steps of a pass in the order they ran; with `fold`, consecutive layers that do the same become one."""
    runs: list[list[tuple[Step, ...]]] = []  # of identical layers, or what lies between layers
    for layer, several in groupby(steps, lambda step: _layer(step.path)):
        stretch = tuple(several)
        if fold and layer and runs and [*map(_without_layer, runs[-1][-1])] == [*map(_without_layer, stretch)]:
            runs[-1].append(stretch)
        else:
            runs.append([stretch])
    alike = sum(bool(_layer(run[0][0].path)) for run in runs) == 1
    return [_joined(run, alike) for run in runs]


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
    """The steps, with identical layers shown once, and below them the `sizes` of symbols, the totals and the `results`.

    `width` is the width of the terminal, None if unlimited.
    """
    blocks = folded(trace.steps, fold=not all_layers)
    numbers = _numbers(trace, trace.steps[0]) if trace.steps else {}
    columns = [*map(Column, OPERANDS), *(Column(name, number=name != "Formula") for name in numbers)]
    rows = [row + [""] * (len(columns) - len(row)) for row in _wide(trace, blocks)]
    texts = zip([column.name for column in columns], *rows, strict=True)
    if width is not None and sum(max(map(len, column)) + BESIDE for column in texts) > width:
        columns = [Column("Operation"), Column("Size and cost")]
        rows = [row + [""] * (len(columns) - len(row)) for row in _narrow(trace, blocks)]
    lines = [_line(block, step) for block in blocks for step in block.steps]
    return Document(columns, rows, [*_totals(trace, sizes), *_folding(trace, blocks), *results], trace.record(), lines)


def _wide(trace: Account, blocks: list[Folded]) -> Iterator[list[str]]:
    """A row for each op, as in the literature."""
    for block in blocks:
        if block.layers:
            yield [block.heading]
        for group, steps in groupby(block.steps, lambda step: step.group):
            for number, step in enumerate(steps):
                values = [
                    cell for value in _operands(step) for cell in ((value.name, value.size) if value else ("", ""))
                ]
                yield ["" if number else group, step.operation, *values, *_numbers(trace, step).values()]


def _narrow(trace: Account, blocks: list[Folded]) -> Iterator[list[str]]:
    """A row for each operand and result, below the op and its cost."""
    for block in blocks:
        if block.layers:
            yield [block.heading]
        for group, steps in groupby(block.steps, lambda step: step.group):
            yield [group]
            for step in steps:
                costs = {"params": step.params, "MACs": step.macs, "bytes": step.bytes}
                yield [f"  {step.operation}", ", ".join(f"{count:,} {name}" for name, count in costs.items() if count)]
                yield from ([f"    {value.name}", value.size] for value in step.inputs)
                yield [f"  → {step.output.name}", step.output.size]
                if measures := _measures(trace, step):
                    yield ["", ", ".join(f"{name} {value}" for name, value in measures.items())]


def _operands(step: Step) -> list[Value | None]:
    """Two operands, of which either may be missing, and the result."""
    return [*[*step.inputs, None, None][:2], step.output]


def _numbers(trace: Account, step: Step) -> dict[str, str]:
    """A step's costs and measurements by column."""
    costs = {"Params": step.params, "MACs": step.macs, "Bytes": step.bytes}
    return {name: f"{count:,}" if count else "" for name, count in costs.items()} | _measures(trace, step)


def _measures(trace: Account, step: Step) -> dict[str, str]:
    measures: dict[str, str] = {}
    if trace.timed:
        seconds, total = step.seconds or 0.0, trace.totals.seconds or 1.0
        measures = {"ms": f"{1000 * seconds:.3f}", "% of time": f"{100 * seconds / total:.1f}"}
    if step.estimate is not None:
        read, written, intensity, bound, seconds = step.estimate
        measures |= {"Read": f"{read:,}", "Written": f"{written:,}", "FLOP/byte": f"{intensity:.2f}", "Bound": bound}
        measures["Est. ms"] = f"{1000 * seconds:.3f}"
    measures |= {} if step.formula is None else {"Formula": step.formula}
    if step.stats is not None:
        measures |= {name: cell(step.stats[name]) or "NaN" for name in ("min", "max", "mean", "std")}
        measures["NaN/Inf"] = "no" if step.stats.finite else "YES"
    return measures


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


def _folding(trace: Account, blocks: list[Folded]) -> list[str]:
    """What measured numbers refer to, where layers are shown once."""
    steps = [step for block in blocks for step in block.steps if block.times > 1]
    times = ["times are averages per layer"] * (trace.timed and bool(steps))
    stats = ["statistics are over all layers"] * any(step.stats for step in steps)
    return [f"Where layers are shown once, {' and '.join(times + stats)}."] if times or stats else []


def _line(block: Folded, step: Step) -> dict[str, Any]:
    """An op in CSV: `times` is how many layers do the same; costs and time are for one, statistics for all of them."""
    record = step.record()
    line = {"times": block.times, **{name: record[name] for name in ("path", "group", "operation")}}
    for name, size, value in zip(
        ("input_1", "input_2", "output"), ("size_1", "size_2", "size"), _operands(step), strict=True
    ):
        line |= {name: value.name if value else "", size: value.size if value else ""}
    costs = {name: value for name, value in record.items() if name not in (*line, "index", "inputs", "stats")}
    stats: dict[str, Any] = record.get("stats", {})
    return line | costs | stats
