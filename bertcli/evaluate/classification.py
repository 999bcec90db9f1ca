"""classification: true labels against the likeliest ones, and how far the probabilities can be trusted."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import metrics
from bertcli.evaluate.data import Item, Labelled, Row, text
from bertcli.evaluate.metrics import Figures, Numbers, Whole
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Curve, Judged, Outcome, Task, texts_of, usable
from bertcli.lean import lean_dataclass
from bertcli.model import Model

COVERAGES = (50, 80, 90)  # percent
COVERED = [f"accuracy@{percent}%" for percent in COVERAGES]


@lean_dataclass
class Labels(Outcome):
    """Probabilities [item, label] of all the model's labels, and the number of the true one [item]."""

    probabilities: Numbers
    true: Whole
    names: Sequence[str]

    @cached_property
    def chosen(self) -> Whole:
        return np.asarray(self.probabilities.argmax(axis=1))

    @cached_property
    def confidence(self) -> Numbers:
        return np.asarray(self.probabilities.max(axis=1))

    @cached_property
    def right(self) -> Numbers:
        return np.asarray(self.chosen == self.true, np.float64)

    def sums(self, counts: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """How many items of each label are right, said, and true [draw, label]."""
        said, true = (metrics.one_hot(labels, len(self.names)) for labels in (self.chosen, self.true))
        return counts @ (true * self.right[:, None]), counts @ said, counts @ true

    def figures(self, counts: Numbers) -> Figures:
        sums, right = self.sums(counts), self.right
        return {
            "accuracy": metrics.mean(right, counts),
            **metrics.averaged(*sums),
            "mcc": metrics.mcc(*sums),
            "ece": metrics.ece(self.confidence, right, counts),
            "brier": metrics.mean(metrics.brier(self.probabilities, self.true), counts),
            "log_loss": metrics.mean(metrics.log_loss(self.probabilities, self.true), counts),
            **dict(zip(COVERED, metrics.covered_accuracy(self.confidence, right, counts, COVERAGES), strict=True)),
        }

    @property
    def losses(self) -> Numbers:
        """How sure the model was of a wrong label."""
        return self.confidence * (1 - self.right)

    def said(self, item: int) -> dict[str, Any]:
        chosen = self.names[self.chosen[item]]
        return {"expected": self.names[self.true[item]], "found": f"{chosen} ({self.confidence[item]:.3f})"}

    @property
    def curve(self) -> Curve:
        items, confident, right = (
            sums[0] for sums in metrics.calibration(self.confidence, self.right, np.ones((1, len(self.true))))
        )
        some = items > 0
        points = zip(*((sums[some] / items[some]).tolist() for sums in (confident, right)), strict=True)
        return Curve("reliability", "mean confidence", "accuracy", list(points), ideal=True)

    @property
    def details(self) -> dict[str, Any]:
        """Figures by label, and the confusion matrix [true][said], of the labels that occur."""
        ones = np.ones((1, len(self.true)))
        right, said, true = self.sums(ones)
        rows = np.concatenate([*metrics.label_figures(right, said, true), true]).T
        occurs = np.flatnonzero((said + true)[0])
        keys = ("precision", "recall", "f1", "support")
        labels = [
            {"label": self.names[i], **dict(zip(keys, rows[i].tolist(), strict=True)), "support": int(true[0, i])}
            for i in occurs.tolist()
        ]
        matrix = np.zeros((len(self.names),) * 2, int)
        np.add.at(matrix, (self.true, self.chosen), 1)
        return {"labels": labels, "confusion": matrix[np.ix_(occurs, occurs)].tolist()}


def _item(row: Row) -> Item:
    first, second, label = row.values
    texts = tuple(text(row, value) for value in (first, second) if value is not None)
    return Item(row.place, texts, label if isinstance(label, str) else json.dumps(label), row.group)


def judge(model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """Probabilities of all labels. Errors: BertcliError for a classifier whose labels do not exclude each other."""
    config = model.config
    if "classifier" in model.heads and (
        config.problem_type in ("regression", "multi_label_classification") or config.num_labels < 2
    ):
        raise BertcliError(f"{model.name} does not choose one label per text, so there is no accuracy: use another.")
    items = labelled.items
    texts = [(item.texts[0], item.texts[1] if item.texts[1:] else None, item.place) for item in items]
    records = model.classify(texts_of(texts), **wanted.doing)
    ok = usable(records)
    found: list[dict[str, Any]] = next((record["labels"] for record in records if "labels" in record), [])
    of_model = [*config.labels] if "classifier" in model.heads else []
    names = of_model if {*of_model} >= {entry["label"] for entry in found} else ["is_next", "not_next"]
    place = {name: number for number, name in enumerate(names)}
    probabilities = np.zeros((len(items), len(names)))
    for row, record in zip(probabilities, records, strict=True):
        for entry in record.get("labels", ()):
            row[place[entry["label"]]] = entry["score"]
    true = np.array([number_of(item, names, wanted.labels or {}) for item in items], np.intp)
    return [Judged(model.name, Labels(ok, probabilities, true, names))]


def number_of(item: Item, names: Sequence[str], renamed: Mapping[str, str]) -> int:
    """Which of the model's labels the true one is: by name, as --labels says, or by number."""
    label = renamed.get(item.truth, item.truth)
    if label in names:
        return names.index(label)
    if label.isdecimal() and len(label) < 10 and int(label) < len(names):
        return int(label)
    choices = ", ".join(map(shown, names[:20]))
    raise BertcliError(
        f"{item.place}: the label {shown(label)} is not one of this model's: {choices} "
        "(--labels a=b says which one is meant)."
    )


TASKS = {"classification": Task(_item, judge)}
