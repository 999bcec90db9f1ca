"""How well a classifier does on texts whose labels are known: precision, recall and F1 of every label.

    precision = TP / (TP + FP),   recall = TP / (TP + FN),   F1 = 2 · TP / (2 · TP + FP + FN)

A ratio 0 / 0 counts as 0. Labels that are never true and never predicted are left out. Both are as in scikit-learn's
classification_report.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.tasks.classify import Head, chosen_head, labels_of, own_activation


class Score(NamedTuple):
    """A row of the report: for a label, or an average over all; `support` is the number of texts it is about."""

    name: str
    precision: float | None
    recall: float | None
    f1: float
    support: int


class Accuracy:
    """Counts over records with a `true_label`; `counts` holds [correct, predicted, true] for each label."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = labels
        self.counts = [[0, 0, 0] for _ in labels]

    @classmethod
    def of(cls, model: Model, head: Head | None) -> Accuracy:
        """For a model that gives every text one label; BertcliError for any other."""
        chosen = chosen_head(model, head)
        if chosen == "classifier" and own_activation(model) != "softmax":
            raise BertcliError(
                f"{model.name} does not choose one label per text, so there is no accuracy: leave out --label-column."
            )
        return cls(labels_of(model, chosen))

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        """Count records, whose best label comes first; those with an error do not count."""
        place = {label: index for index, label in enumerate(self._labels)}
        for record in records:
            if "true_label" in record:
                true, chosen = place[record["true_label"]], place[record["labels"][0]["label"]]
                self.counts[true][0] += true == chosen
                self.counts[chosen][1] += 1
                self.counts[true][2] += 1

    def scores(self) -> list[Score]:
        """One for every label, then accuracy, the mean over labels, and the mean weighted by support."""
        rows = [
            Score(label, _ratio(right, chosen), _ratio(right, true), _ratio(2 * right, chosen + true), true)
            for label, (right, chosen, true) in zip(self._labels, self.counts, strict=True)
            if chosen or true
        ]
        total = sum(row.support for row in rows)
        accuracy = _ratio(sum(right for right, _, _ in self.counts), total)
        return [
            *rows,
            Score("accuracy", None, None, accuracy, total),
            _mean("macro avg", rows, [1] * len(rows), total),
            _mean("weighted avg", rows, [row.support for row in rows], total),
        ]


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _mean(name: str, rows: Sequence[Score], weights: Sequence[int], total: int) -> Score:
    def mean(values: Iterable[float | None]) -> float:
        weighted = (weight * (value or 0.0) for value, weight in zip(values, weights, strict=True))
        return sum(weighted) / (sum(weights) or 1)

    precision, recall = mean(row.precision for row in rows), mean(row.recall for row in rows)
    return Score(name, precision, recall, mean(row.f1 for row in rows), total)
