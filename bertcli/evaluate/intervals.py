"""Intervals by the bootstrap: items are drawn with replacement, as many as there are, and figures made of each draw.

Efron 1979; the interval holds 95 % of the draws (percentiles 2.5 and 97.5). Draws are seeded: the same each time, and
the same for all models on the same data, so that differences are paired.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertcli.evaluate.metrics import Figures, Numbers

DRAWS, SEED = 1000, 0
NUMBERS = 1 << 22  # counts at a time: 32 MiB
LESS_IS_BETTER = ("ece", "brier", "log_loss", "loss", "pseudo_perplexity")
NEITHER = ("best_f1_threshold",)


def draws(count: int) -> Iterator[Numbers]:
    """How often each of `count` items is in each of DRAWS draws [some draws, item]."""
    generator, step = np.random.default_rng(SEED), max(1, NUMBERS // max(1, count))
    for begin in range(0, DRAWS, step):
        some = min(step, DRAWS - begin)
        picked = generator.integers(count, size=(some, count)) + count * np.arange(some)[:, None]
        yield np.bincount(picked.ravel(), minlength=some * count).reshape(some, count).astype(np.float64)


@dataclass(frozen=True)
class Figure:
    """A figure, and what it is in each draw [draw]; NaN where it is not defined."""

    value: float
    drawn: Numbers

    @property
    def interval(self) -> tuple[float, float]:
        """What 95 % of the draws lie between."""
        defined = self.drawn[np.isfinite(self.drawn)]
        if not defined.size or not np.isfinite(self.value):
            return float("nan"), float("nan")
        low, high = np.percentile(defined, [2.5, 97.5])
        return float(low), float(high)

    @property
    def record(self) -> dict[str, float | None]:
        """{value, low, high}; None where the figure is not defined."""
        numbers = dict(zip(("value", "low", "high"), (self.value, *self.interval), strict=True))
        return {name: number if np.isfinite(number) else None for name, number in numbers.items()}


def figures_of(make: Callable[[Numbers], Figures], count: int) -> dict[str, Figure]:
    """The figures of so many items, from what makes them of counts."""
    values = make(np.ones((1, count)))
    drawn = [make(some) for some in draws(count)]
    return {
        name: Figure(float(value[0]), np.concatenate([some[name] for some in drawn])) for name, value in values.items()
    }


@dataclass(frozen=True)
class Difference:
    """How much a figure of b is above that of a; `ahead`: the share of draws in which b is better, equal ones half."""

    metric: str
    a: str
    b: str
    figure: Figure
    ahead: float

    @property
    def record(self) -> dict[str, Any]:
        return {"metric": self.metric, "a": self.a, "b": self.b, **self.figure.record, "ahead": self.ahead}

    def sentence(self, count: int, unit: str) -> str:
        """Which is better, and by how much, if the interval leaves out 0."""
        value, (low, high) = self.figure.value, self.figure.interval
        if not (low > 0 or high < 0):
            numbers = f"{value:+.3f} {self.metric} [{low:+.3f}, {high:+.3f}]"
            return f"{self.a} and {self.b}: no difference that {count:,} {unit} can show ({numbers})."
        better = self.b
        if (low > 0) == (self.metric in LESS_IS_BETTER):
            better, value, low, high = self.a, -value, -high, -low
        return f"{better} is better: {value:+.3f} {self.metric} [{low:+.3f}, {high:+.3f}]."


def differences(a: str, of_a: Mapping[str, Figure], b: str, of_b: Mapping[str, Figure]) -> list[Difference]:
    """Of each figure that is better or worse, the paired difference."""
    found = []
    for metric in (name for name in of_a if name in of_b and name not in NEITHER):
        first, second = of_a[metric], of_b[metric]
        figure = Figure(second.value - first.value, second.drawn - first.drawn)
        gains = figure.drawn[np.isfinite(figure.drawn)] * (-1 if metric in LESS_IS_BETTER else 1)
        ahead = float(np.mean((gains > 0) + 0.5 * (gains == 0))) if gains.size else 0.5
        found.append(Difference(metric, a, b, figure, ahead))
    return found
