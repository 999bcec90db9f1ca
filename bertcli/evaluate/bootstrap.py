"""Intervals by the bootstrap: items are drawn with replacement, as many as there are, and figures made of each draw.

Efron 1979; the interval holds 95 % of the draws (percentiles 2.5 and 97.5). Draws are seeded: the same each time, and
the same for all models on the same data, so that differences are paired.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bertcli.evaluate.figures import spec_of
from bertcli.evaluate.metrics import Figures, Numbers

Record = dict[str, Any]
DRAWS, SEED = 1000, 0
NUMBERS = 1 << 22  # counts at a time: 32 MiB


def draws(count: int) -> Iterator[Numbers]:
    """How often each of `count` items is in each of DRAWS draws [some draws, item]."""
    generator, step = np.random.default_rng(SEED), max(1, NUMBERS // max(1, count))
    for begin in range(0, DRAWS, step):
        some = min(step, DRAWS - begin)
        picked = generator.integers(count, size=(some, count)) + count * np.arange(some)[:, None]
        yield np.bincount(picked.ravel(), minlength=some * count).reshape(some, count).astype(np.float64)


class Figure(NamedTuple):
    """A figure, and what it is in each draw [draw]; NaN where it is not defined."""

    value: float
    drawn: Numbers

    @property
    def record(self) -> Record:
        """{value, low, high}: 95 % of the draws lie between these; None where the figure is not defined."""
        defined = self.drawn[np.isfinite(self.drawn)]
        if not defined.size or not np.isfinite(self.value):
            return dict.fromkeys(("value", "low", "high"))
        low, high = np.percentile(defined, [2.5, 97.5]).tolist()
        return {"value": self.value, "low": low, "high": high}


def figures_of(make: Callable[[Numbers], Figures], count: int) -> dict[str, Figure]:
    """The figures of so many items, from what makes them of counts."""
    values = make(np.ones((1, count)))
    drawn = [make(some) for some in draws(count)]
    return {
        name: Figure(float(value[0]), np.concatenate([some[name] for some in drawn])) for name, value in values.items()
    }


def differences(a: str, of_a: Mapping[str, Figure], b: str, of_b: Mapping[str, Figure]) -> list[Record]:
    """Of each figure that is better or worse the paired difference: {metric, a, b, value, low, high, ahead}.

    value: how much b's figure is above a's; ahead: the share of draws in which b is better, equal ones half.
    """
    found = []
    for metric in (name for name in of_a if name in of_b and spec_of(name).less_is_better is not None):
        first, second = of_a[metric], of_b[metric]
        apart = Figure(second.value - first.value, second.drawn - first.drawn)
        gains = apart.drawn[np.isfinite(apart.drawn)] * (-1 if spec_of(metric).less_is_better else 1)
        ahead = float(np.mean((gains > 0) + 0.5 * (gains == 0))) if gains.size else 0.5
        found.append({"metric": metric, "a": a, "b": b, **apart.record, "ahead": ahead})
    return found


def sentence(difference: Record, count: int, unit: str) -> str:
    """Which of two is better, and by how much, if the interval leaves out 0."""
    metric, a, b, value, low, high, _ = difference.values()
    worse = value is not None and (low > 0) == spec_of(metric).less_is_better
    shows = value is not None and (low > 0 or high < 0)
    if shows and worse:
        a, b, value, low, high = b, a, -value, -high, -low
    numbers = "" if value is None else f"{value:+.3f} {metric} [{low:+.3f}, {high:+.3f}]"
    if shows:
        return f"{b} is better: {numbers}."
    return f"{a} and {b}: no difference that {count:,} {unit} can show ({numbers or f'{metric} is not defined'})."
