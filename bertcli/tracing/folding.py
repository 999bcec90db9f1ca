"""Shows identical layers once: groups the steps of a trace, each group with the number of times it ran in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import sqrt
from typing import NamedTuple

from bertcli.tracing.records import Stats, Step

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
    return replace(step, index=0, path=path, parameters=(), seconds=None, stats=None)


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
