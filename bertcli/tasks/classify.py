"""classify: the probabilities of labels, or of one text following another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.inputs import Text, Texts, from_values
from bertcli.model import Model
from bertcli.packing import pack
from bertcli.tasks.checks import check_choice, check_count, check_finite, head_of, hidden_states
from bertcli.tasks.items import START, Item, Reading, Record, Records, RecordStream, Tally, Truncation, Window
from bertcli.tasks.run import results
from bertcli.tasks.windows import Task, in_micro_batches
from bertcli.untrusted import shown

Activation = Literal["softmax", "sigmoid", "none"]
Head = Literal["classifier", "nsp"]
NEXT_SENTENCE = ("is_next", "not_next")
DIGITS = 9  # at most, of a label's index
SPAN = 5  # micro-batches in a window, as in encode


def classify(
    model: Model,
    texts: Iterable[str] | Texts,
    pairs: Iterable[str | None] | str | None = None,
    *,
    top_k: int | None = None,
    head: Head | None = None,
    activation: Activation | None = None,
    max_length: int | None = None,
    truncation: Truncation = "warn",
    batch_tokens: int | None = None,
    keep_going: bool = False,
    workers: int | None = None,
    start: Tally = START,
) -> RecordStream:
    """Labels with their scores, best first: records {index, text, text_pair, truncated, labels: [{label, score}, …]}.

    The record of a text whose true label is given also has `true_label`.

    `head` is "classifier" (the default if there is one) or "nsp", whose labels are is_next and not_next and which needs
    pairs. `activation`: default softmax; sigmoid for a multi-label or single-label classifier; none for regression.
    `workers`: processes that share the work (see `bertcli.tasks.run`).
    """
    check_count("top_k", top_k)
    check_choice("head", head, Head)
    check_choice("activation", activation, Activation)
    chosen = chosen_head(model, head)
    head_of(model, chosen, "classify")
    squash = activation or ("softmax" if chosen == "nsp" else own_activation(model))
    reading = Reading(max_length, truncation, batch_tokens, keep_going, start)
    task = _Classify(model, reading, SPAN, chosen, labels_of(model, chosen), squash, top_k, head is None)
    return RecordStream(results(task, from_values(texts, pairs), workers))


def chosen_head(model: Model, head: Head | None) -> Head:
    """The head asked for, else the classifier if there is one, else nsp."""
    return head or ("nsp" if "classifier" not in model.heads and "nsp" in model.heads else "classifier")


def labels_of(model: Model, head: Head) -> tuple[str, ...]:
    """The names of a head's labels, by their index."""
    return NEXT_SENTENCE if head == "nsp" else tuple(model.config.labels)


def own_activation(model: Model) -> Activation:
    """What turns this classifier's logits into scores, according to its problem_type and number of labels."""
    if model.config.problem_type == "regression":
        return "none"
    if model.config.problem_type == "multi_label_classification" or model.config.num_labels == 1:
        return "sigmoid"
    return "softmax"


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
    activation: Activation
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
        scored = zip(window.items, activated(self._logits(window.items), self.activation), strict=True)
        return window.records(self._record(item, scores) for item, scores in scored)

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

    def _logits(self, items: list[Item]) -> NDArray[np.float64]:
        pooler, classifier = head_of(self.model, "pooler", "classify"), head_of(self.model, self.head, "classify")

        def run(batch: list[int]) -> NDArray[np.float32]:
            packed = pack([items[i].tokens for i in batch])
            logits: NDArray[np.float32] = classifier(pooler(hidden_states(self.model, packed, packed.first)))
            check_finite(logits)
            return logits

        lengths = [len(item.tokens.ids) for item in items]
        rows: list[NDArray[np.float32]] = in_micro_batches(lengths, self.reading.tokens_together, run)
        return np.stack(rows).astype(np.float64) if rows else np.empty((0, len(self.labels)))


def activated(logits: NDArray[np.float64], activation: Activation) -> NDArray[np.float64]:
    """Scores from logits [text, label]."""
    if activation == "none":
        return logits
    if activation == "sigmoid":
        return np.exp(-np.logaddexp(0.0, -logits))  # 1 / (1 + exp(-x)) without overflow
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
