"""`bertcli evaluate` of a classifier."""

import json
from pathlib import Path

import pytest
from helpers.terminal import bertcli

REVIEWS = Path(__file__).parent.parent / "data" / "reviews.csv"


def test_a_file_of_labels_says_its_task_and_gets_figures_with_intervals() -> None:
    left = bertcli("evaluate", REVIEWS)
    assert left.status == 0
    assert "the task is classification: its fields are 'text', 'label'" in left.err
    assert "accuracy       0.8250   [0.7000, 0.9250]" in left.out
    assert "40 texts" in left.out


def test_the_record_has_figures_labels_confusion_and_the_worst_texts() -> None:
    left = bertcli("evaluate", REVIEWS, "--format", "json", "--by", "about")
    record = json.loads(left.out)
    assert (record["task"], record["count"], record["left_out"], record["seed"]) == ("classification", 40, 0, 0)
    (model,) = record["models"]
    assert model["metrics"]["accuracy"] == {"value": 0.825, "low": 0.7, "high": 0.925}
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


def test_two_models_get_a_paired_difference() -> None:
    left = bertcli("evaluate", REVIEWS, "-m", "bert-mini-sentiment", "-m", "bert-mini-sentiment")
    assert "no difference that 40 texts can show (+0.000 accuracy [+0.000, +0.000])" in left.out


def test_a_bound_ends_with_status_1(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    left = bertcli("evaluate", REVIEWS, "--at-least", "accuracy=0.9", "-o", file)
    assert left.error == "Error: accuracy of bert-mini-sentiment is 0.8250, less than 0.9 (--at-least)."
    assert json.loads(file.read_text())["count"] == 40, "the record is written all the same"
    assert bertcli("evaluate", REVIEWS, "--at-least", "accuracy=0.8").status == 0
    assert "There is no figure 'acuracy'" in bertcli("evaluate", REVIEWS, "--at-least", "acuracy=0.8", "-o", file).error


def test_an_unknown_label_names_its_line_and_can_be_mapped(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("text,label\nGood.,positive\nBad.,nay\n")
    assert (
        "line 3: the label 'nay' is not one of this model's: 'negative', 'positive'" in bertcli("evaluate", file).error
    )
    assert bertcli("evaluate", file, "--labels", "nay=negative").status == 0
