"""The one number of a text that `explain` and `heads --ablate` ask about: what it is, and what a pass says it is.

label   ln(p / (1 - p)), the log-odds of a label        (for regression the output itself; a reranker's score is one)
word    ln p(word | rest), the log-probability of a word at the text's mask
other   the cosine of the text's vector with that of another text, as `encode` gives them
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.packing import Packed, pack
from bertcli.errors import BertcliError, shown
from bertcli.tasks.checks import check_finite, head_of, hidden_states, logits
from bertcli.tasks.classify import Head, chosen_head, labels_of, own_activation
from bertcli.tasks.encode import Plan, pool, unit
from bertcli.tasks.prepared import Preparation
from bertcli.tasks.task import length_limit
from bertcli.tokens import Tokens

if TYPE_CHECKING:
    from bertcli.model import Model

Numbers = NDArray[np.float64]
logger = logging.getLogger("bertcli")


class Sentence(NamedTuple):
    """Tokens as the model reads them; `mask` is the position of the mask whose word is asked about, if one is."""

    ids: list[int]
    segments: list[int]
    mask: int | None = None


class Asked(NamedTuple):
    """Which result is asked about; at most one of these. None of them: the predicted label, or the word at the mask."""

    label: str | None = None
    word: str | None = None
    other: str | None = None


@dataclass(frozen=True)
class Result:
    """A number for every sentence of a batch. `target` says which: a label, a word, or the other text."""

    model: Model
    target: str

    @property
    def meaning(self) -> str:
        """What the number is, with its target."""
        raise NotImplementedError

    def of(self, sentences: Sequence[Sentence]) -> Numbers:
        """The numbers [sentence] of one packed batch."""
        raise NotImplementedError


@dataclass(frozen=True)
class LabelResult(Result):
    """x_label - ln Σ exp(x_other): the log-odds of a softmax; with a sigmoid, and for regression, the logit itself."""

    head: Head
    index: int

    @property
    def meaning(self) -> str:
        raw = self.head != "nsp" and own_activation(self.model) not in ("softmax", "sigmoid")
        return f"the output {self.target}" if raw else f"the log-odds of {self.target}"

    def of(self, sentences: Sequence[Sentence]) -> Numbers:
        outputs = logits(self.model, self.head, pack(sentences)).astype(np.float64)
        asked = outputs[:, self.index]
        if self.head == "nsp" or own_activation(self.model) == "softmax":
            asked = asked - np.logaddexp.reduce(np.delete(outputs, self.index, axis=1), axis=1)
        return asked


@dataclass(frozen=True)
class WordResult(Result):
    """x_word - ln Σ exp(x), where x = MLM(hidden state of the mask)."""

    id: int

    @property
    def meaning(self) -> str:
        return f"the log-probability of {self.target} at the mask"

    def of(self, sentences: Sequence[Sentence]) -> Numbers:
        outputs = mask_logits(self.model, sentences)
        found: Numbers = outputs[:, self.id] - np.logaddexp.reduce(outputs, axis=1)
        return found


@dataclass(frozen=True)
class CosineResult(Result):
    """cos(v, w), where w is the vector of the other text."""

    plan: Plan
    vector: NDArray[np.float32]

    @property
    def meaning(self) -> str:
        return f"the cosine with {self.target!r}"

    def of(self, sentences: Sequence[Sentence]) -> Numbers:
        found: Numbers = _vectors(self.model, self.plan, pack(sentences)).astype(np.float64) @ self.vector
        return found


def prepared(model: Model, text: str, asked: Asked) -> str:
    """The text as the tokenizer gets it: for a cosine with the prompt of a sentence model, as `encode` does."""
    return text if asked.other is None else Preparation.make(model).prepared(text)


def tokens_of(model: Model, text: str, pair: str | None = None, limit: int | None = None) -> Tokens:
    """A text's tokens; one that is too long is cut, with a warning. BertcliError if there are none."""
    limit = length_limit(model, None) if limit is None else limit
    (tokens,) = model.tokenizer.encode([text], None if pair is None else [pair], limit)
    if not tokens.ids:
        raise BertcliError(f"The tokenizer produces no tokens for {shown(text)}, so there is nothing to compute.")
    if tokens.lost:
        logger.warning("the text %s was cut to %d tokens; %d were lost.", shown(text), limit, tokens.lost)
    return tokens


def sentence_of(model: Model, tokens: Tokens, text: str, asked: Asked) -> Sentence:
    """Tokens as a sentence whose result is asked about.

    Errors: BertcliError for several results at once, several masks, or none where a word is asked about.
    """
    if sum(one is not None for one in asked) > 1:
        raise BertcliError(
            "Ask about one result: a label, a word, or the cosine with a text (--label, --word, --with)."
        )
    if not _asks_for_word(model, tokens, asked):
        return Sentence(tokens.ids, tokens.segments)
    mask = model.tokenizer.mask_token
    positions = [i for i, id in enumerate(tokens.ids) if id == model.tokenizer.mask_id]
    if len(positions) != 1:
        raise BertcliError(f"{shown(text)} has {len(positions)} {mask}: write one, where a word is to be predicted.")
    return Sentence(tokens.ids, tokens.segments, positions[0])


def _asks_for_word(model: Model, tokens: Tokens, asked: Asked) -> bool:
    """Whether the result is that of a mask: a word is asked for, or nothing is and the text has a mask."""
    if asked.word is not None or asked.label is not None or asked.other is not None:
        return asked.word is not None
    return "mlm" in model.heads and model.tokenizer.mask_id in tokens.ids


def result_of(model: Model, sentence: Sentence, asked: Asked) -> Result:
    """The result that is asked about; the label or word that is not named is the one the model predicts here.

    Errors: BertcliError for a missing head, and an unknown label or word.
    """
    if sum(one is not None for one in asked) > 1:
        raise BertcliError(
            "Ask about one result: a label, a word or the cosine with another text (--label, --word, --with)."
        )
    if asked.other is not None:
        plan = Plan.make(model)
        vector = _vectors(model, plan, pack([tokens_of(model, Preparation.make(model).prepared(asked.other))]))[0]
        return CosineResult(model, asked.other, plan, vector)
    if sentence.mask is not None:
        return _word_result(model, sentence, asked)
    head = chosen_head(model, None)
    head_of(model, head, "Explaining a label")
    labels = labels_of(model, head)
    if asked.label is not None and asked.label not in labels:
        raise BertcliError(f"There is no label {shown(asked.label)}; this model's are {', '.join(map(shown, labels))}.")
    if asked.label is not None:
        return LabelResult(model, asked.label, head, labels.index(asked.label))
    best = int(logits(model, head, pack([sentence]))[0].argmax())
    return LabelResult(model, labels[best], head, best)


def _word_result(model: Model, sentence: Sentence, asked: Asked) -> WordResult:
    head_of(model, "mlm", "Explaining a mask")
    if asked.word is None:
        best = int(mask_logits(model, [sentence])[0].argmax())
        return WordResult(model, model.tokenizer.piece(best), best)
    pieces = model.tokenizer.pieces_of(asked.word)
    if len(pieces) != 1 or pieces[0] == model.tokenizer.unk_id:
        raise BertcliError(f"{shown(asked.word)} is not one piece of the vocabulary: ask about a word that is.")
    return WordResult(model, asked.word, pieces[0])


def mask_logits(model: Model, sentences: Sequence[Sentence]) -> Numbers:
    """What the masked-language-model head says at the mask of each sentence: [sentence, vocabulary]."""
    batch = pack(sentences)
    rows = batch.first + np.array([sentence.mask for sentence in sentences])
    found = model.network.predict("mlm", hidden_states(model, batch, rows), batch)
    check_finite(found)
    return found.astype(np.float64)


def _vectors(model: Model, plan: Plan, batch: Packed) -> NDArray[np.float32]:
    """Vectors of length 1 [sentence, width], pooled as the checkpoint says (else their mean)."""
    hidden, left_out = hidden_states(model, batch), Preparation.make(model).left_out
    pooled = [
        model.network.predict("pooler", hidden[batch.first], batch)
        if mode == "pooler"
        else pool(hidden, batch.offsets, mode, left_out)
        for mode in plan.pooling
    ]
    found = unit(plan.finish(np.concatenate(pooled, axis=1)))
    check_finite(found)
    return found
