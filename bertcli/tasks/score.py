"""score: how probable a model finds each token of a text, given all the others.

    loss = -1/N Σ log p(w_i | rest),   pseudo-perplexity = exp(loss)

Source: Salazar et al. 2020, "Masked Language Model Scoring".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from bertcli.errors import BertcliError, damaged, shown
from bertcli.files.texts import Texts, from_values
from bertcli.tasks.checks import head_of
from bertcli.tasks.masked import MaskedSentence, TokenLogits, at_masks
from bertcli.tasks.run import results
from bertcli.tasks.task import (
    CutOptions,
    Item,
    Reading,
    Records,
    RecordStream,
    Task,
    Window,
)

if TYPE_CHECKING:
    from bertcli.model import Model

SPAN = 1  # micro-batches in a window: each token of a text makes another sentence to compute


def score(
    model: Model,
    texts: Iterable[str] | Texts,
    pairs: Iterable[str | None] | str | None = None,
    *,
    target: str | None = None,
    **options: Unpack[CutOptions],
) -> RecordStream:
    """Records {index, text, truncated, tokens: [{token, log_prob}, …], loss, pseudo_perplexity}.

    For a text without tokens: [], None and None. Each token except [CLS] and [SEP] is masked in a pass of its own. With
    `target`, the true sentence, only the masks in the text are predicted, all in one pass: the training loss of a
    masked language model. The other options are those of `Reading`.
    """
    head_of(model, "mlm", "score")
    reading = Reading(**options)
    task = _Score(model, reading, SPAN, target)
    return RecordStream(results(task, from_values(texts, pairs)))


@dataclass(frozen=True, eq=False)
class _Score(Task[Records]):
    target: str | None

    def check(self, item: Item) -> None:
        if self.target is not None:
            _guesses(self.model, item, self.target)

    def compute(self, window: Window) -> Records:
        guesses = [_guesses(self.model, item, self.target) for item in window.items]
        sentences = [sentence for guess in guesses for sentence in guess.sentences]
        truths = [guess.truth for guess in guesses for _ in guess.sentences]

        def read(sentence: int, which: int, row: TokenLogits) -> tuple[int, float]:
            id = truths[sentence][sentences[sentence].positions[which]]
            return id, row.log_probability(id)

        answers = iter(at_masks(self.model, sentences, self.reading.tokens_together, read))
        scored = ([answer for _ in guess.sentences for answer in next(answers)] for guess in guesses)
        return window.records(
            [_record(self.model, item, found) for item, found in zip(window.items, scored, strict=True)]
        )


class _Guesses(NamedTuple):
    """The sentences to compute for a text, and the true ids of its tokens."""

    sentences: list[MaskedSentence]
    truth: Sequence[int]


def _guesses(model: Model, item: Item, target: str | None) -> _Guesses:
    if target is None:
        return _Guesses(_one_by_one(model, item), item.tokens.ids)
    return _Guesses([_all_masks(model, item)], _true_ids(model, item, target))


def _record(model: Model, item: Item, scored: list[tuple[int, float]]) -> dict[str, Any]:
    loss = -math.fsum(log_prob for _, log_prob in scored) / len(scored) if scored else None
    if loss is not None and not loss < math.log(float(2**1000)):
        raise damaged()
    return {
        "index": item.index,
        "text": item.text.text,
        "truncated": item.tokens.truncated,
        "tokens": [{"token": model.tokenizer.piece(id), "log_prob": log_prob} for id, log_prob in scored],
        "loss": loss,
        "pseudo_perplexity": None if loss is None else math.exp(loss),
    }


def _one_by_one(model: Model, item: Item) -> list[MaskedSentence]:
    """The text once for each of its tokens, with that token masked."""
    tokenizer = model.tokenizer
    skipped, mask = {tokenizer.cls_id, tokenizer.sep_id}, [tokenizer.mask_id]
    whole = MaskedSentence(item.tokens.ids, item.tokens.segments, ())
    return [whole.replaced(at, mask, (at,)) for at, id in enumerate(whole.ids) if id not in skipped]


def _all_masks(model: Model, item: Item) -> MaskedSentence:
    """The text as it is, with its own masks to be predicted."""
    mask = model.tokenizer.mask_id
    positions = [position for position, id in enumerate(item.tokens.ids) if id == mask]
    if item.tokens.lost_masks:
        raise BertcliError(
            f"{item.tokens.lost_masks} mask(s) of {item.place} lie beyond the cut: shorten it or raise "
            "max_length (--max-length)."
        )
    if not positions:
        raise BertcliError(
            f"There is no {model.tokenizer.mask_token} in {item.place}, so there is nothing to compare with the target."
        )
    return MaskedSentence(item.tokens.ids, item.tokens.segments, positions)


def _true_ids(model: Model, item: Item, target: str) -> list[int]:
    """Ids of the true sentence, aligned with those of the text, from which they may differ only at its masks."""
    tokenizer = model.tokenizer
    (truth,) = tokenizer.encode([target], [item.text.pair])
    (whole,) = tokenizer.encode([item.text.text], [item.text.pair])
    pieces = list(zip(whole.ids, truth.ids, strict=False))
    wrong = next((i for i, (id, true) in enumerate(pieces) if id not in (true, tokenizer.mask_id)), None)
    if wrong is not None or len(whole.ids) != len(truth.ids):
        at = min(len(pieces) - 1, len(pieces) if wrong is None else wrong)
        raise BertcliError(
            f"The target {shown(target)} does not match {item.place}: they have {len(truth.ids)} and {len(whole.ids)} "
            f"tokens and differ at token {at} ({truth.pieces[at]}); write one {tokenizer.mask_token} for every masked "
            "word piece."
        )
    (kept,) = tokenizer.encode([target], [item.text.pair], len(item.tokens.ids))
    if tokenizer.mask_id in kept.ids:
        raise BertcliError(
            f"There is a {tokenizer.mask_token} in the target or in the second text of {item.place}, so the true word "
            "is unknown there: write the word."
        )
    return kept.ids
