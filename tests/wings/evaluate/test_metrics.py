"""The figures are those of the reference libraries on the same numbers: `tests/reference/record_evaluate.py`."""

import time
from math import comb
from typing import Any

import numpy as np
import pytest
from helpers.near import assert_near
from helpers.recorded import recorded

from bertcli.files.search import similarities
from bertcli.statistics import metrics
from bertcli.statistics.intervals import DRAWS, Figure, FigureFacts, Resampling, Share, estimate, wilson
from bertcli.statistics.label_figures import LIKELY, multi_label_figures, single_label_figures
from bertcli.tasks.parts.label_schemes import EntitySpan, LabelSet, entities
from bertcli.wings.evaluate.comparison import bonett_price, detectable, differences, holm, mcnemar, sentence
from bertcli.wings.evaluate.evaluators.answers import exact_match, f1
from bertcli.wings.evaluate.evaluators.classification import label_details, single_label_details
from bertcli.wings.evaluate.evaluators.ranking import in_order
from bertcli.wings.evaluate.evaluators.similarity import pair_figures
from bertcli.wings.evaluate.evaluators.tagging import count_by_type, figures
from bertcli.wings.evaluate.outcome import Outcome, Results, means_of

RECORDED = recorded("evaluate.json")
Case = dict[str, Any]


def once(count: int) -> metrics.Numbers:
    """Counts of one draw with every item once."""
    return np.ones((1, count))


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(expected, float), rtol=0, atol=1e-9)


def read_entities(tags: str, scheme: str) -> set[EntitySpan]:
    """The entities of tags with a space between."""
    names = tags.split()
    labels = LabelSet(names, all_are_tags=True)
    return entities([labels.tags[name] for name in names], scheme)


@pytest.mark.parametrize("case", RECORDED["correlations"])
def test_correlations_are_those_of_scipy(case: Case) -> None:
    x, y = np.array(case["x"]), np.array(case["y"])
    close(metrics.spearman(x, y, once(len(x))), case["spearman"])  # None is NaN: one of them does not vary
    close(metrics.pearson(x, y, once(len(x))), case["pearson"])


@pytest.mark.parametrize("case", RECORDED["binary"])
def test_pairs_are_judged_as_scikit_learn_and_sentence_transformers_do(case: Case) -> None:
    scores, labels = np.array(case.pop("scores")), np.array(case.pop("labels"), float)
    found = pair_figures((), once(len(scores)), labels, scores)
    for name, value in case.items():
        close(found[name], value)


@pytest.mark.parametrize("case", RECORDED["classification"])
def test_labels_are_judged_as_by_scikit_learn(case: Case) -> None:
    probabilities, true = np.array(case["probabilities"]), np.array(case["true"])
    names = [str(i) for i in range(probabilities.shape[1])]
    arrays = [probabilities, *(metrics.one_hot(labels, len(names)) for labels in (probabilities.argmax(axis=1), true))]
    found = single_label_figures(names, once(len(true)), *arrays)
    details = single_label_details(names, *arrays)
    for name, value in case["figures"].items():
        close(found[name], value)
    for row in details.labels:
        expected = [values[int(row["label"])] for values in case["by_label"]]
        close([row["precision"], row["recall"], row["f1"], row["support"]], expected)
    occurring = [int(row["label"]) for row in details.labels]
    assert details.confusion == np.array(case["confusion"])[np.ix_(occurring, occurring)].tolist()


@pytest.mark.parametrize("case", RECORDED["several"])
def test_several_labels_at_once_are_judged_as_by_scikit_learn(case: Case) -> None:
    p, true = np.array(case["probabilities"]), np.array(case["true"], float)
    names = [str(i) for i in range(p.shape[1])]
    arrays = p, np.asarray(p > LIKELY, float), true
    found = multi_label_figures(names, once(len(p)), *arrays)
    assert found.keys() == case["figures"].keys()
    for name, value in case["figures"].items():
        close(found[name], value)
    rows = label_details(names, *arrays).labels
    assert [row["label"] for row in rows] == ["0", "1", "2", "3", "4"], "the last is never true and never found"
    for row in rows:
        expected = [values[int(row["label"])] for values in case["by_label"]]
        close([row["precision"], row["recall"], row["f1"], row["support"]], expected)


def test_vectors_are_compared_as_by_sentence_transformers() -> None:
    case = RECORDED["similarities"]
    x, y = np.array(case["x"], np.float32), np.array(case["y"], np.float32)
    for how, expected in case["found"].items():
        assert_near(similarities(x, y, how), expected, 1e-6)
        one = similarities(x[:, None], y[:3, None], how)[:, 0, 0]
        assert_near(one, np.diagonal(expected), 1e-6)


@pytest.mark.parametrize("case", RECORDED["tags"], ids=lambda case: case["scheme"])
def test_entities_are_those_of_seqeval_in_strict_mode(case: Case) -> None:
    true, said = ([read_entities(tags, case["scheme"]) for tags in case[side]] for side in ("true", "said"))
    types = ["LOC", "PER"]
    both = [a & b for a, b in zip(true, said, strict=True)]
    arrays = (count_by_type(some, types) for some in (both, said, true))
    found = figures(types, once(len(true)), *arrays)
    close([found["precision"][0], found["recall"][0], found["f1"][0]], case["micro"])
    close(found["macro_f1"][0], case["macro"][2])
    close([found[f"f1:{kind}"][0] for kind in types], case["None"][2])


def test_last_and_unit_are_end_and_single() -> None:
    for tags in ("B-PER L-PER O U-LOC", "B-PER E-PER O S-LOC"):
        assert read_entities(tags, "BIOES") == {("PER", 0, 2), ("LOC", 3, 4)}


def test_rankings_are_judged_as_by_trec_eval() -> None:
    case = RECORDED["rankings"]
    names = {"ndcg_cut": "ndcg", "map_cut": "map", "recall": "recall", "P": "precision"}
    for query, expected in case["found"].items():
        gains = case["qrels"][query]
        order = [gains.get(id, 0) for id, _ in in_order(case["run"][query])]
        found = metrics.ranking([order], [[*gains.values()]], (1, 3, 10, 100))
        for name, value in expected.items():
            measure, _, k = name.rpartition("_")
            close(found["mrr@100" if name == "recip_rank" else f"{names[measure]}@{k}"], value)


@pytest.mark.parametrize("case", RECORDED["answers"], ids=lambda case: repr(case["answer"]))
def test_answers_are_judged_as_by_squad_s_script(case: Case) -> None:
    close(exact_match(case["answer"], case["truth"]), case["exact"])
    close(f1(case["answer"], case["truth"]), case["f1"])


# ------------------------------------------------------------------------------------- own definitions, and intervals


def test_calibration_error_is_the_mean_gap_of_fifteen_bins() -> None:
    confidence, right = np.array([0.95, 0.95, 0.61, 0.61]), np.array([1.0, 0.0, 1.0, 1.0])
    close(metrics.ece(confidence, right, once(4)), (2 * 0.45 + 2 * 0.39) / 4)
    at_the_edge = np.array([1 / 15, 1 / 15 + 1e-9])  # a bin holds its upper end
    items, *_ = metrics.calibration(at_the_edge, right[:2], once(2))
    assert items[0, :2].tolist() == [1, 1]


def test_accuracy_at_coverage_takes_the_most_confident_and_shares_ties() -> None:
    confidence, right = np.array([0.9, 0.8, 0.8, 0.7, 0.6]), np.array([1.0, 1.0, 0.0, 0.0, 0.0])
    found = metrics.covered_accuracy(confidence, right, once(5), (20, 40, 60))
    close(np.concatenate(found), [1, (1 + 0.5) / 2, 2 / 3])


def test_a_figure_of_a_draw_is_that_of_its_items_written_out() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=30).round(1), random.normal(size=30).round(1)
    labels = (random.random(30) < 0.4).astype(float)
    counts = random.integers(0, 4, size=(5, 30)).astype(float)
    for row in counts:
        some = np.repeat(np.arange(30), row.astype(int))
        alone = once(len(some))
        for figure in (metrics.spearman, metrics.pearson):
            close(figure(x, y, row[None]), figure(x[some], y[some], alone))
        true, chosen = metrics.one_hot(labels.astype(int), 2), metrics.one_hot((y < 0).astype(int), 2)
        for figures_from, *arrays in (
            (pair_figures, labels, x),
            (single_label_figures, np.stack([y, -y], 1), chosen, true),
        ):
            of_counts = figures_from((), row[None], *arrays)
            of_items = figures_from((), alone, *(array[some] for array in arrays))
            for name in of_items.keys() - {"best_f1_threshold"}:  # half-way to an item that is not in the draw
                close(of_counts[name], of_items[name])


@pytest.mark.parametrize("case", RECORDED["wilson"])
def test_the_interval_of_a_share_is_wilson_s(case: Case) -> None:
    close(wilson(Share(case["right"], case["of"])), case["interval"])


@pytest.mark.parametrize("case", RECORDED["mcnemar"])
def test_paired_shares_are_tested_as_scipy_does(case: Case) -> None:
    close(mcnemar(case["better"], case["worse"]), case["p"])


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(3).normal(size=400)
    figures = estimate(
        lambda counts: {"mean": metrics.mean(values, counts)}, FigureFacts({"mean": values}), Resampling(400), "texts"
    )
    record = figures["mean"].record
    reach = 1.966 * values.std(ddof=1) / 20
    assert record["low"] == pytest.approx(values.mean() - reach, abs=0.015)
    assert record["high"] == pytest.approx(values.mean() + reach, abs=0.015)


def test_a_figure_has_an_interval_if_it_is_defined_in_95_percent_of_the_draws() -> None:
    values = np.arange(20.0)
    resampling = Resampling(20)

    def with_undefined(draws: int) -> Figure:
        """The mean's figure, not defined in the first `draws` of the draws."""

        def figures_from(counts: metrics.Numbers) -> metrics.Figures:
            means = metrics.mean(values, counts)
            if len(counts) == DRAWS:
                means[:draws] = np.nan
            return {"mean": means}

        return estimate(figures_from, FigureFacts(), resampling, "texts")["mean"]

    with_interval, without = with_undefined(50), with_undefined(51)
    assert with_interval.low is not None
    assert with_interval.high is not None
    assert with_interval.low < 9.5 < with_interval.high
    assert not with_interval.reason
    assert (without.low, without.high) == (None, None)
    assert with_undefined(260).reason == "not defined in 26% of the resamples"


def test_few_items_decide_no_mean_and_no_difference_against_p() -> None:
    """99 and 100 losses; two systems whose interval leaves out 0 though p does not bear it out."""
    for items, given in ((99, False), (100, True)):
        values = np.random.default_rng(2).gamma(2, size=items)
        one = estimate(
            lambda counts, values=values: {"loss": metrics.mean(values, counts)},  # type: ignore[misc]
            FigureFacts({"loss": values}, losses=("loss",)), Resampling(items), "texts",
        )["loss"]  # fmt: skip
        assert (one.low is not None) == given
        assert one.reason == ("" if given else "fewer than 100 texts: a few decide the mean, and may be missing here")
    random = np.random.default_rng(20)
    contradicted = 0
    for _ in range(20):
        values = np.clip(random.normal(0.9, 0.02, size=(2, 20)), 0, 1)
        values[0, :2] = 0
        models = [Results(means(name, of_model), np.arange(20)) for name, of_model in zip("ab", values, strict=True)]
        of_models = [estimate(model.figures, model.facts, Resampling(20), "texts") for model in models]
        (difference,) = differences(models[0], of_models[0], models[1], of_models[1], Resampling(20))
        if difference["p"] > 0.05 and difference["low"] is None:
            contradicted += 1
            assert difference["reason"] == "resampling leaves out 0, but p is above 0.05"
            said = sentence(difference, 20, "texts")
            assert said.startswith("a and b: no difference that 20 texts can show (+0.")
            assert said.endswith("no interval: resampling leaves out 0, but p is above 0.05).")
        elif difference["low"] is not None:
            assert difference["low"] <= 0 or difference["p"] <= 0.05
    assert contradicted


def means(name: str, values: Any) -> Outcome:
    nothing = np.zeros(len(values))
    return Outcome(
        name=name, **means_of({"mrr@10": values}), usable=nothing == 0, badness=nothing, expected=[], found=[]
    )


def figure(value: float, low: float | None = None, high: float | None = None) -> Figure:
    return Figure(value, np.full(DRAWS, value), 9, low, high)


def compared(a: str, b: str, value: float, reach: float, metric: str = "accuracy") -> Case:
    return {
        "metric": metric, "a": a, "b": b, "value": value, "low": value - reach, "high": value + reach, "p": 0.0123,
        "test": "permutation", "smallest": 0.0341,
    }  # fmt: skip


def test_which_of_two_is_better_is_said_by_the_interval() -> None:
    assert sentence(compared("old", "new", 0.2, 0.1), 9, "texts") == (
        "new is better: +0.20 accuracy [+0.10, +0.30], p = 0.012 (permutation)."
    )
    assert sentence(compared("new", "old", -0.2, 0.1), 9, "texts") == (
        "new is better: +0.20 accuracy [+0.10, +0.30], p = 0.012 (permutation)."
    )
    for less in ("loss", "perplexity", "pseudo_perplexity", "log_loss", "brier", "ece"):
        assert sentence(compared("old", "new", 0.2, 0.1, less), 9, "texts").startswith(
            f"old is better: -0.20 {less} [-0.30, -0.10]"
        )
    assert sentence(compared("old", "new", 0.02, 0.1, "ndcg@10"), 200, "queries") == (
        "old and new: no difference that 200 queries can show (one of 0.034 ndcg@10 would have been seen): "
        "+0.02 ndcg@10 [-0.08, +0.12], p = 0.012 (permutation)."
    )


def test_models_that_hardly_differ_have_an_interval_all_the_same() -> None:
    """Bonett and Price 2012: shares with one item more in each of four cells."""
    assert bonett_price(0, 0, 40) == pytest.approx([-0.0660, 0.0660], abs=1e-4)
    low, high = bonett_price(12, 0, 120)
    assert low < 0.1 < high


def test_the_difference_that_would_be_seen_brings_a_spread_of_its_own() -> None:
    """(z + 0.84)² (d + disagreement − d²) / n = d², raised where McNemar's exact test needs more."""
    for disagreement, n in ((0.0, 1000), (0.1, 1000), (0.3, 400)):
        d = detectable(disagreement, n)
        assert d is not None
        assert 2.8016**2 * (d + disagreement - d**2) / n == pytest.approx(d**2, rel=1e-3)
    # Six that differ, all better, are the fewest with p below 0.05: by binomial(40, d).
    d = detectable(0.0, 40)
    assert d == pytest.approx(0.1905, abs=1e-3)
    assert d is not None
    fewer = sum(comb(40, k) * d**k * (1 - d) ** (40 - k) for k in range(6))
    assert 1 - fewer == pytest.approx(0.8, abs=1e-3)
    assert detectable(0.0, 5) is None, "five texts show nothing"
    assert detectable(0.3, 10) is None


def test_better_is_said_only_where_interval_and_p_both_say_so() -> None:
    said = compared("old", "new", 0.12, 0.11) | {"p": 0.07, "test": "McNemar"}
    assert sentence(said, 50, "texts") == (
        "old and new: no difference that 50 texts can show (one of 0.034 accuracy would have been seen): "
        "+0.12 accuracy [+0.01, +0.23], p = 0.070 (McNemar); the interval leaves out 0, but p is above 0.05."
    )
    assert sentence(said | {"p": 0.05}, 50, "texts").startswith("new is better")
    assert "no difference" in sentence(said | {"p": None}, 50, "texts")
    assert "no difference" in sentence(compared("old", "new", 0.02, 0.1) | {"p": 0.01}, 50, "texts")


def test_several_comparisons_are_corrected_as_holm_does() -> None:
    some: list[Case] = [{"metric": "f1", "p": p} for p in (0.04, 0.01, 0.03)]
    holm(some)
    assert [one["p_holm"] for one in some] == pytest.approx([0.06, 0.03, 0.06])


def test_a_million_differing_items_take_no_time() -> None:
    """A sum of whole binomials takes minutes for so many."""
    begun = time.perf_counter()
    assert mcnemar(499_000, 501_000) == pytest.approx(0.0456083, abs=1e-6)
    assert time.perf_counter() - begun < 1
