"""Intervals cover what they say: simulated data whose true figures are known, again and again (marked large).

Of every figure: on at least four shapes of data 92 to 98 % of the intervals hold the true value, on none fewer than
90 %, always within the simulation's own error, and the figure itself always lies inside. Data sets in which a figure
has no interval do not count: then the report says why, and a figure that never has one (`ece`) is not asked for.

`python tests/wings/evaluate/test_coverage.py` prints the coverage of every figure and shape.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from bertcli.statistics import metrics
from bertcli.statistics.intervals import FigureFacts, Resampling, estimate
from bertcli.statistics.label_figures import multi_label_figures, single_label_figures, sums_of, without_rare_labels
from bertcli.wings.evaluate.comparison import SIGNIFICANT, bonett_price, detectable, mcnemar
from bertcli.wings.evaluate.evaluators.bertscore import score_facts
from bertcli.wings.evaluate.evaluators.classification import multi_label_facts, single_label_facts
from bertcli.wings.evaluate.evaluators.masked import mask_facts, mask_figures, token_facts, token_loss
from bertcli.wings.evaluate.evaluators.similarity import correlation_facts, correlations, pair_facts, pair_figures
from bertcli.wings.evaluate.evaluators.tagging import figures as tag_figures
from bertcli.wings.evaluate.evaluators.tagging import type_facts
from bertcli.wings.evaluate.outcome import mean_facts, mean_figures

Random = np.random.Generator
Arrays = list[Any]
REPEATS = 200
FEWER_REPEATS = 80  # of data sets of MANY texts, which take most of the time; few texts are what intervals fail on
MANY = 400
TRUE_ITEMS = 200_000  # of which the true figures are made
ENOUGH = 60  # intervals, for a coverage
NEVER = {"ece", "best_f1_threshold", "best_accuracy", "loss_sum", "pearson_dot"}  # figures that have no interval


class Family(NamedTuple):
    """Figures of one evaluator, and the shapes of data that they are tried on: a size, and what makes arrays of it."""

    figures_from: Callable[..., metrics.Figures]
    facts: Callable[..., FigureFacts]
    columns: Sequence[str]
    shapes: dict[str, tuple[int, Callable[[Random, int], Arrays]]]


def classified(prior: Sequence[float], apart: float, sharpness: float) -> Callable[[Random, int], Arrays]:
    """Labels with these shares; logits of the true one are higher by `apart`, probabilities those of sharper ones."""
    count = len(prior)

    def make(random: Random, n: int) -> Arrays:
        true = random.choice(count, size=n, p=prior)
        logits = sharpness * (random.normal(size=(n, count)) + apart * np.eye(count)[true])
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        return [p, metrics.one_hot(p.argmax(axis=1), count), metrics.one_hot(true, count)]

    return make


def several(rates: Sequence[float], recall: float) -> Callable[[Random, int], Arrays]:
    """Labels of which a text may have several, at these rates; each is found with this recall, and wrongly at times."""

    def make(random: Random, n: int) -> Arrays:
        true = random.random((n, len(rates))) < rates
        wrong = random.random(true.shape) < np.array(rates) / 2
        found = np.where(true, random.random(true.shape) < recall, wrong).astype(float)
        return [found, found, true.astype(float)]

    return make


def even(count: int) -> Callable[[Random, int], Arrays]:
    """Equally frequent labels, seven in ten found right."""

    def make(random: Random, n: int) -> Arrays:
        true = random.integers(count, size=n)
        found = np.where(random.random(n) < 0.7, true, random.integers(count, size=n))
        return [np.zeros((n, count)), metrics.one_hot(found, count), metrics.one_hot(true, count)]

    return make


# Shares of the labels of GoEmotions, roughly.
GO_EMOTIONS = (
    *(0.1, 0.06, 0.05, 0.05, 0.05, 0.05, 0.045, 0.04, 0.035, 0.03, 0.03, 0.03, 0.03, 0.027, 0.025, 0.024, 0.02, 0.02),
    *(0.017, 0.017, 0.015, 0.014, 0.008, 0.007, 0.006, 0.004, 0.003, 0.002),
)


def paired(share: float, apart: float) -> Callable[[Random, int], Arrays]:
    def make(random: Random, n: int) -> Arrays:
        labels = (random.random(n) < share).astype(float)
        return [labels, random.normal(size=n) + apart * labels]

    return make


def correlated(correlation: float, steps: bool = False) -> Callable[[Random, int], Arrays]:
    def make(random: Random, n: int) -> Arrays:
        scores, noise = random.normal(size=(2, n))
        truth = correlation * scores + np.sqrt(1 - correlation**2) * noise
        return [np.clip(np.round(truth + 2.5), 0, 5) if steps else truth, scores, scores + random.normal(size=n)]

    return make


def tagged(recall: float, precision: float, rates: Sequence[float]) -> Callable[[Random, int], Arrays]:
    """Entities of each type at these rates a sentence, found with this recall and precision."""

    def make(random: Random, n: int) -> Arrays:
        there = random.poisson(rates, size=(n, len(rates)))
        right = random.binomial(there, recall)
        wrong = random.poisson(np.array(rates) * recall * (1 - precision) / precision, size=there.shape)
        return [right.astype(float), (right + wrong).astype(float), there.astype(float)]

    return make


def covering(hidden: float, whole: float, rate: float) -> Callable[[Random, int], Arrays]:
    """Characters of entities, some a sentence: an entity is hidden whole, in part, or not at all.

    hidden: how many are hidden. whole: how many of these are hidden whole. rate: entities a sentence.
    """

    def make(random: Random, n: int) -> Arrays:
        of_text = np.repeat(np.arange(n), random.poisson(rate, size=n))
        count = len(of_text)
        sizes = random.integers(2, 20, size=count)
        parts = np.where(random.random(count) < whole, 1.0, random.random(count))
        hidden_letters = np.where(random.random(count) < hidden, np.rint(sizes * parts), 0)
        letters = np.bincount(of_text, sizes, minlength=n)
        return [np.bincount(of_text, hidden_letters, minlength=n), letters]

    return make


def covered_alone(columns: Sequence[str], counts: metrics.Numbers, *arrays: metrics.Numbers) -> metrics.Figures:
    """The share of hidden characters, of the evaluator's figures."""
    entities = np.ones((len(arrays[0]), 1))
    return {"covered": tag_figures(("A",), counts, entities, entities, entities, *arrays)["covered"]}


def covered_facts(columns: Sequence[str], *arrays: metrics.Numbers) -> FigureFacts:
    """The evaluator's facts."""
    entities = np.ones((len(arrays[0]), 1))
    return type_facts(("A",), entities, entities, entities, *arrays)


MEANS = ("ndcg@10", "map@10", "mrr@10", "recall@10", "precision@10", "accuracy@1", "f1", "mean_difference")


def ranked(found: float) -> Callable[[Random, int], Arrays]:
    """Queries whose relevant document has a geometric rank; answers that share some words; differences of scores."""

    def make(random: Random, n: int) -> Arrays:
        rank = random.geometric(found, size=n)
        in_ten = rank <= 10
        relevant = random.integers(1, 6, size=n)
        recall = random.binomial(relevant, min(0.95, found + 0.2)) / relevant
        f1 = np.where(random.random(n) < found, 1, random.beta(1, 3, size=n))
        return [
            np.stack(
                [
                    np.where(in_ten, 1 / np.log2(rank + 1), 0), np.where(in_ten, 1 / rank, 0) * recall,
                    np.where(in_ten, 1 / rank, 0), recall, random.binomial(10, found / 2, size=n) / 10,
                    rank == 1, f1, random.gamma(2, size=n) - 1,
                ],
                axis=1,
            )
        ]  # fmt: skip

    return make


def heavy(often: float) -> Callable[[Random, int], Arrays]:
    """Losses that are small but for a share of texts, whose losses are eighty times as large."""

    def make(random: Random, n: int) -> Arrays:
        rank = random.geometric(0.5, size=n)
        large = random.random(n) < often
        loss = np.where(large, random.gamma(4, 2, size=n), random.gamma(1, 0.1, size=n))
        return [np.stack([rank <= 5, 1 / rank, loss], axis=1)]

    return make


def similar(empty: float) -> Callable[[Random, int], Arrays]:
    """BERTScores that hardly vary, but for a share of rows without tokens, which score 0."""

    def make(random: Random, n: int) -> Arrays:
        scores = np.clip(random.normal(0.9, 0.03, size=(n, 3)), 0, 1)
        scores[random.random(n) < empty] = 0
        return [scores]

    return make


def masked(known: float) -> Callable[[Random, int], Arrays]:
    def make(random: Random, n: int) -> Arrays:
        rank = random.geometric(known, size=n)
        loss = random.gamma(2, (1 - known) + 0.2, size=n)
        return [np.stack([rank <= 5, 1 / rank, loss], axis=1)]

    return make


def scored(spread: float) -> Callable[[Random, int], Arrays]:
    def make(random: Random, n: int) -> Arrays:
        tokens = random.integers(5, 30, size=n).astype(float)
        return [tokens * random.lognormal(0.5, spread, size=n), tokens, np.zeros(n)]

    return make


def sums_apart(columns: Sequence[str], *arrays: Any) -> FigureFacts:
    """A sum has no interval; losses are looked at below the number of texts from which they have one, too."""
    return replace(token_facts(columns, *arrays), losses=())


def of_their_labels(facts: Callable[..., FigureFacts]) -> Callable[..., FigureFacts]:
    """Take as many names as a shape has labels."""
    return lambda columns, *arrays: facts(columns[: arrays[-1].shape[1]], *arrays)


FAMILIES = {
    "classification": Family(
        single_label_figures, of_their_labels(single_label_facts), ("a", "b", "c"),
        {
            "balanced, 30": (30, classified([0.5, 0.5], 1.5, 1.5)),
            "unbalanced, 100": (100, classified([0.85, 0.15], 1.5, 1.0)),
            "near 1, 100": (100, classified([0.8, 0.2], 3.2, 3.0)),
            "three labels, 100": (100, classified([1 / 3] * 3, 1.5, 1.0)),
            "near 0, 30": (30, classified([0.5, 0.5], -1.2, 1.0)),
            "balanced, 400": (400, classified([0.5, 0.5], 1.5, 1.0)),
            "nearly certain, 30": (30, classified([0.8, 0.2], 3.2, 3.0)),
            "nearly certain, 50": (50, classified([0.5, 0.5], 3.2, 3.0)),
            "overconfident, 50": (50, classified([0.5, 0.5], 1.5, 6.0)),
        },
    ),
    "several labels": Family(
        multi_label_figures, of_their_labels(multi_label_facts),
        tuple(map(str, range(28))),
        {
            "28 labels, 3000": (3000, several(GO_EMOTIONS, 0.6)),
            "six labels, 600": (600, several([0.3, 0.2, 0.1, 0.05, 0.02, 0.012], 0.6)),
            "six labels, 100": (100, several([0.3, 0.2, 0.15, 0.15, 0.12, 0.1], 0.6)),
            "near 1, 100": (100, several([0.3, 0.2, 0.2], 0.95)),
        },
    ),
    "many labels": Family(
        lambda columns, counts, p, *arrays: {"macro_f1": sums_of(counts, *arrays).averages()["macro_f1"]},
        of_their_labels(
            lambda columns, p, *arrays: FigureFacts(
                no_interval=without_rare_labels(columns, *arrays), bias_corrected=("macro_f1",)
            )
        ),
        tuple(map(str, range(77))),
        {"77 labels, 1500": (1500, even(77)), "30 labels, 1000": (1000, even(30)), "30 labels, 1600": (1600, even(30))},
    ),
    "pairs": Family(
        pair_figures, pair_facts, (),
        {
            "balanced, 30": (30, paired(0.5, 1.5)),
            "unbalanced, 100": (100, paired(0.2, 1.5)),
            "near 1, 100": (100, paired(0.2, 3.0)),
            "weak, 100": (100, paired(0.5, 0.3)),
            "balanced, 400": (400, paired(0.5, 1.5)),
        },
    ),
    "sts": Family(
        correlations, correlation_facts, (),
        {
            "middle, 30": (30, correlated(0.6)),
            "steps, 100": (100, correlated(0.7, steps=True)),
            "near 1, 100": (100, correlated(0.95)),
            "near 0, 100": (100, correlated(0.05)),
            "middle, 400": (400, correlated(0.6)),
        },
    ),
    "tag": Family(
        tag_figures, type_facts, ("A", "B"),
        {
            "middle, 30": (30, tagged(0.7, 0.75, (1.0, 0.5))),
            "rare type, 100": (100, tagged(0.7, 0.7, (1.0, 0.15))),
            "near 1, 100": (100, tagged(0.96, 0.97, (1.0, 0.8))),
            "nearly certain, 30": (30, tagged(0.97, 0.98, (1.0, 0.3))),
            "near 0, 100": (100, tagged(0.2, 0.3, (1.0, 0.5))),
            "middle, 400": (400, tagged(0.7, 0.75, (1.0, 0.5))),
        },
    ),
    "covered": Family(
        covered_alone, covered_facts, (),
        {
            "middle, 30": (30, covering(0.7, 0.8, 1.5)),
            "often, 50": (50, covering(0.9, 0.95, 2.0)),
            "near 1, 100": (100, covering(0.96, 0.97, 1.5)),
            "near 1, 400": (400, covering(0.97, 0.97, 1.5)),
            "near 0, 100": (100, covering(0.2, 0.5, 1.0)),
            "middle, 400": (400, covering(0.7, 0.8, 1.5)),
        },
    ),
    "means": Family(
        mean_figures, mean_facts, MEANS,
        {
            "middle, 30": (30, ranked(0.4)),
            "near 1, 100": (100, ranked(0.85)),
            "near 0, 100": (100, ranked(0.1)),
            "middle, 100": (100, ranked(0.5)),
            "middle, 400": (400, ranked(0.4)),
        },
    ),
    "bertscore": Family(
        mean_figures, score_facts, ("f1", "precision", "recall"),
        {
            "none empty, 100": (100, similar(0)),
            "3 % empty, 100": (100, similar(0.03)),
            "5 % empty, 100": (100, similar(0.05)),
            "3 % empty, 200": (200, similar(0.03)),
            "10 % empty, 400": (400, similar(0.1)),
        },
    ),
    "fill-mask": Family(
        mask_figures, mask_facts, ("accuracy@5", "mrr", "loss"),
        {
            "middle, 30": (30, masked(0.4)),
            "near 1, 100": (100, masked(0.8)),
            "near 0, 100": (100, masked(0.1)),
            "middle, 100": (100, masked(0.3)),
            "middle, 400": (400, masked(0.4)),
            "heavy tails, 50": (50, heavy(0.05)),
            "heavy tails, 100": (100, heavy(0.05)),
        },
    ),
    "score": Family(
        token_loss, sums_apart, (),
        {
            "even, 30": (30, scored(0.4)),
            "even, 100": (100, scored(0.4)),
            "skewed, 100": (100, scored(0.7)),
            "skewed, 400": (400, scored(0.7)),
        },
    ),
}  # fmt: skip


class SameDraws(Resampling):
    """Draws that are made once for all data sets of a size: they are the same each time."""

    def __init__(self, items: int, clusters: metrics.Whole | None = None) -> None:
        super().__init__(items, clusters)
        self._kept = [*super().draws()]

    def draws(self) -> Iterator[metrics.Numbers]:
        return iter(self._kept)


class Coverage(NamedTuple):
    """How many data sets gave an interval, how many of these held the true figure, and the value itself."""

    given: int
    held: int
    inside: int

    @property
    def share(self) -> float:
        return self.held / self.given

    @property
    def error(self) -> float:
        """2.6 standard errors of a share of 93 % of so many."""
        return float(2.6 * np.sqrt(0.93 * 0.07 / self.given))


def coverages(family: Family, shape: str, repeats: int | None = None) -> dict[str, Coverage]:
    """The coverage of each figure on data of one shape."""
    n, make = family.shapes[shape]
    if repeats is None:
        repeats = FEWER_REPEATS if n >= MANY else REPEATS
    random = np.random.default_rng(sum(map(ord, shape)))
    whole = [make(random, TRUE_ITEMS) for _ in range(3)]
    once = np.ones((1, TRUE_ITEMS))
    true = [family.figures_from(family.columns, once, *arrays) for arrays in whole]
    counts = {name: [0, 0, 0] for name in true[0]}
    expected = {name: np.mean([some[name][0] for some in true]) for name in counts}
    resampling = SameDraws(n)
    for _ in range(repeats):
        arrays = make(random, n)
        facts = family.facts(family.columns, *arrays)
        figures = estimate(
            lambda some, arrays=arrays: family.figures_from(family.columns, some, *arrays),  # type: ignore[misc]
            facts, resampling, "texts",
        )  # fmt: skip
        for name, figure in figures.items():
            if figure.low is not None and figure.high is not None:
                counts[name][0] += 1
                counts[name][1] += int(figure.low - 1e-9 <= expected[name] <= figure.high + 1e-9)
                counts[name][2] += int(figure.low <= figure.value <= figure.high)
    return {name: Coverage(*some) for name, some in counts.items()}


@pytest.mark.large
@pytest.mark.parametrize("name", FAMILIES)
def test_intervals_hold_the_true_figure_as_often_as_they_say(name: str) -> None:
    family = FAMILIES[name]
    of_shapes = {shape: coverages(family, shape) for shape in family.shapes}
    for figure in {figure for some in of_shapes.values() for figure in some} - NEVER:
        found = {shape: some[figure] for shape, some in of_shapes.items() if some[figure].given >= ENOUGH}
        assert all(one.inside == one.given for one in found.values()), figure
        right = [shape for shape, one in found.items() if 0.92 - one.error <= one.share <= 0.98 + one.error]
        assert len(right) >= min(4, len(found)), (figure, {shape: one.share for shape, one in found.items()})
        assert len(found) >= 3, (figure, "has too few intervals")
        for shape, one in found.items():
            assert one.share >= 0.90 - one.error, (figure, shape, one.share)


@pytest.mark.large
def test_clusters_cover_where_independent_texts_would_not() -> None:
    """30 authors of ten texts each, alike in how often they are judged right."""
    random = np.random.default_rng(48)
    clusters = np.repeat(np.arange(30), 10)
    held = {True: 0, False: 0}
    resamplings = {True: SameDraws(300, clusters), False: SameDraws(300)}
    for _ in range(REPEATS):
        right = (random.random(300) < np.repeat(random.beta(2, 1, 30), 10)).astype(float)
        for clustered in (True, False):
            figure = estimate(
                lambda some, right=right: {"accuracy": metrics.mean(right, some)},  # type: ignore[misc]
                FigureFacts({"accuracy": right}), resamplings[clustered], "texts",
            )["accuracy"]  # fmt: skip
            assert figure.low is not None
            assert figure.high is not None
            held[clustered] += figure.low <= 2 / 3 <= figure.high
    assert held[True] / REPEATS > 0.92 - 0.05
    assert held[False] / REPEATS < 0.85


@pytest.mark.large
def test_clusters_of_uneven_sizes_cover_too() -> None:
    """Thirty authors, of whom the first wrote half the texts: as many as nine even ones."""
    sizes = np.maximum(1, 60 // np.arange(1, 31))
    clusters = np.repeat(np.arange(30), sizes)
    random = np.random.default_rng(50)
    resampling, held = SameDraws(len(clusters), clusters), 0
    for _ in range(2 * REPEATS):
        values = random.normal(size=len(clusters)) + np.repeat(random.normal(size=30) / 2, sizes)
        figure = estimate(
            lambda some, values=values: {"mrr": metrics.mean(values, some)},  # type: ignore[misc]
            FigureFacts(), resampling, "texts",
        )["mrr"]  # fmt: skip
        assert figure.low is not None
        assert figure.high is not None
        held += figure.low <= 0 <= figure.high
    assert held / (2 * REPEATS) >= 0.92


@pytest.mark.large
@pytest.mark.parametrize(("n", "disagreement"), [(20, 0.0), (40, 0.0), (50, 0.1), (150, 0.2), (400, 0.1), (2000, 0.3)])
def test_a_difference_that_would_have_been_seen_is_seen_in_80_percent_of_files(n: int, disagreement: float) -> None:
    """By interval and p together, as the sentence asks."""
    d = detectable(disagreement, n)
    assert d is not None
    shares = [d + disagreement / 2, disagreement / 2, 1 - d - disagreement]
    random = np.random.default_rng(n)
    seen = 0
    for better, worse, _ in random.multinomial(n, shares, size=2000):
        low, _ = bonett_price(int(better), int(worse), n)
        seen += low > 0 and mcnemar(int(better), int(worse)) <= SIGNIFICANT
    assert 0.77 <= seen / 2000 <= 0.84


def test_figures_without_an_interval_have_none() -> None:
    """That `ece` and the like have none is what the simulation above relies on; one data set shows it."""
    for name, shape in (("classification", "balanced, 400"), ("pairs", "balanced, 400")):
        found = coverages(FAMILIES[name], shape, repeats=1)
        assert {figure for figure, one in found.items() if not one.given} == NEVER & {*found}


if __name__ == "__main__":
    for name in sys.argv[1:] or FAMILIES:
        for shape in FAMILIES[name].shapes:
            found = coverages(FAMILIES[name], shape)
            cells = (f"{figure} {one.share:.1%} of {one.given}" for figure, one in found.items() if one.given)
            print(f"{name}, {shape}: {'; '.join(cells)}", flush=True)
