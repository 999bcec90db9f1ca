"""95 % confidence intervals of figures: Wilson's for shares of independent items, else by the bootstrap.

Which of the two is chosen where a simulation shows that it covers (tests/wings/evaluate/test_coverage.py):

* A share of independent items, such as accuracy, has Wilson's interval (Wilson 1927), which is right also near 0 and 1.
* Everything else is resampled: items, or clusters of them, are drawn with replacement, as many as there are, and the
  figure is made of each draw (Efron 1979). The interval lies between two percentiles of the draws. They are wider than
  2.5 and 97.5 for few items, as Student's t is wider than the normal distribution (Hesterberg 2015), and shifted to
  the side on which single items change the figure more (the acceleration of Efron 1987).

Where neither covers there is no interval, and a sentence says why. Draws are seeded: the same each time, and the same
for all models on the same data, so that differences are paired.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from bertcli.statistics.metrics import Figures, Numbers, Whole

Record = dict[str, Any]
DRAWS, SEED = 1000, 0
# Counts that are computed at a time: 32 MiB.
NUMBERS = 1 << 22
Z = NormalDist().inv_cdf(0.975)
FEWEST = 10  # items that can be resampled: fewer say too little of a spread; a judgement, see decisions/intervals.md
# Groups of items that are left out in turn, at most, to see how much single items change a figure.
MOST_GROUPS = 200
# Items from which a mean that a few decide has an interval: rare ones, far from the others, may be missing among fewer.
FEWEST_LOSSES = 100
LEAST_DEFINED = 0.95  # share of the draws in which a figure must be defined
ROUNDING = 1e-9  # draws that differ by less are equal


class Figure(NamedTuple):
    """A figure of `n` items with its interval, and its value in each draw [draw]; NaN where it is not defined.

    low and high are None where there is no interval; `reason` then says why.
    """

    value: float
    drawn: Numbers
    n: int = 0
    low: float | None = None
    high: float | None = None
    reason: str = ""

    @property
    def record(self) -> Record:
        """{value, low, high, n}, and the reason where there is no interval; value is None where it is not defined."""
        value = float(self.value) if np.isfinite(self.value) else None
        found: Record = {"value": value, "low": self.low, "high": self.high, "n": self.n}
        return found | ({"reason": self.reason} if self.reason else {})


class Share(NamedTuple):
    """A count of right items out of `of`; a half counts as half an item."""

    right: float
    of: float


@dataclass(frozen=True, eq=False, repr=False)
class FigureFacts:
    """Facts about a model's figures that their intervals need.

    item_values: of a figure that is a mean over items, the value of each [item], NaN for one that does not count.
    shares: of a figure that is a share of independent items. no_interval: figures that cannot have one, and why.
    bias_corrected: figures that most draws lie on one side of: the best of several on the same items, and a mean of
    many labels' F1, each of which reads too low where its texts are few.
    losses: means of which a few values may decide: losses, which have no bound, and similarities that are 0 at times.
    counts: of how many items a figure is made, where that is not all of them.
    """

    item_values: Mapping[str, Numbers] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    no_interval: Mapping[str, str] = field(default_factory=dict)
    bias_corrected: Collection[str] = ()
    losses: Collection[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


class Resampling:
    """Draws of items: one by one, or with `clusters` (the number of each item's, [item]) of whole clusters."""

    def __init__(self, items: int, clusters: Whole | None = None) -> None:
        self.items = items
        self.clustered = clusters is not None
        if clusters is None:
            self._cluster_of = np.arange(items)
        else:
            _, self._cluster_of = np.unique(clusters, return_inverse=True)
        self.count = int(self._cluster_of.max(initial=-1)) + 1

    @property
    def even_count(self) -> float:
        """The number of clusters of equal sizes that tell as much: (Σ size)² / Σ size². Kish 1965."""
        sizes = np.bincount(self._cluster_of)
        return float(sizes.sum() ** 2 / (sizes.astype(np.float64) ** 2).sum())

    def sums(self, values: Numbers) -> Numbers:
        """The sum of the values [item] of each cluster [cluster]."""
        return np.asarray(np.bincount(self._cluster_of, values, self.count), np.float64)

    def draws(self) -> Iterator[Numbers]:
        """Yield blocks of draws: the times that each item is in each of DRAWS draws [some draws, item]."""
        generator = np.random.default_rng(SEED)
        step = max(1, NUMBERS // max(1, self.items))
        for begin in range(0, DRAWS, step):
            draws = min(step, DRAWS - begin)
            picked = generator.integers(self.count, size=(draws, self.count))
            # Each draw's clusters have numbers of their own, so that one call counts them all.
            picked += self.count * np.arange(draws)[:, None]
            times = np.bincount(picked.ravel(), minlength=draws * self.count).reshape(draws, self.count)
            yield times.astype(np.float64)[:, self._cluster_of]

    def leaving_out(self) -> Numbers:
        """Every item once but those of one cluster, or of one of at most MOST_GROUPS groups [group, item]."""
        group_of = self._cluster_of % MOST_GROUPS
        groups = min(self.count, MOST_GROUPS)
        return np.asarray(group_of != np.arange(groups)[:, None], np.float64)

    def signs(self, flips: int) -> Iterator[Numbers]:
        """Yield blocks of `flips` random exchanges of two models [flip, item]: 1 for an exchanged item, else 0."""
        generator = np.random.default_rng(SEED)
        step = max(1, NUMBERS // max(1, self.items))
        for begin in range(0, flips, step):
            chosen = generator.integers(2, size=(min(step, flips - begin), self.count))
            yield chosen.astype(np.float64)[:, self._cluster_of]


def estimate(
    figures_from: Callable[[Numbers], Figures], facts: FigureFacts, resampling: Resampling, unit: str
) -> dict[str, Figure]:
    """The figures of these items with their intervals; `figures_from(counts)` makes them of counts [draw, item]."""
    values = figures_from(np.ones((1, resampling.items)))
    drawn = [figures_from(counts) for counts in resampling.draws()]
    left_out = figures_from(resampling.leaving_out())
    figures = {}
    for name, (value,) in values.items():
        of_draws = np.concatenate([of_block[name] for of_block in drawn])
        figure = Figure(float(value), of_draws, count_of(name, facts, resampling.items))
        figures[name] = _with_interval(name, figure, facts, left_out[name], resampling, unit)
    return figures


def count_of(name: str, facts: FigureFacts, items: int) -> int:
    """The number of items that a figure is made of."""
    if name in facts.counts:
        return facts.counts[name]
    if name in facts.item_values:
        return int(np.isfinite(facts.item_values[name]).sum())
    if name in facts.shares:
        return round(facts.shares[name].of)
    return items


def share_of(name: str, facts: FigureFacts) -> Share | None:
    """The figure as a share, if it is one: given so, or the mean of values that are all 0 or 1, or one half."""
    if name in facts.shares:
        return facts.shares[name]
    if name not in facts.item_values:
        return None
    values = facts.item_values[name]
    known = values[np.isfinite(values)]
    if not np.isin(known, (0, 0.5, 1)).all():
        return None
    return Share(float(known.sum()), float(len(known)))


def _with_interval(
    name: str, figure: Figure, facts: FigureFacts, left_out: Numbers, resampling: Resampling, unit: str
) -> Figure:
    share = None if resampling.clustered else share_of(name, facts)
    no_interval = facts.no_interval.get(name, "")
    what = "clusters" if resampling.clustered else unit
    defined = figure.drawn[np.isfinite(figure.drawn)]
    if not np.isfinite(figure.value):
        reason = f"not defined: these {unit} do not vary in what it compares"
        return figure._replace(reason=no_interval or reason)
    if no_interval:
        return figure._replace(reason=no_interval)
    if min(resampling.count, figure.n) < 2:
        return figure._replace(reason=f"of fewer than two {what} nothing can be told about others")
    if share is not None:
        low, high = wilson(share)
        return figure._replace(low=low, high=high)
    if min(resampling.count, figure.n) < FEWEST:
        return figure._replace(reason=f"fewer than {FEWEST} {what}: too few to resample")
    if name in facts.losses and min(resampling.count, figure.n) < FEWEST_LOSSES:
        few = f"fewer than {FEWEST_LOSSES} {what}: a few decide the mean, and may be missing here"
        return figure._replace(reason=few)
    if len(defined) < LEAST_DEFINED * len(figure.drawn):
        undefined = 1 - len(defined) / len(figure.drawn)
        return figure._replace(reason=f"not defined in {undefined:.0%} of the resamples")
    if np.ptp(defined) <= ROUNDING * max(1, abs(figure.value)):
        return figure._replace(reason=f"all {what} give the same, so resampling shows no spread")
    corrected = name in facts.bias_corrected
    low, high = percentiles(figure.value, defined, left_out, resampling.even_count, corrected)
    return figure._replace(low=low, high=high)


def wilson(share: Share) -> tuple[float, float]:
    """The interval of a share of independent items; the share lies inside. Wilson 1927."""
    right, of = share
    center = (right + Z**2 / 2) / (of + Z**2)
    half_width = Z / (of + Z**2) * (right * (of - right) / of + Z**2 / 4) ** 0.5
    value = right / of
    low = 0.0 if right == 0 else max(0.0, center - half_width)
    high = 1.0 if right == of else min(1.0, center + half_width)
    return min(low, value), max(high, value)


def percentiles(
    value: float, drawn: Numbers, left_out: Numbers, count: float, bias_corrected: bool = False
) -> tuple[float, float]:
    """Two percentiles of the draws, widened for few items and shifted for skew, and so that the value lies inside.

    drawn: the figure in each draw [draw]. left_out: the figure without one item, or one group of them [group].
    count: of items, or of clusters as `even_count` has it: one large cluster decides more than its share of the draws.
    bias_corrected: shift them also so far as the draws' median lies from the value, as BCa does (Efron 1987). Other
    figures have no bias worth the name, and then the correction adds but noise.
    """
    # One cluster may be nearly all there is.
    count = max(count, 2.0)
    widened_z = (count / (count - 1)) ** 0.5 * _student(count - 1)
    without_parts = left_out[np.isfinite(left_out)]
    changes = without_parts.mean() - without_parts
    spread = float((changes**2).sum()) ** 1.5
    acceleration = float((changes**3).sum()) / (6 * spread) if spread > 0 else 0.0
    bias = 0.0
    if bias_corrected:
        below = float(np.mean((drawn < value) + 0.5 * (drawn == value)))
        bias = NormalDist().inv_cdf(min(max(below, 1 / len(drawn)), 1 - 1 / len(drawn)))
    shares = []
    for z in (bias - widened_z, bias + widened_z):
        bend = 1 - acceleration * z
        at_the_end = 0.0 if z < 0 else 1.0
        shares.append(NormalDist().cdf(bias + z / bend) if bend > 0 else at_the_end)
    low, high = np.quantile(drawn, shares).tolist()
    return min(low, value), max(high, value)


def _student(freedom: float) -> float:
    """The 97.5 % point of Student's t, to 0.003 from 9 degrees on. Abramowitz and Stegun 1964, 26.7.5."""
    first = (Z**3 + Z) / 4
    second = (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96
    third = (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384
    return Z + first / freedom + second / freedom**2 + third / freedom**3


# ------------------------------------------------------------------------------------------------------------- in words


def value(figure: Record, form: str = ".4f") -> str:
    """A figure's value as text."""
    return "–" if figure["value"] is None else f"{figure['value']:{form}}"


def interval(figure: Record, form: str = ".4f") -> str:
    """Its 95 % interval; "none" where it has none."""
    if figure["value"] is None:
        return ""
    return "none" if figure["low"] is None else f"[{figure['low']:{form}}, {figure['high']:{form}}]"
