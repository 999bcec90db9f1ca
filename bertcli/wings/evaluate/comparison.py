"""Compare two models on the same items: the paired difference of each figure, its interval, its p-value.

* The interval of a difference is paired: both figures are made of the same draws. If both are shares of independent
  items, the interval of Bonett and Price (2012) takes its place: it holds also where the models hardly differ.
* p is McNemar's exact test (1947) for such shares. Else it is a permutation test (Fisher 1935; Noreen 1989): if both
  models were as good, their results on an item, or cluster, could be exchanged. p is the share of FLIPS random
  exchanges after which the figures differ as much as they do. With more than MOST_EXCHANGED items each of MOST_GROUPS
  groups of them has the share of the difference that leaving it out shows (a pseudo-value of Tukey 1958), and an
  exchange flips the sign of that: the same for a mean, close for any smooth figure, and a hundredth of the time.
* A model is better if the interval and p both say so. A resampled interval that leaves out 0 against p is not given.
* `smallest` is the difference that would have been seen in 80 % of such files: from the spread of the draws, of two
  shares from the spread that such a difference brings (`detectable`).
* With more than two models each is compared with the first, and p is corrected as Holm (1979) does.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import exp, lgamma, log

import numpy as np

from bertcli.report.intervals import written
from bertcli.statistics.intervals import (
    FEWEST,
    NUMBERS,
    ROUNDING,
    Figure,
    Record,
    Resampling,
    Z,
    percentiles,
    share_of,
)
from bertcli.statistics.metrics import Numbers
from bertcli.wings.evaluate.figures import spec_of
from bertcli.wings.evaluate.outcome import Results

# Random exchanges of a permutation test: p has a standard error of at most 0.005.
FLIPS = 10_000
# Items up to which they are exchanged one by one: the exchanges of 500 take seconds, those of 5,000 minutes.
MOST_EXCHANGED = 500
# Share of a sum below which a further term changes no digit.
NEGLIGIBLE = 1e-20
# A smaller p is written as "p < 0.001".
SMALLEST_P = 0.001
# The largest p at which a difference is one.
SIGNIFICANT = 0.05
# Of means that a few items decide, resampling leaves 0 out of 17 % of files with equal models, exchanges out of 5 %.
CONTRADICTED = "resampling leaves out 0, but p is above 0.05"
# The share of files that show the smallest difference that can be seen, and that point of the normal distribution.
POWER, POWER_Z = 0.8, 0.8416
# Items, or clusters, that must differ: of five, all better, a sign test's p is 0.0625.
FEWEST_DIFFERING = 6
# Items up to which the power of the exact test is computed; with more it is that of the normal distribution.
FEW_SHARES = 200
# Of a difference of shares.
PRECISION = 1e-4


def differences(
    a: Results, of_a: Mapping[str, Figure], b: Results, of_b: Mapping[str, Figure], resampling: Resampling
) -> list[Record]:
    """The paired difference of each figure for which higher or lower is better, as a record:

        {metric, a, b, value, low, high, ahead, n, p, test, smallest}

    value: how much b's figure is above a's; ahead: the share of draws in which b is better, equal ones half.
    """
    names = [name for name in of_a if name in of_b and spec_of(name).less_is_better is not None]
    groups = resampling.leaving_out()
    without_a, without_b = a.figures(groups), b.figures(groups)
    left_out = {name: without_b[name] - without_a[name] for name in names}
    p_of_name: Mapping[str, float | None]
    if resampling.count <= MOST_EXCHANGED:
        p_of_name = permuted(a, b, names, resampling)
    else:
        values = {name: of_b[name].value - of_a[name].value for name in names}
        p_of_name = {name: sign_flipped(values[name], left_out[name]) for name in names if np.isfinite(values[name])}
    return [
        _difference(name, a, of_a[name], b, of_b[name], left_out[name], resampling, p_of_name.get(name))
        for name in names
    ]


def _difference(
    name: str,
    a: Results,
    of_a: Figure,
    b: Results,
    of_b: Figure,
    left_out: Numbers,
    resampling: Resampling,
    p: float | None,
) -> Record:
    """The record of one figure's difference; `p` is that of the permutation test, `left_out` as in `sign_flipped`."""
    value = of_b.value - of_a.value
    drawn = of_b.drawn - of_a.drawn
    defined = drawn[np.isfinite(drawn)]
    gains = -defined if spec_of(name).less_is_better else defined
    ahead = float(np.mean((gains > 0) + 0.5 * (gains == 0))) if gains.size else 0.5
    record: Record = {"metric": name, "a": a.name, "b": b.name}
    record |= {"value": value if np.isfinite(value) else None, "low": None, "high": None, "ahead": ahead, "n": of_a.n}
    test, smallest, reason = "permutation", None, ""
    changes = _changed_items(name, a, b) if not resampling.clustered else None
    if not np.isfinite(value):
        reason = "one of the figures is not defined"
    elif changes is not None and len(changes) > 1:
        better, worse = int((changes > 0).sum()), int((changes < 0).sum())
        record["low"], record["high"] = bonett_price(better, worse, len(changes))
        p, test = mcnemar(better, worse), "McNemar"
        smallest = detectable(2 * min(better, worse) / len(changes), len(changes))
    elif min(resampling.count, of_a.n) < FEWEST:
        reason = f"fewer than {FEWEST} items: too few to resample"
    elif not defined.size or np.ptp(defined) <= ROUNDING:
        reason = "the two do not differ on any item"
    elif (differing := _differing(name, a, b, resampling)) is not None and differing < FEWEST_DIFFERING:
        what = "clusters" if resampling.clustered else "items"
        reason = f"the two differ on {differing} {what} only: fewer than {FEWEST_DIFFERING} cannot show a difference"
    else:
        low, high = percentiles(value, defined, left_out, resampling.even_count)
        if p is not None and p > SIGNIFICANT and (low > 0 or high < 0):
            reason = CONTRADICTED
        else:
            record["low"], record["high"] = low, high
        smallest = (Z + POWER_Z) * float(defined.std())
    record |= {"p": p, "test": test if p is not None else None, "smallest": smallest}
    return record | ({"reason": reason} if reason else {})


def _changed_items(name: str, a: Results, b: Results) -> Numbers | None:
    """For a figure that is a share for both models, b's value less a's for each item: -1, 0 or 1. Else None."""
    if share_of(name, a.facts) is None or share_of(name, b.facts) is None:
        return None
    if name not in a.facts.item_values or name not in b.facts.item_values:
        return None
    changes = b.facts.item_values[name] - a.facts.item_values[name]
    changes = changes[np.isfinite(changes)]
    return changes if np.isin(changes, (-1, 0, 1)).all() else None


def _differing(name: str, a: Results, b: Results, resampling: Resampling) -> int | None:
    """Of a figure that is a mean for both models, the number of items, or clusters, on which these differ."""
    if name not in a.facts.item_values or name not in b.facts.item_values:
        return None
    changes = np.nan_to_num(b.facts.item_values[name] - a.facts.item_values[name])
    return int((np.abs(resampling.sums(changes)) > ROUNDING).sum())


def bonett_price(better: int, worse: int, n: int) -> tuple[float, float]:
    """The interval of a difference of paired shares. Bonett and Price 2012."""
    # One item is added to each count, as Agresti and Coull do for one share.
    up, down = (better + 1) / (n + 2), (worse + 1) / (n + 2)
    difference = up - down
    error = ((up + down - difference**2) / (n + 2)) ** 0.5
    low = max(-1.0, difference - Z * error)
    high = min(1.0, difference + Z * error)
    value = (better - worse) / n
    return min(low, value), max(high, value)


@cache
def detectable(disagreement: float, n: int) -> float | None:
    """The smallest difference of two shares of n paired items that is seen in 80 % of files; None if none is.

    disagreement: the share of items on which the models differ, each as often the better one. A difference d has
    the standard error √((d + disagreement − d²) / n), so that the least one that is seen solves
    d = (z + 0.84) √((d + disagreement − d²) / n) (Connor 1987). McNemar's exact test asks for more
    where items are few: six that differ, at the least.
    """
    factor = (Z + POWER_Z) ** 2 / n
    # The positive root of (1 + factor) d² − factor d − factor · disagreement = 0.
    root = float((factor**2 + 4 * (1 + factor) * factor * disagreement) ** 0.5)
    low, high = (factor + root) / (2 * (1 + factor)), 1 - disagreement
    if low > high or n > FEW_SHARES:
        return None if low > high else low
    if power(high, disagreement, n) < POWER:
        return None
    if power(low, disagreement, n) >= POWER:
        return low
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle, disagreement, n) >= POWER else (middle, high)
    return high


def power(difference: float, disagreement: float, n: int) -> float:
    """The share of files of n paired items in which McNemar's exact test sees a difference of two shares."""
    better = difference + disagreement / 2
    differ = difference + disagreement
    up = better / differ if differ else 0.5
    log_factorial = np.concatenate([[0.0], np.log(np.arange(1, n + 1)).cumsum()])
    # [items that differ, of these the ones on which the better model is right]
    total, k = np.arange(n + 1)[:, None], np.arange(n + 1)
    rest = np.maximum(total - k, 0)
    log_ways = np.where(k <= total, log_factorial[total] - log_factorial[k] - log_factorial[rest], -np.inf)
    fair = np.exp(log_ways - total * log(2))
    p_of_k = 2 * fair[:, ::-1].cumsum(axis=1)[:, ::-1]
    of_k = np.exp(log_ways + k * _log(up) + rest * _log(1 - up))
    seen = (of_k * (p_of_k <= SIGNIFICANT)).sum(axis=1)
    total = total[:, 0]
    log_ways = log_factorial[n] - log_factorial[total] - log_factorial[n - total]
    of_total = np.exp(log_ways + total * _log(differ) + (n - total) * _log(1 - differ))
    return float(of_total @ seen)


def _log(share: float) -> float:
    """The logarithm of a share; finite for 0, so that none times it is 0."""
    return log(max(share, 1e-300))


def mcnemar(better: int, worse: int) -> float:
    """McNemar's exact two-sided p. better, worse: the items on which only one of two models is right. McNemar 1947."""
    total, fewer = better + worse, min(better, worse)
    # Each term follows from the one before it, downwards from the largest; those below 1e-20 of it change no digit.
    ratio = tail = 1.0
    for k in range(fewer, 0, -1):
        ratio *= k / (total - k + 1)
        tail += ratio
        if ratio < NEGLIGIBLE * tail:
            break
    largest = lgamma(total + 1) - lgamma(fewer + 1) - lgamma(total - fewer + 1) - total * log(2)
    return min(1.0, 2 * tail * exp(largest))


def permuted(a: Results, b: Results, names: Sequence[str], resampling: Resampling) -> dict[str, float]:
    """The p-value of each figure by a permutation test: random exchanges of the two models' results, item by item.

    The arrays of both models are joined, a's items before b's, and counts of 0 and 1 choose whose result an item has.
    So the figures after an exchange are computed by the function that computes them for a bootstrap draw.
    """
    figures_from = a.beside(b)
    if figures_from is None or resampling.count < 2:
        return {}
    items = resampling.items
    observed = figures_from(np.repeat([[0.0], [1.0]], items, axis=1))
    # The observed assignment is one of the exchanges, so p is never 0.
    extreme = dict.fromkeys(names, 1)
    total = 1
    step = max(1, NUMBERS // (4 * items))
    for exchanged in resampling.signs(FLIPS):
        kept = 1 - exchanged
        for begin in range(0, len(exchanged), step):
            some = slice(begin, begin + step)
            second = figures_from(kept[some])
            first = figures_from(exchanged[some])
            total += len(kept[some])
            for name in names:
                difference = np.abs(second[name] - first[name])
                least = abs(observed[name][1] - observed[name][0])
                extreme[name] += int((difference >= least - ROUNDING).sum())
    defined = [name for name in names if np.isfinite(observed[name]).all()]
    return {name: extreme[name] / total for name in defined}


def sign_flipped(value: float, left_out: Numbers) -> float | None:
    """The p-value of a difference by flipping the signs of its pseudo-values.

    left_out: the difference without each group of the items [group]. None if it is not defined without one of them.
    """
    if not np.isfinite(left_out).all():
        return None
    groups = len(left_out)
    shares = groups * value - (groups - 1) * left_out
    flips = np.concatenate([*Resampling(groups).signs(FLIPS)])
    sums = np.abs((1 - 2 * flips) @ shares)
    return float((1 + (sums >= abs(shares.sum()) - ROUNDING).sum()) / (1 + FLIPS))


def holm(differences: Sequence[Record]) -> None:
    """Add `p_holm` to comparisons of several models with the first, for each figure by itself. Holm 1979."""
    for metric in dict.fromkeys(difference["metric"] for difference in differences):
        tested = [each for each in differences if each["metric"] == metric and each["p"] is not None]
        largest = 0.0
        for rank, difference in enumerate(sorted(tested, key=lambda each: each["p"])):
            largest = max(largest, min(1.0, (len(tested) - rank) * difference["p"]))
            difference["p_holm"] = largest


def sentence(difference: Record, count: int, unit: str) -> str:
    """Say which of two is better, and by how much, if interval and p both say so; else what could have been seen."""
    metric, a, b = difference["metric"], difference["a"], difference["b"]
    value, low, high = difference["value"], difference["low"], difference["high"]
    p = "" if difference["p"] is None else f", {p_equals(difference['p'])} ({difference['test']})"
    no_difference = f"{a} and {b}: no difference that {count:,} {unit} can show"
    if value is None:
        return f"{no_difference} ({metric} is not defined)."
    if low is None:
        alone = written(difference, signed=True).value
        return f"{no_difference} ({alone} {metric}{p}; no interval: {difference['reason']})."
    outside = low > 0 or high < 0
    shows = outside and difference["p"] is not None and difference["p"] <= SIGNIFICANT
    if shows and (low > 0) == bool(spec_of(metric).less_is_better):
        a, b, difference = b, a, {**difference, "value": -value, "low": -high, "high": -low}
    shown = written(difference, signed=True)
    numbers = f"{shown.value} {metric} {shown.interval}{p}"
    if shows:
        return f"{b} is better: {numbers}."
    seen = difference["smallest"]
    could = "" if seen is None else f" (one of {seen:.2g} {metric} would have been seen)"
    alone = "; the interval leaves out 0, but p is above 0.05" if outside and difference["p"] is not None else ""
    return f"{no_difference}{could}: {numbers}{alone}."


def p_equals(p: float) -> str:
    """Write a p-value in a sentence: "p = 0.012", "p < 0.001"."""
    return f"p {p_of(p)}" if p < SMALLEST_P else f"p = {p_of(p)}"


def p_of(p: float) -> str:
    """A p-value for people."""
    return "< 0.001" if p < SMALLEST_P else f"{p:.3f}"
