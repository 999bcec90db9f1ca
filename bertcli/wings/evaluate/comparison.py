"""Compare two models on the same items: the paired difference of each figure, its interval, its p-value.

* The interval of a difference is paired: both figures are made of the same draws. That of a difference of two shares
  of independent items is Bonett and Price's (2012), which is right also where the models hardly differ.
* p is McNemar's exact test (1947) for such shares. Else it is a permutation test (Fisher 1935; Noreen 1989): if both
  models were as good, their results on an item, or cluster, could be exchanged. p is the share of FLIPS random
  exchanges after which the figures differ as much as they do. With more than MOST_EXCHANGED items each of MOST_GROUPS
  groups of them has the share of the difference that leaving it out shows (a pseudo-value of Tukey 1958), and an
  exchange flips the sign of that: the same for a mean, close for any smooth figure, and a hundredth of the time.
* `smallest` is the difference that would have been seen in 80 % of such files, from the spread of the draws.
* With more than two models each is compared with the first, and p is corrected as Holm (1979) does.
"""

from collections.abc import Mapping, Sequence
from math import exp, lgamma, log

import numpy as np

from bertcli.wings.evaluate.bootstrap import (
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
from bertcli.wings.evaluate.figures import spec_of
from bertcli.wings.evaluate.metrics import Numbers
from bertcli.wings.evaluate.outcome import Results

# Random exchanges of a permutation test: p has a standard error of at most 0.005.
FLIPS = 10_000
# Items up to which they are exchanged one by one: the exchanges of 500 take seconds, those of 5,000 minutes.
MOST_EXCHANGED = 500
# Share of a sum below which a further term changes no digit.
NEGLIGIBLE = 1e-20
# A smaller p is written as "p < 0.001".
SMALLEST_P = 0.001
# The 80 % point of the normal distribution, for a difference that is seen with a power of 80 %.
POWER = 0.8416


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
        record["low"], record["high"], error = bonett_price(better, worse, len(changes))
        p, test, smallest = mcnemar(better, worse), "McNemar", (Z + POWER) * error
    elif min(resampling.count, of_a.n) < FEWEST:
        reason = f"fewer than {FEWEST} items: too few to resample"
    elif not defined.size or np.ptp(defined) <= ROUNDING:
        reason = "the two do not differ on any item"
    else:
        record["low"], record["high"] = percentiles(value, defined, left_out, resampling.count)
        smallest = (Z + POWER) * float(defined.std())
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


def bonett_price(better: int, worse: int, n: int) -> tuple[float, float, float]:
    """The interval of a difference of paired shares, and its standard error. Bonett and Price 2012."""
    # One item is added to each count, as Agresti and Coull do for one share.
    up, down = (better + 1) / (n + 2), (worse + 1) / (n + 2)
    difference = up - down
    error = ((up + down - difference**2) / (n + 2)) ** 0.5
    low = max(-1.0, difference - Z * error)
    high = min(1.0, difference + Z * error)
    value = (better - worse) / n
    return min(low, value), max(high, value), error


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
    """Say which of two is better, and by how much, if the interval leaves out 0; else what could have been seen."""
    metric, a, b = difference["metric"], difference["a"], difference["b"]
    value, low, high = difference["value"], difference["low"], difference["high"]
    p = "" if difference["p"] is None else f", {p_equals(difference['p'])} ({difference['test']})"
    no_difference = f"{a} and {b}: no difference that {count:,} {unit} can show"
    if value is None:
        return f"{no_difference} ({metric} is not defined)."
    if low is None:
        return f"{no_difference} ({value:+.3f} {metric}; no interval: {difference['reason']})."
    shows = low > 0 or high < 0
    if shows and (low > 0) == bool(spec_of(metric).less_is_better):
        a, b, value, low, high = b, a, -value, -high, -low
    numbers = f"{value:+.3f} {metric} [{low:+.3f}, {high:+.3f}]{p}"
    if shows:
        return f"{b} is better: {numbers}."
    seen = difference["smallest"]
    could = "" if seen is None else f" (one of {seen:.2g} {metric} would have been seen)"
    return f"{no_difference}{could}: {numbers}."


def p_equals(p: float) -> str:
    """Write a p-value in a sentence: "p = 0.012", "p < 0.001"."""
    return f"p {p_of(p)}" if p < SMALLEST_P else f"p = {p_of(p)}"


def p_of(p: float) -> str:
    """A p-value for people."""
    return "< 0.001" if p < SMALLEST_P else f"{p:.3f}"
