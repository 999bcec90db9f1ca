"""How often a classifier is right about a labeled file, as scikit-learn counts it."""

from pathlib import Path

import pytest
from conftest import Made
from helpers.terminal import bertcli


@pytest.fixture
def labeled(tmp_path: Path) -> Path:
    path = tmp_path / "test.csv"
    path.write_text("text,label\na,bad\nthe cat,good\ntea,0\nmilk,1\nhot tea,so-so\nrain,2\n", encoding="utf-8")
    return path


def test_accuracy_of_a_labeled_file_is_shown(made: Made, labeled: Path, tmp_path: Path) -> None:
    model = made(head="classifier", id2label={0: "bad", 1: "good", 2: "so-so", 3: "never"}, seed=3)
    arguments = ["classify", "-m", str(model), "-i", str(labeled), "--label-column", "label"]
    lines = bertcli(*arguments, "--format", "jsonl")
    true = [record["true_label"] for record in lines.records]
    assert true == ["bad", "good", "bad", "good", "so-so", "so-so"]
    assert list(lines.records[0]) == ["index", "text", "text_pair", "truncated", "labels", "true_label"]
    chosen = [record["labels"][0]["label"] for record in lines.records]
    right = sum(a == b for a, b in zip(true, chosen, strict=True))
    (row,) = (line.split() for line in lines.err.splitlines() if line.split()[:1] == ["accuracy"])
    assert row == ["accuracy", f"{right / 6:.4f}", "6"]
    assert "weighted avg" not in lines.out
    table = bertcli(*arguments)
    written = bertcli(*arguments, "-o", tmp_path / "l.jsonl")
    assert "weighted avg" in table.out
    assert written.out in table.out
    assert "weighted avg" in written.out


def test_accuracy_of_a_label_the_model_does_not_know(made: Made, labeled: Path) -> None:
    model = made(head="classifier", id2label={0: "bad", 1: "good"})
    arguments = ["classify", "-m", str(model), "-i", str(labeled), "--label-column", "label"]
    assert "test.csv, line 6: the label 'so-so' is not one of this model's: 'bad', 'good'" in bertcli(*arguments).error
    result = bertcli(*arguments, "--keep-going", "--format", "jsonl")
    assert "2 of 6 texts could not be used" in result.err
    assert "error" in result.records[4]


def test_accuracy_of_models_that_choose_none(made: Made, labeled: Path) -> None:
    model = made(head="classifier", num_labels=1)
    assert "does not choose one label" in bertcli(
        "classify", "-m", model, "-i", labeled, "--label-column", "label"
    ).error  # fmt: skip


def test_accuracy_is_that_of_scikit_learn() -> None:
    from bertcli.tasks.compute.classify import Accuracy

    accuracy = Accuracy(["a", "b", "c", "unused"])
    pairs = [("a", "a"), ("a", "b"), ("b", "b"), ("b", "b"), ("b", "a"), ("c", "b"), ("a", "a")]
    accuracy.add({"true_label": true, "labels": [{"label": chosen}]} for true, chosen in pairs)
    accuracy.add([{"index": 7, "text": None, "error": "x"}])
    expected = [  # classification_report(true, chosen, zero_division=0, digits=4)
        ("a", 0.6667, 0.6667, 0.6667, 3),
        ("b", 0.5, 0.6667, 0.5714, 3),
        ("c", 0.0, 0.0, 0.0, 1),
        ("accuracy", None, None, 0.5714, 7),
        ("macro avg", 0.3889, 0.4444, 0.4127, 7),
        ("weighted avg", 0.5, 0.5714, 0.5306, 7),
    ]
    for score, row in zip(accuracy.scores(), expected, strict=True):
        assert (score.name, score.support) == (row[0], row[4])
        assert score[1:4] == pytest.approx(row[1:4], abs=5e-5)
