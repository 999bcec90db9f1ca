"""What a report says of its own figures: intervals that can be one, clusters, differences, where all comes from."""

import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json, read_json_lines, write_json
from helpers.recorded import recorded
from helpers.terminal import bertcli
from safetensors.numpy import load_file, save_file
from wings.evaluate.test_tasks import judged, lines

import bertcli as library
from bertcli.statistics import label_figures
from bertcli.statistics.intervals import Resampling, estimate
from bertcli.statistics.metrics import Figures
from bertcli.wings.evaluate.comparison import FLIPS, differences, permuted
from bertcli.wings.evaluate.evaluators import masked, similarity, tagging
from bertcli.wings.evaluate.figures import figures as all_figures
from bertcli.wings.evaluate.outcome import Outcome, Results, mean_figures, means_of

DATA = Path(__file__).parents[2] / "data"
REVIEWS = DATA / "reviews.csv"
RECORDED = recorded("evaluate.json")


def reviews(count: int) -> list[dict[str, Any]]:
    """Texts that the bundled classifier labels right."""
    texts = ["I loved every minute.", "A wonderful film.", "It was terrible.", "A boring, awful mess."]
    labels = ["positive", "positive", "negative", "negative"]
    return [{"text": f"{texts[i % 4]} {i}", "label": labels[i % 4]} for i in range(count)]


def test_six_texts_of_six_are_no_certainty(tmp_path: Path) -> None:
    record = judged(lines(tmp_path / "data.jsonl", reviews(6)))
    figures = record["models"][0]["metrics"]
    assert figures["accuracy"] == {"value": 1, "low": pytest.approx(0.6097, abs=1e-4), "high": 1, "n": 6}
    assert (figures["accuracy@50%"]["n"], figures["accuracy@50%"]["low"]) == (3, pytest.approx(0.4385, abs=1e-4))
    for name in ("macro_f1", "weighted_f1", "mcc"):
        assert (figures[name]["low"], figures[name]["high"]) == (None, None)
    assert figures["weighted_f1"]["reason"] == "fewer than 10 texts: too few to resample"
    assert figures["mcc"]["reason"] == "no text is wrong, so resampling shows no errors"
    rare = "2 labels are rare ('negative': fewer than 5 texts), and such an F1 reads too low and jumps"
    assert figures["macro_f1"]["reason"].startswith(rare)
    assert "fewer than 5 texts are wrong" in figures["brier"]["reason"]


def test_one_text_has_no_interval_and_numbers_agree_with_nouns(tmp_path: Path) -> None:
    file = lines(tmp_path / "data.jsonl", reviews(1))
    figures = judged(file)["models"][0]["metrics"]
    assert all(figure["low"] is None and figure["n"] in (0, 1) for figure in figures.values())
    assert figures["accuracy"]["reason"] == "of fewer than two texts nothing can be told about others"
    printed = bertcli("evaluate", file).out
    assert "\n1 text.\n" in printed
    assert "95 % confidence interval" not in printed, "none has one"
    assert "data.jsonl, 1 row, BLAKE2b" in printed


def test_one_label_alone_has_no_correlation(tmp_path: Path) -> None:
    rows = [row for row in reviews(60) if row["label"] == "positive"]
    printed = bertcli("evaluate", lines(tmp_path / "data.jsonl", rows)).out
    assert "No interval for mcc: only one label is true, so there is nothing to correlate." in printed


def test_every_value_lies_in_its_interval_and_has_its_count() -> None:
    record = judged(REVIEWS, "--by", "about")
    (model,) = record["models"]
    groups = [model["metrics"], *model["by"].values()]
    assert len(groups) == 4
    for figures in groups:
        for figure in figures.values():
            assert figure["n"] > 0
            if figure["low"] is None:
                assert figure["reason"]
            else:
                assert figure["low"] <= figure["value"] <= figure["high"]
                assert "reason" not in figure
    assert model["by"]["film"]["accuracy"]["n"] == 14


def test_recall_of_a_label_has_an_interval() -> None:
    positive = judged(REVIEWS)["models"][0]["labels"][1]
    assert positive["recall"] == 0.75
    assert (positive["recall_low"], positive["recall_high"]) == (
        pytest.approx(0.5313, abs=1e-4),
        pytest.approx(0.8881, abs=1e-4),
    )


def test_texts_that_belong_together_are_drawn_together(tmp_path: Path) -> None:
    """Each text four times: as many texts say no more than a quarter of them, but clusters know it."""
    rows = [{"text": row["text"], "label": row["label"], "author": i} for i, row in enumerate(csv_rows())]
    file = lines(tmp_path / "data.jsonl", [row for row in rows for _ in range(4)])
    once = judged(lines(tmp_path / "once.jsonl", rows), "--cluster", "author")
    naive, clustered = judged(file), judged(file, "--cluster", "author")
    assert (clustered["count"], clustered["clusters"]) == (160, 40)
    assert naive["clusters"] is None

    def width(record: dict[str, Any], name: str) -> float:
        figure = record["models"][0]["metrics"][name]
        return float(figure["high"] - figure["low"])

    for name in ("accuracy", "macro_f1", "brier"):
        assert width(clustered, name) == pytest.approx(width(once, name), rel=1e-6)
        assert width(clustered, name) > 1.7 * width(naive, name)
    left = bertcli("evaluate", file)
    assert (
        "160 rows share 40 values of 'author': if rows with one value belong together, add --cluster author" in left.err
    )
    told = bertcli("evaluate", file, "--cluster", "author")
    assert "add --cluster" not in told.err
    assert "160 texts of 40 clusters, which are drawn together" in told.out
    assert "has no field 'writer' (--cluster)" in bertcli("evaluate", file, "--cluster", "writer").error


def csv_rows() -> list[dict[str, str]]:
    import csv

    with REVIEWS.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def test_rows_that_repeat_a_text_are_noted(tmp_path: Path) -> None:
    rows = [{"text": row["text"], "label": row["label"]} for row in csv_rows()]
    hint = "repeat a text, and intervals take rows as independent"
    for data, expected in (
        (rows * 3, f"80 of 120 rows {hint}: --cluster text keeps the intervals honest."),
        (rows + rows[:3], f"3 of 43 rows {hint}: --cluster text keeps"),
    ):
        assert expected in bertcli("evaluate", lines(tmp_path / "data.jsonl", data)).err
    file = lines(tmp_path / "data.jsonl", rows * 3)
    assert hint not in bertcli("evaluate", file, "--cluster", "text").err
    clustered = judged(file, "--cluster", "text")["models"][0]["metrics"]["macro_f1"]
    once = judged(lines(tmp_path / "once.jsonl", rows), "--cluster", "text")["models"][0]["metrics"]["macro_f1"]
    assert (clustered["low"], clustered["high"]) == pytest.approx((once["low"], once["high"]))
    assert hint not in bertcli("evaluate", lines(tmp_path / "data.jsonl", [*rows, rows[0]])).err, "one in forty"
    # A text that two people judged otherwise is no repeated row; two rows of lines have no field to name.
    assert hint not in bertcli("evaluate", lines(tmp_path / "data.jsonl", judged_twice(rows))).err
    texts = tmp_path / "texts.txt"
    texts.write_text("The tea is hot.\nA dog sat.\nThe tea is hot.\n", encoding="utf-8")
    told = bertcli("evaluate", texts, "--task", "score").err
    assert "1 of 3 rows repeats a text, and intervals take rows as independent: leave them out." in told


def judged_twice(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    other = {"positive": "negative", "negative": "positive"}
    return [*rows, *({"text": row["text"], "label": other[row["label"]]} for row in rows[:5])]


def test_documents_and_paragraphs_are_clusters(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "data.conll"
    file.write_text("-DOCSTART- O\n\nParis B-LOC\n\nRome B-LOC\n\n-DOCSTART- O\n\nTea O\n")
    folder = made(head="token_classifier", id2label={0: "O", 1: "B-LOC"})
    assert "add --cluster document" in bertcli("evaluate", file, "-m", folder).err
    assert judged(file, "-m", folder, "--cluster", "document")["clusters"] == 2
    assert (
        "with -DOCSTART- lines there is --cluster document"
        in bertcli("evaluate", file, "-m", folder, "--cluster", "x").error
    )
    questions = [{"id": str(i), "question": "Who drinks?", "answers": [{"text": "The king"}]} for i in range(3)]
    paragraphs = [{"context": "The king drinks.", "qas": questions[:2]}, {"context": "The king!", "qas": questions[2:]}]
    squad = tmp_path / "data.json"
    write_json(squad, {"data": [{"title": "kings", "paragraphs": paragraphs}]})
    assert "several questions are about one paragraph" in bertcli("evaluate", squad, "-m", made(head="qa")).err
    assert judged(squad, "-m", made(head="qa"), "--cluster", "context")["clusters"] == 2
    text = tmp_path / "data.txt"
    text.write_text("It rained.\n")
    for option in ("--by", "--cluster"):
        assert f"{option} needs one: leave it out." in bertcli("evaluate", text, option, "x").error


# --------------------------------------------------------------------------------------------------------- differences


def pairs_file(folder: Path) -> Path:
    rows = read_json_lines(DATA / "paraphrases.jsonl")[:40]
    shuffled = [
        {"sentence1": row["text"], "sentence2": rows[(i + i % 2) % 40]["paraphrase"], "label": 1 - i % 2}
        for i, row in enumerate(rows)
    ]
    return lines(folder / "pairs.jsonl", shuffled)


def test_a_permutation_test_exchanges_two_models_results(tmp_path: Path) -> None:
    models = ("-m", "bert-mini-mlm", "-m", "bert-mini-sentence")
    record = judged(pairs_file(tmp_path), *models, "--task", "pairs")
    by_metric = {one["metric"]: one for one in record["differences"]}
    assert [*by_metric] == ["average_precision", "best_f1", "best_accuracy"], "a threshold is neither better nor worse"
    for one in by_metric.values():
        assert (one["test"], one["n"]) == ("permutation", 40)
        assert 0 < one["p"] <= 1


def results_of(values: Any, metric: str = "mrr") -> Results:
    outcome = Outcome(
        "m", **means_of({metric: values}), usable=np.ones(10, bool), badness=values, expected=[], found=[]
    )
    return Results(outcome, np.arange(10))


def test_the_interval_of_a_skewed_mean_is_shifted_to_its_long_side() -> None:
    """By the acceleration of Efron 1987, which of a mean is the skewness of its items over 6 √n; written out here."""
    values = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.2, 0.5, 0.95])
    outcome = results_of(values)
    (figure,) = estimate(outcome.figures, outcome.facts, Resampling(10), "texts").values()
    centered = values - values.mean()
    acceleration = (centered**3).sum() / (6 * (centered**2).sum() ** 1.5)
    assert acceleration > 0.05
    reach = (10 / 9) ** 0.5 * 2.262157  # Student's t with 9 degrees of freedom
    shares = [NormalDist().cdf(z / (1 - acceleration * z)) for z in (-reach, reach)]
    assert (figure.low, figure.high) == pytest.approx(np.quantile(figure.drawn, shares).tolist(), abs=0.005)


@pytest.mark.parametrize("metric", ["mrr", "log_loss"])
def test_ahead_is_the_share_of_draws_in_which_the_second_model_is_better(metric: str) -> None:
    """The second has less in every item: of a loss that is better, of a rank worse."""
    random = np.random.default_rng(8)
    values = random.random(10)
    first, second = results_of(values, metric), results_of(values - 0.1 - random.random(10), metric)
    resampling = Resampling(10)
    of_first, of_second = (estimate(one.figures, one.facts, resampling, "texts") for one in (first, second))
    (found,) = differences(first, of_first, second, of_second, resampling)
    assert found["value"] < 0
    assert found["ahead"] == (metric == "log_loss")


def test_p_of_a_mean_is_the_share_of_sign_flips_that_differ_as_much() -> None:
    random = np.random.default_rng(5)
    a, b = random.random(10), random.random(10) + 0.2
    signs = np.array([[1 - 2 * (flips >> i & 1) for i in range(10)] for flips in range(1024)])
    differences = np.abs((signs * (b - a)).mean(axis=1))
    exact = (differences >= abs((b - a).mean()) - 1e-12).mean()
    found = permuted(results_of(a), results_of(b), ["mrr"], Resampling(10))
    assert 0.02 < exact < 0.9
    assert found["mrr"] == pytest.approx(exact, abs=3 * np.sqrt(exact * (1 - exact) / FLIPS))


def test_p_of_tags_is_the_share_of_exchanges_that_differ_as_much() -> None:
    """All exchanges of two models' results on eight sentences, with F1 = 2 · right / (found + true) written out."""
    random = np.random.default_rng(12)
    true = random.integers(1, 4, size=8)
    right = np.stack([np.maximum(true - 2, 0), true])
    found = right + random.integers(0, 3, size=(2, 8))
    outcomes = [
        Outcome(
            "m",
            figures_from=tagging.figures,
            arrays=[one[:, np.newaxis].astype(float) for one in (right[model], found[model], true)],
            columns=["LOC"],
            usable=np.ones(8, bool),
            badness=np.zeros(8),
            expected=[],
            found=[],
        )
        for model in (0, 1)
    ]
    a, b = (Results(outcome, np.arange(8)) for outcome in outcomes)
    exchanged = np.array([[flips >> i & 1 for i in range(8)] for flips in range(256)])
    rights, founds = (np.where(exchanged, some[1], some[0]).sum(axis=1) for some in (right, found))
    # Exchanging all but some texts gives the other model's results.
    f1, precision = 2 * rights / (founds + true.sum()), rights / founds
    p = permuted(a, b, ["f1", "precision", "recall"], Resampling(8))
    for name, values in (("f1", f1), ("precision", precision), ("recall", rights / true.sum())):
        apart = np.abs(values - values[::-1])
        exact = (apart >= apart[0] - 1e-12).mean()
        assert p[name] == pytest.approx(exact, abs=3 * np.sqrt(exact * (1 - exact) / FLIPS) + 1 / FLIPS), name


def test_p_of_many_items_is_that_of_their_parts() -> None:
    """Of a mean a part's share of the difference is the mean difference in it: flips of these, written out."""
    random = np.random.default_rng(6)
    a, b = random.random(600), random.random(600) + 0.02
    parts = np.array([(b - a)[part::200].mean() for part in range(200)])
    signs = np.random.default_rng(7).choice([-1, 1], size=(20_000, 200))
    expected = (np.abs((signs * parts).mean(axis=1)) >= abs(parts.mean())).mean()
    outcomes = [
        Outcome("m", **means_of({"mrr": some}), usable=some > -1, badness=some, expected=[], found=[])
        for some in (a, b)
    ]
    first, second = (Results(outcome, np.arange(600)) for outcome in outcomes)
    resampling = Resampling(600)
    of_a, of_b = (estimate(one.figures, one.facts, resampling, "texts") for one in (first, second))
    (found,) = differences(first, of_a, second, of_b, resampling)
    assert 0.02 < expected < 0.9
    assert found["p"] == pytest.approx(expected, abs=0.02)


def test_two_models_with_their_labels_in_another_order_are_compared_by_name(made: Made, tmp_path: Path) -> None:
    """Nothing changes if the labels of the second model stand in another order in its config.json."""
    names = ["joy", "anger", "fear"]
    words = ["tea", "king", "cat", "houses", "milk", "dog", "ran", "hot"]
    rows = [{"text": word, "label": names[i % 3]} for i, word in enumerate(words)]
    file = lines(tmp_path / "data.jsonl", rows * 2)
    first = made(head="classifier", id2label=dict(enumerate(names)), seed=1)
    second = made(head="classifier", id2label=dict(enumerate(names)), seed=2)
    turned = tmp_path / "turned"
    shutil.copytree(second, turned)
    turn_labels(turned)
    expected, found = (judged(file, "-m", first, "-m", other)["differences"] for other in (second, turned))
    assert [one["p"] for one in found] == [one["p"] for one in expected]
    assert [one["value"] for one in found] == pytest.approx([one["value"] for one in expected], abs=1e-6)


def turn_labels(folder: Path) -> None:
    """Put the labels of a classifier in the reverse order, and the rows of its weights with them."""
    config = read_json(folder / "config.json")
    names = [*config["id2label"].values()][::-1]
    config["id2label"] = {str(i): name for i, name in enumerate(names)}
    config["label2id"] = {name: i for i, name in enumerate(names)}
    write_json(folder / "config.json", config)
    tensors = load_file(folder / "model.safetensors")
    for name in ("classifier.weight", "classifier.bias"):
        tensors[name] = np.ascontiguousarray(tensors[name][::-1])
    save_file(tensors, folder / "model.safetensors")


# ---------------------------------------------------------------------------------------------------------- provenance


def test_a_record_says_where_its_figures_come_from(tmp_path: Path) -> None:
    source = judged(REVIEWS, "--by", "about")["provenance"]
    assert source["bertcli"] == library.__version__
    assert source["date"][:2] == "20"
    assert source["command"] == f"bertcli evaluate {REVIEWS} --by about --format json"
    assert source["data"]["rows"] == 40
    (model,) = source["models"]
    assert (model["name"], model["dtypes"], model["computed_in"]) == ("bert-mini-sentiment", ["F16"], "float32")
    assert source["options"] == {"by": "about"}
    assert (source["seed"], source["draws"], source["permutations"]) == (0, 1000, 10_000)
    other = tmp_path / "reviews.csv"
    other.write_bytes(REVIEWS.read_bytes())
    again = judged(other)["provenance"]
    assert again["data"]["digest"] == source["data"]["digest"], "the same content"
    assert again["models"] == source["models"]
    other.write_bytes(REVIEWS.read_bytes().replace(b"film", b"Film", 1))
    assert judged(other)["provenance"]["data"]["digest"] != source["data"]["digest"]


def test_a_file_is_written_in_place_of_the_table_and_said(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    left = bertcli("evaluate", REVIEWS, "-o", page)
    assert left.out == ""
    size = page.stat().st_size
    assert f"Wrote {page} ({size / 1000:.0f} kB)." in left.err
    text = page.read_text()
    assert "stored as F16, computed in float32" in text
    assert f"bertcli evaluate {REVIEWS} -o {page}" in text
    assert "Matthews correlation of true and predicted labels" in text, "figures are explained where they stand"
    assert "<title>13 texts: 0." in text, "counts and intervals in the reliability diagram"


# ---------------------------------------------------------------------------------------------------------- fill-mask


def test_the_loss_is_that_of_the_masked_positions() -> None:
    figures = judged(DATA / "cloze.jsonl")["models"][0]["metrics"]
    rows = read_json_lines(DATA / "cloze.jsonl")
    model = library.load("bert-mini-mlm")
    losses = []
    for row in rows:
        single = [word for word in row["accepted"] if len(model.tokenizer.pieces_of(word)) == 1]
        if single:
            target = row["text"].replace("[MASK]", single[0])
            losses.append(model.score([row["text"]], target=target)[0]["loss"])
    assert figures["loss"]["n"] == len(losses) == 71
    assert figures["loss"]["value"] == pytest.approx(np.mean(losses), abs=1e-5)
    assert figures["perplexity"]["value"] == pytest.approx(np.exp(np.mean(losses)), rel=1e-5)
    assert figures["perplexity"]["n"] == 71
    # The seed's loss: -Σ over the masked positions, of these texts alone, so without an interval.
    sum_of_losses = figures["loss_sum"]
    assert sum_of_losses["value"] == pytest.approx(sum(losses), abs=1e-3)
    assert (sum_of_losses["low"], sum_of_losses["high"], sum_of_losses["n"]) == (None, None, 71)
    assert sum_of_losses["reason"].startswith("a sum over these texts, which grows with their number")


def test_binary_vectors_are_said_to_be_signs() -> None:
    asked = ("evaluate", DATA / "triplets.jsonl", "--dtype", "binary")
    assert "compared as ±1 (Hamming distance); sentence-transformers compares 0 and 1" in bertcli(*asked).err


# ------------------------------------------------------------------------------------------ no figure without numbers


FIGURES_FROM: dict[str, Callable[..., Figures]] = {
    "sts": similarity.correlations,
    "pairs": similarity.pair_figures,
    "classification": label_figures.single_label_figures,
    "tag": tagging.figures,
    "means": mean_figures,
    "fill-mask": masked.mask_figures,
    "score": masked.token_loss,
}


def test_every_figure_has_recorded_numbers() -> None:
    """A new figure needs a case: tests/reference/record_evaluate.py, `figures`."""
    assert {one["figure"] for one in RECORDED["figures"]} == {*all_figures()}


@pytest.mark.parametrize("case", RECORDED["figures"], ids=lambda case: f"{case['made_as']}-{case['name']}")
def test_every_figure_is_the_recorded_number(case: dict[str, Any]) -> None:
    arrays = [np.array(array, float) for array in RECORDED["arrays"][case["made_as"]]]
    columns = RECORDED["columns"][case["made_as"]]
    found = FIGURES_FROM[case["made_as"]](columns, np.ones((1, len(arrays[0]))), *arrays)
    assert found[case["name"]][0] == pytest.approx(case["value"], abs=1e-9)


def test_every_figure_of_a_task_is_explained_in_its_page_and_its_sentence_is_short() -> None:
    for name, spec in all_figures().items():
        assert 10 < len(spec.explanation) <= 90, name
