"""classify: the probabilities of labels, of one text following another, or of alternatives given with the call.

    candidates: the text is the premise, the template with a candidate in it the hypothesis
        only one holds:    score = softmax over the candidates of the logits of entailment
        several may hold:  score = softmax over the logits of contradiction and entailment, each candidate by itself
    choices:               score = softmax over the choices of the one logit that text and choice have

Alternatives are scored as by transformers' zero-shot-classification pipeline, and by its models for multiple choice.
Source of the former: Yin et al. 2019, "Benchmarking Zero-shot Text Classification".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, check_finite, quoted, quoted_object
from bertcli.files.texts import Item, Text
from bertcli.kinds.candidate_labels import PLACE, CandidateOptions, CandidateScorer
from bertcli.kinds.layers import read_pair_activation
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.tasks.classify import SPEC, ClassifyOptions, Head
from bertcli.tasks.parts.entities import window_limit
from bertcli.tasks.parts.label_logits import check_label_head, label_logits_of_each, label_reading
from bertcli.tasks.parts.scores import SCORE_FUNCTIONS, softmax
from bertcli.tasks.running.batches import (
    Numbers,
    check_needs,
    hidden_states,
    in_micro_batches,
    logits_of_each,
)
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tokens import Tokens
from bertcli.tokens.tokenizer import LONGEST
from bertcli.tracing.dispatch import Array

NEXT_SENTENCE = ("is_next", "not_next")
TEMPLATE = "This example is {}."
# Characters that are tokenized at a time: this bounds the tokenizer's memory.
CHARACTERS_TOGETHER = 250_000
# Characters of all alternatives together, each in its template: as many as a single text may have.
MOST_CHARACTERS = LONGEST


def plan(model: LoadedModel, options: ClassifyOptions) -> RecordTask:
    """Make the task. Errors: BertcliError for options that the model cannot fulfil."""
    read_options, top_k = options.read_options, options.top_k
    if options.candidates is not None:
        return _candidates_task(model, options, options.candidates)
    if options.choices is not None:
        check_needs(model, SPEC.needs(options))
        choices = [options.choices] if isinstance(options.choices, str) else options.choices
        names = _names("choice", "--choices", choices)
        _check_size("choices (--choices)", sum(map(len, names)))
        return _Alternatives(model, read_options, names, top_k, "multiple_choice", names, "longest", (0,))
    chosen = chosen_head(model, options.head)
    check_label_head(model, chosen, "classify")
    activation = options.activation or ("softmax" if chosen == "nsp" else own_activation(model))
    names, by_default = labels_of(model, chosen), options.head is None
    max_length, prompt = label_reading(model, chosen, read_options.max_length)
    read_options = replace(read_options, max_length=max_length)
    return _Classify(model, read_options, names, top_k, chosen, activation, by_default, prompt=prompt)


@dataclass(frozen=True, eq=False, repr=False)
class _Labels(RecordTask):
    """A task that scores each of some names, and returns the best `top_k`."""

    names: tuple[str, ...]
    top_k: int | None

    def predictions(self, item: Item) -> int:
        return len(self.names) if self.top_k is None else min(self.top_k, len(self.names))

    def record(self, item: Item, scores: Numbers) -> Record:
        """Make a text's record from its scores [name]."""
        best = best_first(scores, self.top_k)
        return {
            **item.named,
            "text": item.text.text,
            "text_pair": item.text.pair,
            "truncated": item.tokens.truncated,
            "labels": [{"label": self.names[i], "score": float(scores[i])} for i in best],
        }


# ---------------------------------------------------------------------------------------------- the model's own labels


def chosen_head(model: LoadedModel, head: Head | None) -> Head:
    """Choose the head: the requested one, else the classifier if the model has one, else nsp."""
    return head or ("nsp" if "classifier" not in model.heads and "nsp" in model.heads else "classifier")


def labels_of(model: LoadedModel, head: Head) -> tuple[str, ...]:
    """List the names of a head's labels, by index."""
    return NEXT_SENTENCE if head == "nsp" else tuple(model.config.labels)


def own_activation(model: LoadedModel) -> str:
    """Choose the classifier's activation by its problem_type and its number of labels.

    A cross-encoder with one label has the activation that its files name, as in `rank`.
    """
    if model.config.problem_type == "regression":
        return "none"
    if model.config.problem_type == "multi_label_classification":
        return "sigmoid"
    if model.config.num_labels > 1:
        return "softmax"
    return read_pair_activation(model.layout)


@dataclass(frozen=True, eq=False, repr=False)
class _Classify(_Labels):
    head: Head
    activation: str  # of SCORE_FUNCTIONS in tasks/parts/scores.py
    by_default: bool  # the head was not asked for

    def check(self, item: Item) -> None:
        if self.head == "nsp" and item.text.pair is None:
            reason = "This model has no classifier. Its" if self.by_default else "The"
            choice = ", or choose a classifier with -m." if self.by_default else "."
            raise BertcliError(
                f"{reason} next-sentence head needs a second text, and {item.title} has none: give pairs "
                f"(--text-pair or --pair-column){choice}"
            )

    def records(self, items: list[Item]) -> Iterator[Record]:
        sentences = [item.tokens for item in items]
        of_texts = label_logits_of_each(self.model, self.head, sentences, self.read_options.batch_tokens)
        for item, logits in zip(items, of_texts, strict=True):
            yield self.record(item, SCORE_FUNCTIONS[self.activation](logits))


# -------------------------------------------------------------------------------------------------------- alternatives


@dataclass(frozen=True, eq=False, repr=False)
class _Alternatives(_Labels):
    """A task that pairs the text with each of `seconds`, and scores the pair for each name."""

    batches_per_group = 1  # a text is a pair to compute with every alternative
    head: Literal["classifier", "multiple_choice"]
    seconds: tuple[str, ...]
    cut: Literal["text", "longest"]  # of a pair that is too long
    outputs: tuple[int, ...]  # the one that alternatives share a softmax of, or (contradiction, entailment) of each

    @cached_property
    def longest(self) -> str:
        """The second text that leaves the fewest tokens for the first."""
        lengths = [len(tokens.ids) for tokens in self.model.tokenizer.encode(self.seconds)]
        return self.seconds[lengths.index(max(lengths))]

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        """Tokenize each text in its longest pair, which determines how much is cut."""
        return self._pairs([text.text for text in texts], [self.longest] * len(texts))

    def cost(self, item: Item) -> int:
        """Count the tokens of its longest pair, times the number of alternatives."""
        return len(self.seconds) * len(item.tokens.ids)

    def check(self, item: Item) -> None:
        _refuse_pair(item)

    def records(self, items: list[Item]) -> Iterator[Record]:
        sentences = [tokens for item in items for tokens in self._sentences(item.text.text)]
        of_pairs = iter(logits_of_each(self.model, self.head, sentences, self.read_options.batch_tokens))
        for item in items:
            logits = np.array([next(of_pairs) for _ in self.seconds])[:, self.outputs]
            # With two outputs each alternative is judged by itself: true against false.
            scores = softmax(logits)[:, 1] if len(self.outputs) > 1 else softmax(logits[:, 0])
            yield self.record(item, scores)

    def _sentences(self, text: str) -> Iterator[Tokens]:
        """Pair a text with every alternative; CHARACTERS_TOGETHER characters are tokenized at a time."""
        together = max(1, CHARACTERS_TOGETHER // (len(text) + len(max(self.seconds, key=len))))
        for first in range(0, len(self.seconds), together):
            check_wanted()
            seconds = self.seconds[first : first + together]
            for tokens in self._pairs([text] * len(seconds), seconds):
                yield tokens.without_lost() if tokens.lost else tokens

    def _pairs(self, texts: Sequence[str], seconds: Sequence[str]) -> list[Tokens]:
        return self.model.tokenizer.encode(texts, seconds, self.limit, cut=self.cut)


@dataclass(frozen=True, eq=False, repr=False)
class _ScoredByKind(_Labels):
    """A task that scores candidates as the model's kind does; several may be true where they are `independent`."""

    scorer: CandidateScorer
    independent: bool

    @cached_property
    def limit(self) -> int:
        """The number of tokens of a text, with the candidates."""
        return window_limit(self.model, self.read_options.max_length)

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.scorer.tokens([text.text for text in texts])

    def cost(self, item: Item) -> int:
        return self.scorer.cost(item.text.text, item.tokens)

    def check(self, item: Item) -> None:
        _refuse_pair(item)

    def records(self, items: list[Item]) -> Iterator[Record]:
        sentences = [self.scorer.sentence(item.text.text, item.tokens) for item in items]

        def run(batch: list[int]) -> list[Array]:
            return self.scorer.logits([sentences[index] for index in batch], partial(hidden_states, self.model))

        keys = [self.scorer.key(sentence) for sentence in sentences]
        of_texts = in_micro_batches(sentences, self.read_options.batch_tokens, run, keys)
        function = SCORE_FUNCTIONS["sigmoid" if self.independent else "softmax"]
        for item, logits in zip(items, of_texts, strict=True):
            check_finite(logits)
            yield self.record(item, function(logits.astype(np.float64)))


def _refuse_pair(item: Item) -> None:
    if item.text.pair is not None:
        raise BertcliError(f"Candidates and choices are for single texts, and {item.title} has a second one.")


def _candidates_task(model: LoadedModel, options: ClassifyOptions, candidates: Iterable[str] | str) -> RecordTask:
    """Make the task of zero-shot classification by candidates: a list, or a string separated by commas.

    Errors: BertcliError for a model whose labels do not name entailment, and an empty or missing candidate.
    """
    names = _names("candidate", "--candidates", candidates)
    independent = options.multi_label or len(names) == 1
    limit = partial(window_limit, model, options.read_options.max_length)
    scorer = model.readable_kind.candidate_scorer(model, CandidateOptions(names, options.template, limit))
    if scorer is not None:
        return _ScoredByKind(model, options.read_options, scorer.names, options.top_k, scorer, independent)
    needs = SPEC.needs(options)
    check_needs(model, needs)
    template = TEMPLATE if options.template is None else options.template
    labels = model.config.labels
    entailment = next((i for i, label in enumerate(labels) if label.lower().startswith("entail")), None)
    if entailment is None or len(labels) < 2:
        raise BertcliError(
            f"Candidates need a model that tells entailment from contradiction, and the labels of {model.name} are "
            f"{', '.join(map(quoted, labels[:20]))}: choose another model, such as {needs.fitting}."
        )
    contradiction = len(labels) - 1 if entailment == 0 else 0
    outputs = (contradiction, entailment) if independent else (entailment,)
    # Counted before they are made: a template may repeat a long candidate hundreds of times.
    places = template.count(PLACE)
    characters = sum(len(template) + places * (len(name) - len(PLACE)) for name in names)
    _check_size("candidates (--candidates) in their template (--template)", characters)
    seconds = tuple(template.replace(PLACE, name) for name in names)
    return _Alternatives(model, options.read_options, names, options.top_k, "classifier", seconds, "text", outputs)


def _check_size(what: str, characters: int) -> None:
    """Refuse alternatives that are too long to be tokenized with every text."""
    if characters > MOST_CHARACTERS:
        raise BertcliError(f"The {what} have {characters:,} characters, more than {MOST_CHARACTERS:,}: shorten them.")


def _names(what: str, option: str, listed: Iterable[str] | str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in listed.split(",")) if isinstance(listed, str) else tuple(listed)
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise BertcliError(f"There is an empty {what} among {quoted_object(names)} ({option}): leave it out.")
        if name in seen:
            raise BertcliError(
                f"The {what} {quoted(name)} occurs more than once ({option}), so its score would be divided: "
                "leave one out."
            )
        seen.add(name)
    if not names:
        raise BertcliError(f"There is no {what} to score ({option}).")
    return names
