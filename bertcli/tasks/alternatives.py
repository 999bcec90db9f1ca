"""classify among alternatives given with the call: candidate labels, by entailment, or the choices of a question.

    candidates: the text is the premise, the template with a candidate in it the hypothesis
        only one holds:    score = softmax over the candidates of the logits of entailment
        several may hold:  score = softmax over the logits of contradiction and entailment, each candidate by itself
    choices:               score = softmax over the choices of the one logit that text and choice have

Equal to transformers' zero-shot-classification pipeline, and to its models for multiple choice. Source of the former:
Yin et al. 2019, "Benchmarking Zero-shot Text Classification".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertcli.errors import BertcliError, shown, shown_object
from bertcli.files.texts import Text
from bertcli.tasks.activation import Numbers, softmax
from bertcli.tasks.checks import FITTING, head_of
from bertcli.tasks.task import Item, Reading, Record, Records, Task, Window
from bertcli.tokens import Tokens

if TYPE_CHECKING:
    from bertcli.model import Model

SPAN = 1  # micro-batches in a window of the run: a text is a pair to compute with every alternative
TEMPLATE = "This example is {}."
PLACE = "{}"
TASK = "classify --candidates"


@dataclass(frozen=True, eq=False)
class Alternatives(Task[Records]):
    """A score for each of `names`, from the logits of the pair that its text in `seconds` makes with the text."""

    names: tuple[str, ...]
    seconds: tuple[str, ...]
    top_k: int | None
    head: Literal["classifier", "multiple_choice"]
    cut: Literal["text", "longest"]  # of a pair that is too long
    outputs: tuple[int, ...]  # the one that alternatives share a softmax of, or (contradiction, entailment) of each

    def scores(self, found: Numbers) -> Numbers:
        """The scores of a text's alternatives from their logits [alternative, output]."""
        asked = found[:, self.outputs]
        return softmax(asked)[:, 1] if len(self.outputs) > 1 else softmax(asked[:, 0])

    @cached_property
    def longest(self) -> str:
        """The second text that leaves the fewest tokens for the first."""
        lengths = [len(tokens.ids) for tokens in self.model.tokenizer.encode(self.seconds)]
        return self.seconds[lengths.index(max(lengths))]

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        """Of each text in its longest pair, which says how much is cut."""
        return self._pairs([text.text for text in texts], [self.longest] * len(texts))

    def check(self, item: Item) -> None:
        if item.text.pair is not None:
            raise BertcliError(f"Candidates and choices are for single texts, and {item.place} has a second one.")

    def compute(self, window: Window) -> Records:
        texts = [item.text.text for item in window.items for _ in self.seconds]
        found = self.logits(self.head, self._pairs(texts, list(self.seconds) * len(window.items)))
        each = found.reshape(len(window.items), len(self.seconds), found.shape[1])
        return window.records(
            self._record(item, self.scores(rows)) for item, rows in zip(window.items, each, strict=True)
        )

    def _pairs(self, texts: list[str], seconds: list[str]) -> list[Tokens]:
        return self.model.tokenizer.encode(texts, seconds, self.limit, cut=self.cut)

    def _record(self, item: Item, scores: Numbers) -> Record:
        best = np.argsort(-scores, kind="stable")[: self.top_k]
        return {
            "index": item.index,
            "text": item.text.text,
            "text_pair": None,
            "truncated": item.tokens.truncated,
            "labels": [{"label": self.names[i], "score": float(scores[i])} for i in best],
        }


def candidates_task(
    model: Model,
    reading: Reading,
    candidates: Iterable[str] | str,
    template: str | None,
    multi_label: bool,
    top_k: int | None,
) -> Alternatives:
    """What classifies texts by candidates: a list, or a string of comma-separated ones.

    Errors: BertcliError for a model whose labels do not name entailment, an empty or missing candidate, and a template
    without {}.
    """
    head_of(model, "classifier", TASK)
    names = _names("candidate", "--candidates", candidates)
    template = TEMPLATE if template is None else template
    if PLACE not in template:
        raise BertcliError(
            f"The template {shown(template)} has no {PLACE}, where the candidate belongs: write one (--template)."
        )
    labels = model.config.labels
    entailment = next((i for i, label in enumerate(labels) if label.lower().startswith("entail")), None)
    if entailment is None or len(labels) < 2:
        raise BertcliError(
            f"Candidates need a model that tells entailment from contradiction, and the labels of {model.name} are "
            f"{', '.join(map(shown, labels[:20]))}: choose another model, such as {FITTING[TASK]}."
        )
    contradiction = len(labels) - 1 if entailment == 0 else 0
    seconds = tuple(template.replace(PLACE, name) for name in names)
    outputs = (contradiction, entailment) if multi_label or len(names) == 1 else (entailment,)
    return Alternatives(model, reading, SPAN, names, seconds, top_k, "classifier", "text", outputs)


def choices_task(model: Model, reading: Reading, choices: Iterable[str], top_k: int | None) -> Alternatives:
    """What chooses among these; BertcliError for an empty choice, or none at all."""
    head_of(model, "multiple_choice", "classify --choices")
    names = _names("choice", "--choices", [choices] if isinstance(choices, str) else choices)
    return Alternatives(model, reading, SPAN, names, names, top_k, "multiple_choice", "longest", (0,))


def _names(what: str, option: str, given: Iterable[str] | str) -> tuple[str, ...]:
    if not isinstance(given, Iterable):
        raise BertcliError(f"{shown_object(given)} is no list to choose from ({option}).")
    names = tuple(name.strip() for name in given.split(",")) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise BertcliError(f"There is an empty {what} among {shown_object(names)} ({option}): leave it out.")
        if names.count(name) > 1:
            raise BertcliError(
                f"The {what} {shown(name)} is there more than once ({option}), which would share its score."
            )
    if not names:
        raise BertcliError(f"There is no {what} to score ({option}).")
    return names
