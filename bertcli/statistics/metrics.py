"""The figures by hand: each a function of arrays, and of counts [draw, item] of how often an item is in each draw.

One draw with every item once gives the figure; draws with replacement give its interval (intervals.py). So each figure
is written once, and what is resampled is what is reported. Results are [draw]; NaN where a figure is not defined.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Whole = NDArray[np.intp]
Figures = dict[str, Numbers]
Gains = Sequence[Sequence[float]]
# Of confidence, in the calibration error.
BINS = 15
# Of simulated answers that are held at a time: 8 MiB.
NUMBERS = 1 << 20
# A variance below this share of the squared range is rounding.
SPREAD = 1e-12


def ratio(part: Any, whole: Any) -> Numbers:
    """part / whole, and 0 where whole is 0: what scikit-learn takes where a figure would be 0 / 0."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    result = np.zeros(part.shape)
    np.divide(part, whole, out=result, where=whole != 0)
    return result


def mean(values: Numbers, counts: Numbers) -> Numbers:
    """Σ c·x / Σ c"""
    return ratio(counts @ values, counts.sum(axis=1))


def means(names: Sequence[str], counts: Numbers, *columns: Numbers) -> Figures:
    """The mean of each column [item] over the items where it is a number; NaN over none."""
    found = {}
    for name, values in zip(names, columns, strict=True):
        known = np.isfinite(values)
        number = counts @ known
        total = counts @ np.where(known, values, 0)
        found[name] = np.where(number > 0, ratio(total, number), np.nan)
    return found


# ------------------------------------------------------------------------------------------------------- correlations


def pearson(x: Numbers, y: Numbers, counts: Numbers) -> Numbers:
    """cov(x, y) / (std(x) · std(y)) of x and y, [item] or [draw, item]; NaN where one of them does not vary.

    Pearson 1895; scipy.stats.pearsonr.
    """
    total = counts.sum(axis=1, keepdims=True)
    shares = ratio(counts, total)

    def centered(values: Numbers) -> Numbers:
        # To the range from 0 to 1 first, since large values with little spread would lose their digits.
        low, high = values.min(), values.max()
        values = (values - low) / (high - low if high > low else 1)
        means = (shares * values).sum(axis=1, keepdims=True)
        return np.asarray(values - means)

    x, y = centered(x), centered(y)
    covariance, variance_x, variance_y = (
        np.einsum("di,di->d", shares * one, other) for one, other in ((x, y), (x, x), (y, y))
    )
    both_vary = (variance_x > SPREAD) & (variance_y > SPREAD)
    correlations = ratio(covariance, np.sqrt(variance_x * variance_y))
    return np.where(both_vary, correlations, np.nan).clip(-1, 1)


def spearman(x: Numbers, y: Numbers, counts: Numbers) -> Numbers:
    """Pearson's correlation of ranks; equal values share the mean of their ranks.

    Spearman 1904; scipy.stats.spearmanr.
    """
    return pearson(ranks(x, counts), ranks(y, counts), counts)


def ranks(values: Numbers, counts: Numbers) -> Numbers:
    """Of each item its rank within each draw [draw, item]: those below it, and half of those equal to it and one."""
    _, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    begins = np.searchsorted(group[order], np.arange(group.max(initial=-1) + 1))
    equal = counts.take(order, axis=1)
    if len(begins) < len(values):
        equal = np.add.reduceat(equal, begins, axis=1)
    of_groups = equal.cumsum(axis=1)  # those below, and equal ones
    of_groups -= (equal - 1) / 2
    return np.asarray(of_groups.take(group, axis=1))


# ---------------------------------------------------------------------------------------------------- two classes


class Cuts(NamedTuple):
    """Counts of items above each distinct score, highest first: the scores [cut], true and all items [draw, cut]."""

    scores: Numbers
    right: Numbers
    taken: Numbers

    @classmethod
    def of(cls, scores: Numbers, labels: Numbers, counts: Numbers) -> "Cuts":
        """From scores and labels, 1 or 0 [item]."""
        order = np.argsort(-scores, kind="stable")
        descending = scores[order]
        # The last item of each run of equal scores: no cut lies between equal ones.
        ends = np.flatnonzero(np.append(np.diff(descending) != 0, True))
        weights = counts[:, order]
        right = (weights * labels[order]).cumsum(axis=1)
        taken = weights.cumsum(axis=1)
        return cls(descending[ends], right[:, ends], taken[:, ends])

    @property
    def curve(self) -> tuple[Numbers, Numbers]:
        """Recall and precision at each cut [draw, cut]."""
        return ratio(self.right, self.right[:, -1:]), ratio(self.right, self.taken)

    @property
    def figures(self) -> Figures:
        """Of all cuts, and of the best.

        average precision Σ (R_n − R_{n−1}) · P_n over the cuts n, 0 where nothing is true: scikit-learn's
        average_precision_score. Of sentence-transformers' BinaryClassificationEvaluator the largest F1 = 2 · right /
        (taken + true), with the score half-way to the next below its cut, and the largest share of items on their side
        of a cut, or with nothing above it.
        """
        scores, right, taken = self
        recall, precision = self.curve
        true, total = right[:, -1:], taken[:, -1:]
        gained = np.diff(recall, axis=1, prepend=0)
        f1 = ratio(2 * right, taken + true)
        # The lowest score has no next one.
        next_scores = np.append(scores[1:], scores[-1])
        thresholds = (scores + next_scores) / 2
        false = total - true
        # True items above the cut and false ones below it; with nothing above it, all false ones.
        correct = np.maximum(2 * right - taken + total - true, false)
        return {
            "average_precision": (gained * precision).sum(axis=1),
            "best_f1": f1.max(axis=1),
            "best_f1_threshold": thresholds[f1.argmax(axis=1)],
            "best_accuracy": ratio(correct.max(axis=1), total[:, 0]),
        }


# ------------------------------------------------------------------------------------------------------------- labels


def one_hot(values: Whole, size: int) -> Numbers:
    """A row for each value with 1 in its place [item, size]."""
    return np.asarray(values[:, None] == np.arange(size), np.float64)


class Sums(NamedTuple):
    """Counts of each label: found where it is true, found, and true [draw, label]; 0 / 0 is 0.

    precision = right / found, recall = right / true, F1 = 2 · right / (found + true): van Rijsbergen 1979;
    scikit-learn's precision_recall_fscore_support.
    """

    right: Numbers
    found: Numbers
    true: Numbers

    @property
    def scores(self) -> tuple[Numbers, Numbers, Numbers]:
        """Precision, recall and F1."""
        right, found, true = self
        return ratio(right, found), ratio(right, true), ratio(2 * right, found + true)

    @property
    def together(self) -> "Sums":
        """The sums over all labels, as if they were one [draw]: what is called micro."""
        return Sums(self.right.sum(axis=1), self.found.sum(axis=1), self.true.sum(axis=1))

    def averages(self) -> Figures:
        """F1 over labels: the mean (macro) of those that occur, that of all counts (micro), that weighted by support.

        A label that is neither true nor found has no F1. scikit-learn leaves it out where an item has one label, and
        where it may have several if `labels` names the others.
        """
        _, _, f1 = self.scores
        _, _, micro_f1 = self.together.scores
        occurs = self.found + self.true > 0
        macro_f1 = ratio(f1.sum(axis=1), occurs.sum(axis=1))
        weighted_f1 = ratio((f1 * self.true).sum(axis=1), self.true.sum(axis=1))
        return {"macro_f1": macro_f1, "micro_f1": micro_f1, "weighted_f1": weighted_f1}

    def by_label(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """The figures of each label that occurs in the first draw; support: how often it is true."""
        precision, recall, f1 = (score[0].tolist() for score in self.scores)
        rows = []
        for label, name in enumerate(names):
            support = self.true[0, label]
            if support + self.found[0, label] > 0:
                rows.append(
                    {
                        "label": name,
                        "precision": precision[label],
                        "recall": recall[label],
                        "f1": f1[label],
                        "support": int(support),
                    }
                )
        return rows

    @property
    def mcc(self) -> Numbers:
        """(c·s − Σ p_k t_k) / √((s² − Σ p_k²)(s² − Σ t_k²)) of s items, c right, p_k found and t_k true; 0 / 0 is 0.

        Gorodkin 2004; scikit-learn's matthews_corrcoef.
        """
        right, found, true = self
        total = true.sum(axis=1)
        covariance = right.sum(axis=1) * total - (found * true).sum(axis=1)
        spread_found = total**2 - (found**2).sum(axis=1)
        spread_true = total**2 - (true**2).sum(axis=1)
        return ratio(covariance, np.sqrt(spread_found * spread_true))


class Calibration(NamedTuple):
    """Sums [draw, bin] over BINS equal bins of confidence, each with its upper end."""

    items: Numbers
    confidence: Numbers
    right: Numbers


def calibration(confidence: Numbers, right: Numbers, counts: Numbers) -> Calibration:
    """Sum confidence and right ones, 1 or 0 [item], by bin."""
    bins = _bins(confidence)
    items = counts @ bins
    summed_confidence = counts @ (bins * confidence[:, None])
    summed_right = counts @ (bins * right[:, None])
    return Calibration(items, summed_confidence, summed_right)


def _bins(confidence: Numbers) -> Numbers:
    """1 in the bin of each confidence [item, bin]; 0 is in the first bin, too."""
    numbers = np.ceil(confidence * BINS).astype(np.intp) - 1
    return one_hot(np.clip(numbers, 0, BINS - 1), BINS)


def ece(confidence: Numbers, right: Numbers, counts: Numbers) -> Numbers:
    """Expected calibration error: Σ_bin n_bin / n · |accuracy − mean confidence|. Guo et al. 2017."""
    bins = calibration(confidence, right, counts)
    gaps = np.abs(bins.right - bins.confidence)
    return ratio(gaps.sum(axis=1), bins.items.sum(axis=1))


def chance_ece(confidence: Numbers, draws: int = 1000) -> float:
    """The 95th percentile of the error of a model whose confidence is exactly how often it is right (seeded)."""
    generator = np.random.default_rng(0)
    bins = _bins(confidence)
    gaps = []
    step = max(1, NUMBERS // max(1, len(confidence)))
    for begin in range(0, draws, step):
        right = generator.random((min(step, draws - begin), len(confidence))) < confidence
        gaps.append(np.abs((right - confidence) @ bins).sum(axis=1) / len(confidence))
    return float(np.percentile(np.concatenate(gaps), 95))


def brier(probabilities: Numbers, true: Numbers) -> Numbers:
    """Of each item Σ_k (p_k − y_k)², and half of it for two labels; y is 1 for the true one, else 0.

    Brier 1950; scikit-learn's brier_score_loss.
    """
    squares = ((probabilities - true) ** 2).sum(axis=1)
    return np.asarray(squares / (2 if probabilities.shape[1] == 2 else 1))


def log_loss(probabilities: Numbers, true: Numbers) -> Numbers:
    """Of each item −ln p of the true label, which counts as at least 2.2e-16. scikit-learn's log_loss."""
    least = np.finfo(np.float64).eps
    return np.asarray(-np.log((probabilities * true).sum(axis=1).clip(least, 1 - least)))


def covered_accuracy(confidence: Numbers, right: Numbers, counts: Numbers, percents: Sequence[int]) -> list[Numbers]:
    """Accuracy on the most confident shares of the items; of equally confident ones each counts as their mean.

    El-Yaniv and Wiener 2010 (risk and coverage).
    """
    cuts = Cuts.of(confidence, right, counts)
    # A curve of right ones over taken ones, which begins at none.
    taken = np.pad(cuts.taken, [(0, 0), (1, 0)])
    correct = np.pad(cuts.right, [(0, 0), (1, 0)])
    figures = []
    for percent in percents:
        covered = taken[:, -1] * percent / 100
        figures.append(ratio(_heights(taken, correct, covered), covered))
    return figures


def _heights(x: Numbers, y: Numbers, at: Numbers) -> Numbers:
    """Of each curve of lines between points x, y [draw, point], x not descending, its y at one x [draw]: np.interp."""
    last = x.shape[1] - 1
    left = np.count_nonzero(x <= at[:, None], axis=1) - 1
    ends = np.minimum(np.stack([left, left + 1]), last)
    (x_left, x_right), (y_left, y_right) = (np.take_along_axis(some, ends.T, axis=1).T for some in (x, y))
    return np.asarray(y_left + ratio(y_right - y_left, x_right - x_left) * (at - x_left))


# ------------------------------------------------------------------------------------------------------------ rankings


def ranking(found: Gains, known: Gains, cutoffs: Sequence[int]) -> Figures:
    """Of each query [query] the figures at ranks k, from gains in the order found, and all that there are.

        nDCG = Σ_{i≤k} gain_i / log2(i + 1), divided by the same of the best order        Järvelin and Kekäläinen 2002
        MAP = Σ_{i≤k, relevant} (relevant among the first i) / i, divided by all relevant
        MRR = 1 / rank of the first relevant, 0 beyond k;   recall = found / all relevant;   precision = found / k

    A document is relevant if its gain is above 0. As in trec_eval, whose recip_rank has no k; BEIR's has.
    """
    depth = max(cutoffs)
    gains = _padded(found, depth)
    best = _padded([sorted(of_query, reverse=True) for of_query in known], depth)
    ranks = np.arange(1, depth + 1)
    relevant = gains > 0
    hits = relevant.cumsum(axis=1)
    total = np.array([[sum(gain > 0 for gain in of_query)] for of_query in known])
    discounts = np.log2(ranks + 1)
    dcg = (gains / discounts).cumsum(axis=1)
    ideal_dcg = (best / discounts).cumsum(axis=1)
    figures = {
        "ndcg": ratio(dcg, ideal_dcg),
        "map": ratio((relevant * hits / ranks).cumsum(axis=1), total),
        "mrr": np.maximum.accumulate(relevant / ranks, axis=1),
        "recall": ratio(hits, total),
        "precision": hits / ranks,
    }
    return {f"{name}@{k}": values[:, k - 1] for k in cutoffs for name, values in figures.items()}


def _padded(gains: Gains, depth: int) -> Numbers:
    """The first gains of each query [query, depth], none below 0, with zeros behind the last."""
    rows = []
    for of_query in gains:
        first = list(of_query[:depth])
        rows.append(first + [0.0] * (depth - len(first)))
    return np.maximum(rows, 0.0)
