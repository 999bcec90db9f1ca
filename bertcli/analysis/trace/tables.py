"""A trace as a document: the operation table, wide as in the literature, or narrow for a small terminal.

Layers that do the same are shown once, with the number of times they ran.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.analysis.trace.steps import Stats, Step, Value
from bertcli.files.table import cell
from bertcli.report import Column, Document

if TYPE_CHECKING:
    from bertcli.analysis.trace.watcher import Trace


LAYER = re.compile(r"(.*\blayers)\.(\d+)\.(.*)")
EVERY = "*"  # in place of a layer's number


class Folded(NamedTuple):
    """Steps that ran `times` times, layer after layer.

    Where layers differ, seconds are the mean per layer, and statistics those of all results together.
    """

    layers: str  # "encoder.layers.*" or "encoder.layers.3"; empty outside of layers
    times: int
    steps: tuple[Step, ...]


def folded(steps: Sequence[Step], *, fold: bool) -> list[Folded]:
    """The steps of a pass in the order they ran; with `fold`, consecutive layers that do the same become one."""
    found: list[list[tuple[Step, ...]]] = []  # runs of identical layers, or what lies between layers
    for stretch in _by_layer(steps):
        if fold and found and _alike(found[-1][-1], stretch):
            found[-1].append(stretch)
        else:
            found.append([stretch])
    return [_joined(several) for several in found]


def _by_layer(steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    for _, stretch in groupby(steps, lambda step: _layer(step.path)):
        yield tuple(stretch)


def _layer(path: str) -> str:
    match = LAYER.fullmatch(path)
    return f"{match[1]}.{match[2]}" if match else ""


def _alike(one: tuple[Step, ...], other: tuple[Step, ...]) -> bool:
    return bool(_layer(one[0].path)) and [*map(_without_layer, one)] == [*map(_without_layer, other)]


def _without_layer(step: Step) -> Step:
    path = LAYER.sub(rf"\1.{EVERY}.\3", step.path)
    return replace(step, index=0, path=path, module="", parameters=(), sources=(), seconds=None, stats=None)


def _joined(several: list[tuple[Step, ...]]) -> Folded:
    layer = _layer(several[0][0].path)
    if len(several) == 1:
        return Folded(layer, 1, several[0])
    steps = tuple(
        replace(_without_layer(column[0]), seconds=_mean([step.seconds for step in column]), stats=_stats(column))
        for column in zip(*several, strict=True)
    )
    return Folded(f"{layer.rpartition('.')[0]}.{EVERY}", len(several), steps)


def _stats(steps: Sequence[Step]) -> Stats | None:
    """Statistics of all results together; they all have the same size."""
    each = [step.stats for step in steps if step.stats is not None]
    if not each:
        return None
    means, deviations = [one.mean for one in each], [one.std for one in each]
    mean = _mean(means)
    squares = _mean([None if m is None or s is None else m * m + s * s for m, s in zip(means, deviations, strict=True)])
    std = None if mean is None or squares is None else sqrt(max(0.0, squares - mean * mean))
    low = [one.min for one in each if one.min is not None]
    high = [one.max for one in each if one.max is not None]
    return Stats(
        min(low) if len(low) == len(each) else None,
        max(high) if len(high) == len(each) else None,
        mean,
        std,
        all(one.finite for one in each),
    )


def _mean(numbers: list[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) / len(known) if len(known) == len(numbers) else None


BESIDE = 3  # cells a column takes besides its text
Rows = list[list[str]]
Layout = tuple[list[Column], Rows]


def trace_document(
    trace: Trace, sizes: Mapping[str, int], *, all_layers: bool = False, room: int | None = None
) -> Document:
    """The steps, with identical layers shown once; the `sizes` of symbols are shown below.

    `room` is the width of the terminal, None if unlimited: the widest layout that fits is used.
    """
    found = folded(trace.steps, fold=not all_layers)
    layouts = (layout(trace, found) for layout in (_wide, _middle))
    fitting = (layout for layout in layouts if room is None or _width(layout) <= room)
    columns, rows = next(fitting, None) or _narrow(trace, found)
    lines = [_line(block, step) for block in found for step in block.steps]
    return Document(columns, rows, [*_totals(trace, sizes), *_folding(trace, found)], trace.record(), lines)


def _width(layout: Layout) -> int:
    columns, rows = layout
    return sum(max(map(len, cells)) + BESIDE for cells in zip([column.name for column in columns], *rows, strict=True))


# ----------------------------------------------------------------------------------------------------------- layouts


def _wide(trace: Trace, found: list[Folded]) -> Layout:
    """One row for each op, as in the literature."""
    columns = [Column(name) for name in ("Group", "Operation", "Input 1", "Size", "Input 2", "Size", "Output", "Size")]
    columns += _number_columns(trace)
    rows: Rows = []
    for block in found:
        if block.layers:
            rows.append([_heading(block)])
        group = ""
        for step in block.steps:
            names = [text for value in _three(step) for text in (value.name if value else "", _size(value))]
            rows.append([step.group if step.group != group else "", step.operation, *names, *_numbers(trace, step)])
            group = step.group
        if block.times > 1:
            rows.append([_together(block), *[""] * 7, *_sum_numbers(trace, block)])
    return columns, _filled(rows, columns)


def _middle(trace: Trace, found: list[Folded]) -> Layout:
    """Two rows for each op: names, and sizes below them."""
    columns = [Column(name) for name in ("Operation", "Input 1", "Input 2", "Output")] + _number_columns(trace)
    rows: Rows = []
    for block in found:
        if block.layers:
            rows.append([_heading(block)])
        for group, steps in groupby(block.steps, lambda step: step.group):
            rows.append([group])
            for step in steps:
                names = [value.name if value else "" for value in _three(step)]
                rows.append([f"  {step.operation}", *names, *_numbers(trace, step)])
                rows.append(["", *map(_size, _three(step))])
        if block.times > 1:
            rows.append([_together(block), *[""] * 3, *_sum_numbers(trace, block)])
    return columns, _filled(rows, columns)


def _narrow(trace: Trace, found: list[Folded]) -> Layout:
    """A row for each operand and result, below the op and its cost."""
    rows: Rows = []
    for block in found:
        if block.layers:
            rows.append([_heading(block)])
        for group, steps in groupby(block.steps, lambda step: step.group):
            rows.append([group])
            for step in steps:
                rows.append([f"  {step.operation}", _in_words(_costs(step))])
                rows += [[f"    {value.name}", _size(value)] for value in step.inputs]
                rows.append([f"  → {step.output.name}", _size(step.output)])
                if measures := _measures(trace, step):
                    rows.append(["", _measures_in_words(measures)])
        if block.times > 1:
            rows.append([_together(block), _in_words(_sums(block))])
            rows += [["", _measures_in_words(found)] for found in [_times(trace, _seconds(block))] if found]
    columns = [Column("Operation"), Column("Size and cost")]
    return columns, _filled(rows, columns)


def _number_columns(trace: Trace) -> list[Column]:
    measured = [name for name, _ in _measures(trace, trace.steps[0])] if trace.steps else []
    return [Column(name, number=True) for name in ("Params", "MACs", "Bytes", *measured)]


def _numbers(trace: Trace, step: Step) -> list[str]:
    return [*map(_count, _costs(step)), *(number for _, number in _measures(trace, step))]


def _filled(rows: Rows, columns: list[Column]) -> Rows:
    return [row + [""] * (len(columns) - len(row)) for row in rows]


def _three(step: Step) -> list[Value | None]:
    """Two inputs, the second None if there is only one, and the output."""
    return [*step.inputs[:2], *[None] * (2 - len(step.inputs)), step.output]


def _heading(block: Folded) -> str:
    return f"Encoder layer × {block.times}, each:" if block.times > 1 else f"{block.layers}:"


def _together(block: Folded) -> str:
    return f"Encoder layer × {block.times}, all"


def _costs(step: Step) -> tuple[int, ...]:
    return step.params, step.macs, step.bytes


def _sums(block: Folded) -> tuple[int, ...]:
    return tuple(block.times * sum(column) for column in zip(*map(_costs, block.steps), strict=True))


def _sum_numbers(trace: Trace, block: Folded) -> list[str]:
    return [*map(_count, _sums(block)), *(number for _, number in _times(trace, _seconds(block)))]


def _seconds(block: Folded) -> float:
    return block.times * sum(step.seconds or 0.0 for step in block.steps)


def _in_words(costs: tuple[int, ...]) -> str:
    return ", ".join(
        f"{count:,} {name}" for count, name in zip(costs, ("params", "MACs", "bytes"), strict=True) if count
    )


def _count(number: int) -> str:
    return f"{number:,}" if number else ""


def _size(value: Value | None) -> str:
    """`S × H (512 × 768)`"""
    return f"{value.symbols} ({' × '.join(map(str, value.shape))})" if value else ""


def _measures(trace: Trace, step: Step) -> list[tuple[str, str]]:
    """A step's measurements by column heading."""
    found = _times(trace, step.seconds or 0.0)
    if step.stats is not None:
        found += [(name, cell(step.stats[name]) or "NaN") for name in ("min", "max", "mean", "std")]
        found.append(("NaN/Inf", "no" if step.stats.finite else "YES"))
    return found


def _times(trace: Trace, seconds: float) -> list[tuple[str, str]]:
    if not trace.timed:
        return []
    total = trace.totals.seconds or 1.0
    return [("ms", f"{1000 * seconds:.3f}"), ("% of time", f"{100 * seconds / total:.1f}")]


def _measures_in_words(measures: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in measures)


# ------------------------------------------------------------------------------------------ what stands below, and CSV


def _totals(trace: Trace, sizes: Mapping[str, int]) -> list[str]:
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
    return below + ([f"Time: {1000 * totals.seconds:,.3f} ms"] if totals.seconds is not None else [])


def _folding(trace: Trace, found: list[Folded]) -> list[str]:
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
    return line | (asdict(step.stats) if step.stats is not None else {})
