"""`bertcli evaluate` of a classifier."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json, write_json_lines
from helpers.terminal import bertcli, wrong_usage
from wings.evaluate.test_tasks import judged

import bertcli as library

DATA = Path(__file__).parents[2] / "data"
REVIEWS = DATA / "reviews.csv"


def test_the_record_has_figures_labels_confusion_and_the_worst_texts() -> None:
    left = bertcli("evaluate", REVIEWS, "--format", "json", "--by", "about")
    record = left.json
    assert (record["task"], record["count"], record["left_out"], record["seed"]) == ("classification", 40, 0, 0)
    (model,) = record["models"]
    assert model["metrics"]["accuracy"] == {
        "value": 0.825, "low": pytest.approx(0.680500, abs=1e-6), "high": pytest.approx(0.912546, abs=1e-6), "n": 40,
    }  # fmt: skip
    assert [row["label"] for row in model["labels"]] == ["negative", "positive"]
    assert sum(map(sum, model["confusion"])) == 40
    assert sum(model["confusion"][i][i] for i in range(2)) == 33
    assert len(model["worst"]) == 7
    assert list(model["by"]) == ["film", "food", "product"]
    right = sum(
        model["by"][group]["accuracy"]["value"] * count
        for group, count in (("film", 14), ("food", 12), ("product", 14))
    )
    assert right == pytest.approx(33)


def test_intervals_are_explained_where_a_figure_has_one(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text("text,label\nI loved it.,positive\n")
    alone = bertcli("evaluate", file).out
    assert "none" in alone
    assert "interval: the range" not in alone
    assert bertcli("evaluate", file, "-o", tmp_path / "t.html").out == ""
    page = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert "It does not show whether these texts resemble" in page
    assert "Its interval is" not in page
    assert bertcli("evaluate", file, "-o", tmp_path / "t.svg").status == 0
    assert "95 % intervals" not in (tmp_path / "t.svg").read_text(encoding="utf-8")
    many = bertcli("evaluate", REVIEWS).out
    assert "the model's true accuracy on all texts of this kind may plausibly have, as these 40 texts" in many
    assert bertcli("evaluate", REVIEWS, "-o", tmp_path / "m.html").status == 0
    assert "Its interval is the range" in (tmp_path / "m.html").read_text(encoding="utf-8")
    assert bertcli("evaluate", REVIEWS, "-o", tmp_path / "m.svg").status == 0
    assert "value, with its 95 % interval" in (tmp_path / "m.svg").read_text(encoding="utf-8")


BY_LABEL = """\
 Label      Precision   Recall       F1   Support   Found as
────────────────────────────────────────────────────────────────────────────
 negative      0.7826   0.9000   0.8372        20   negative 18, positive 2
 positive      0.8824   0.7500   0.8108        20   positive 15, negative 5

40 texts.
95 % confidence interval: the range of values that the model's true accuracy on all texts of this kind may"""


@pytest.mark.parametrize("width", ["80", "200", ""])
def test_the_terminal_shows_each_label_and_what_it_was_found_as(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert BY_LABEL in bertcli("evaluate", REVIEWS).out
    assert (
        "| positive | 0.8824 | 0.7500 | 0.8108 | 20 | positive 15, negative 5 |"
        in bertcli("evaluate", REVIEWS, "--format", "markdown").out
    )


def test_many_labels_are_never_cut_in_a_pipe(made: Made, tmp_path: Path) -> None:
    names = {i: f"the label number {i}" for i in range(30)}
    file, folder = tmp_path / "data.jsonl", made(head="classifier", id2label=names)
    rows = [{"text": word, "label": names[i]} for i in names for word in ("tea", "the king", "a cat sat", "houses")]
    write_json_lines(file, rows)
    left = bertcli("evaluate", file, "-m", folder)
    (matrix,) = (model["confusion"] for model in judged(file, "-m", folder)["models"])
    found = np.sort(matrix[0])[::-1]
    line = next(line for line in left.out.splitlines() if line.startswith(f" {names[0]} "))
    assert [int(part.split()[-1]) for part in line.split("   ")[-1].split(", ")] == found[found > 0].tolist()


SEVERAL = {"problem_type": "multi_label_classification"}


@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_several_labels_at_once_are_a_list_or_stand_between_commas(made: Made, tmp_path: Path, ending: str) -> None:
    names = ["joy", "anger", "fear"]
    folder, file = made(head="classifier", id2label=dict(enumerate(names)), config=SEVERAL), tmp_path / f"data.{ending}"
    texts, true = ["The king drinks tea.", "A cat sat.", "It rained."], [["joy", "fear"], [], ["anger"]]
    if ending == "csv":
        lines = [f'{text},"{", ".join(some)}"\n' for text, some in zip(texts, true, strict=True)]
        file.write_text("text,label\n" + "".join(lines))
    else:
        rows = [{"text": text, "labels": some} for text, some in zip(texts, true, strict=True)]
        write_json_lines(file, rows)
    left = bertcli("evaluate", file, "-m", folder, "--format", "json")
    (model,) = left.json["models"]
    records = library.load(folder).classify(texts)
    said = [{entry["label"] for entry in record["labels"] if entry["score"] > 0.5} for record in records]
    right, wrong = (
        sum(len(a & {*b}) for a, b in zip(said, true, strict=True)),
        sum(len(a ^ {*b}) for a, b in zip(said, true, strict=True)),
    )
    assert model["metrics"].keys() == {"macro_f1", "micro_f1", "weighted_f1", "accuracy"}
    assert model["metrics"]["micro_f1"]["value"] == pytest.approx(2 * right / (2 * right + wrong))
    assert model["metrics"]["accuracy"]["value"] == pytest.approx(
        np.mean([a == {*b} for a, b in zip(said, true, strict=True)])
    )
    assert "confusion" not in model
    expected = {text: ", ".join(some) or "none" for text, some in zip(texts, true, strict=True)}
    assert model["worst"]
    assert [one["expected"] for one in model["worst"]] == [expected[one["text"]] for one in model["worst"]]
    assert [row["support"] for row in model["labels"]] == [1, 1, 1]
    file.write_text('{"text": "x", "label": ["joy", "envy"]}\n') if ending == "jsonl" else file.write_text(
        "text,label\nx,envy\n"
    )
    assert "line 1: the label 'envy' is not one of this model's" in bertcli(
        "evaluate", file, "-m", folder
    ).error.replace("line 2", "line 1")


def test_a_list_of_labels_is_none_for_a_model_that_chooses_one(tmp_path: Path) -> None:
    file = tmp_path / "data.jsonl"
    file.write_text('{"text": "x", "label": ["positive", "negative"]}\n')
    assert "line 1: there is more than one label, and this model chooses one" in bertcli("evaluate", file).error


def test_a_bound_ends_with_status_1(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    left = bertcli("evaluate", REVIEWS, "--at-least", "accuracy=0.9", "-o", file)
    assert left.status == 1
    assert left.err.endswith("Error: accuracy of bert-mini-sentiment is 0.8250, less than 0.9 (--at-least).\n")
    assert read_json(file)["count"] == 40, "the record is written all the same"
    assert bertcli("evaluate", REVIEWS, "--at-least", "accuracy=0.825").status == 0, "33 of 40 are as many as asked for"


BOUNDS = {
    "classification": (REVIEWS, "accuracy, macro_f1, micro_f1, weighted_f1, mcc, ece, brier, log_loss, accuracy@50%"),
    "triplets": (DATA / "triplets.jsonl", "accuracy."),
    "fill-mask": (DATA / "cloze.jsonl", "accuracy@1, accuracy@5, accuracy@10, mrr"),
}


@pytest.mark.parametrize("task", BOUNDS)
def test_a_bound_of_an_unknown_figure_is_refused_before_any_work(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file, known = BOUNDS[task]
    monkeypatch.setattr("bertcli.model.Model.load", None)  # no model is opened
    why = f"there is no figure 'foo' for {task}; choose from {known}"
    wrong_usage("evaluate", file, "--at-least", "foo=1", why=why)


def test_a_bound_may_be_of_a_type_of_entities(made: Made, tmp_path: Path) -> None:
    file, folder = tmp_path / "data.conll", made(head="token_classifier", id2label={0: "O", 1: "B-LOC"})
    file.write_text("Paris B-LOC\n")
    assert bertcli("evaluate", file, "-m", folder, "--at-least", "f1:LOC=0").status == 0
    why = "choose from f1, precision, recall, macro_f1, covered, accuracy, f1:LOC."
    wrong_usage("evaluate", file, "-m", folder, "--at-least", "f1:PER=0", why=why)


def test_a_bound_of_what_is_better_when_less(tmp_path: Path) -> None:
    assert bertcli("evaluate", REVIEWS, "--at-least", "log_loss=0.5").status == 0
    left = bertcli("evaluate", REVIEWS, "--at-least", "log_loss=0.4", "-o", tmp_path / "record.json")
    assert left.status == 1
    assert left.err.endswith("Error: log_loss of bert-mini-sentiment is 0.4080, more than 0.4 (--at-least).\n")
    for bound in ("nan", "inf"):
        why = "--at-least: give one figure and the least it may be"
        wrong_usage("evaluate", REVIEWS, "--at-least", f"accuracy={bound}", why=why)


STARS = {0: "1 star", 1: "2 stars", 2: "10 stars"}
PLAIN = {0: "bad", 1: "good", 2: "so-so"}
RANGES = {0: "0 to 3", 1: "4 to 6", 2: "7 to 9"}


def test_a_number_in_the_data_is_a_position_unless_the_labels_are_numbers(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    for labels, number, meant in (
        (PLAIN, 0, "bad"), (PLAIN, 2, "so-so"), (STARS, 1, "1 star"), (STARS, 2, "2 stars"), (STARS, 10, "10 stars"),
        ({0: "LABEL_1", 1: "LABEL_0"}, 1, "LABEL_1"),
    ):  # fmt: skip
        file.write_text(f"text,label\nThe king drinks tea.,{number}\n")
        folder = made(head="classifier", id2label=labels)
        left = bertcli("evaluate", file, "-m", folder, "--format", "json")
        assert f"the label {number} in the data is taken for {meant!r}" in left.err
        (row,) = [row for row in left.json["models"][0]["labels"] if row["support"]]
        assert row["label"] == meant
    for labels, number in ((PLAIN, 3), (STARS, 0), (STARS, 3), (RANGES, 0), (RANGES, 1)):
        file.write_text(f"text,label\nThe king drinks tea.,{number}\n")
        error = bertcli("evaluate", file, "-m", made(head="classifier", id2label=labels)).error
        assert f"line 2: the label '{number}' is not one of this model's" in error
    file.write_text("text,label\nThe king drinks tea.,good\n")
    assert "is taken for" not in bertcli("evaluate", file, "-m", made(head="classifier", id2label=PLAIN)).err
