"""classify: the probabilities of labels, or of one text following another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from bertcli.checkpoint.sentence import read_cross_encoder
from bertcli.errors import BertcliError, shown
from bertcli.files.texts import Text, Texts, from_values
from bertcli.tasks.activation import Activation, activated
from bertcli.tasks.alternatives import candidates_task, choices_task
from bertcli.tasks.checks import check_choice, check_count, head_of
from bertcli.tasks.run import results
from bertcli.tasks.task import (
    CutOptions,
    Item,
    Reading,
    Record,
    Records,
    RecordStream,
    Task,
    Window,
)

if TYPE_CHECKING:
    from bertcli.model import Model

Head = Literal["classifier", "nsp"]
NEXT_SENTENCE = ("is_next", "not_next")
DIGITS = 9  # at most, of a label's index
SPAN = 5  # micro-batches in a window, as in encode


class ClassifyOptions(CutOptions, total=False):
    """The keywords of `classify` beside top_k."""

    head: Head | None
    activation: Activation | None
    candidates: Iterable[str] | str | None
    template: str | None
    multi_label: bool
    choices: Iterable[str] | None


def classify(
    model: Model,
    texts: Iterable[str] | Texts,
    pairs: Iterable[str | None] | str | None = None,
    *,
    top_k: int | None = None,
    head: Head | None = None,
    activation: Activation | None = None,
    candidates: Iterable[str] | str | None = None,
    template: str | None = None,
    multi_label: bool = False,
    choices: Iterable[str] | None = None,
    **options: Unpack[CutOptions],
) -> RecordStream:
    """Labels with their scores, best first: records {index, text, text_pair, truncated, labels: [{label, score}, …]}.

    The record of a text whose true label is given also has `true_label`.

    `head` is "classifier" (the default if there is one) or "nsp", whose labels are is_next and not_next and which needs
    pairs. `activation`: default softmax; sigmoid for a multi-label or single-label classifier; none for regression; the
    checkpoint's own for a cross-encoder.

    candidates (a list, or a comma-separated string): labels of your own, for a model trained on entailment, put into
    `template` ("This example is {}."); with `multi_label` several may hold. choices: continuations or answers of which
    one is right, for a multiple-choice model. Only one of head, candidates and choices; see `tasks.alternatives`.
    The other options are those of `Reading`.
    """
    check_count("top_k", top_k)
    check_choice("head", head, Head)
    check_choice("activation", activation, Activation)
    if sum(value is not None for value in (head or activation, candidates, choices)) > 1:
        raise BertcliError("candidates, choices, and head or activation exclude each other: give only one.")
    if candidates is None and (template is not None or multi_label):
        raise BertcliError("template and multi_label are for candidates (--candidates), and there are none.")
    reading = Reading(**options)
    task: Task[Records]
    if candidates is not None:
        task = candidates_task(model, reading, candidates, template, multi_label, top_k)
    elif choices is not None:
        task = choices_task(model, reading, choices, top_k)
    else:
        task = _classify_task(model, reading, head, activation, top_k)
    return RecordStream(results(task, from_values(texts, pairs)))


def _classify_task(
    model: Model, reading: Reading, head: Head | None, activation: Activation | None, top_k: int | None
) -> _Classify:
    chosen = chosen_head(model, head)
    head_of(model, chosen, "classify")
    squash = activation or ("softmax" if chosen == "nsp" else own_activation(model))
    return _Classify(model, reading, SPAN, chosen, labels_of(model, chosen), squash, top_k, head is None)


def chosen_head(model: Model, head: Head | None) -> Head:
    """The head asked for, else the classifier if there is one, else nsp."""
    return head or ("nsp" if "classifier" not in model.heads and "nsp" in model.heads else "classifier")


def labels_of(model: Model, head: Head) -> tuple[str, ...]:
    """The names of a head's labels, by their index."""
    return NEXT_SENTENCE if head == "nsp" else tuple(model.config.labels)


def own_activation(model: Model) -> str:
    """What turns this classifier's logits into scores: as its problem_type says, and its number of labels.

    For one label of a cross-encoder, what its files name, as in `rank`.
    """
    if model.config.problem_type == "regression":
        return "none"
    if model.config.problem_type == "multi_label_classification":
        return "sigmoid"
    if model.config.num_labels > 1:
        return "softmax"
    return "sigmoid" if model.path is None else read_cross_encoder(model.path, num_labels=1)


def true_label(text: Text, labels: Sequence[str]) -> str | None:
    """The known label of a text, given by name or by index; BertcliError for one that is not the model's."""
    if text.label is None or text.label in labels:
        return text.label
    if text.label.isdecimal() and len(text.label) <= DIGITS and int(text.label) < len(labels):
        return labels[int(text.label)]
    known = ", ".join(map(shown, labels[:20]))
    raise BertcliError(f"{text.place}: the label {shown(text.label)} is not one of this model's: {known}.")


@dataclass(frozen=True, eq=False)
class _Classify(Task[Records]):
    head: Head
    labels: tuple[str, ...]
    activation: str  # of tasks.activation.ACTIVATIONS
    top_k: int | None
    by_default: bool  # the head was not asked for

    def check(self, item: Item) -> None:
        true_label(item.text, self.labels)
        if self.head == "nsp" and item.text.pair is None:
            whose = "There is no classifier, and the" if self.by_default else "The"
            raise BertcliError(
                f"{whose} next-sentence head needs a second text, and {item.place} has none: give pairs "
                "(--text-pair or --pair-column)."
            )

    def compute(self, window: Window) -> Records:
        logits = self.logits(self.head, [item.tokens for item in window.items])
        scored = zip(window.items, activated(logits, self.activation), strict=True)
        return window.records([self._record(item, scores) for item, scores in scored])

    def _record(self, item: Item, scores: NDArray[np.float64]) -> Record:
        order = np.argsort(-scores, kind="stable")[: self.top_k]
        record = {
            "index": item.index,
            "text": item.text.text,
            "text_pair": item.text.pair,
            "truncated": item.tokens.truncated,
            "labels": [{"label": self.labels[i], "score": float(scores[i])} for i in order],
        }
        known = true_label(item.text, self.labels)
        return record if known is None else {**record, "true_label": known}


# ---------------------------------------------------------------------------------------------------------- accuracy


class Score(NamedTuple):
    """A row of the report: for a label, or an average over all; `support` is the number of texts it is about."""

    name: str
    precision: float | None
    recall: float | None
    f1: float
    support: int


class Accuracy:
    """How well a classifier does on texts whose labels are known: precision, recall and F1 of every label.

        precision = TP / (TP + FP),   recall = TP / (TP + FN),   F1 = 2 · TP / (2 · TP + FP + FN)

    A ratio 0 / 0 counts as 0. Labels that are never true and never predicted are left out; both as scikit-learn's
    classification_report has it. `counts` holds [correct, predicted, true] for each label.
    """

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
