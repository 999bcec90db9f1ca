"""score: how probable a model finds each token of a text, given all the others.

    loss = -1/N Σ log p(w_i | rest),   pseudo-perplexity = exp(loss)

Source: Salazar et al. 2020, "Masked Language Model Scoring".

The copies of a text, each with another token masked, are packed like texts. The last layer computes only the masked
tokens, so a copy takes 0.95 of the time that encoding the text takes. Copies are not computed together: they have only
Q, K and V of the first layer in common, a twelfth of the time at four layers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from logging import getLogger

from bertcli.errors import BertcliError, NotFinite, quoted
from bertcli.files.texts import Item
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.compute.fill_mask import own_masks
from bertcli.tasks.parts.guesses import Guess, guesses, scored
from bertcli.tasks.parts.masked import note_other_mask
from bertcli.tasks.running.batches import check_needs
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tasks.score import SPEC, ScoreOptions

logger = getLogger("bertcli")


def plan(model: LoadedModel, options: ScoreOptions) -> RecordTask:
    """Make the task. Errors: BertcliError for a model without the head."""
    check_needs(model, SPEC.needs(options))
    return _Score(model, options.read_options, options.target, options.within_word)


@dataclass(frozen=True, eq=False, repr=False)
class _Score(RecordTask):
    batches_per_group = 1  # each token of a text makes another sentence to compute
    target: str | None
    within_word: bool

    def check(self, item: Item) -> None:
        if self.target is not None:
            self._guesses(item)

    def cost(self, item: Item) -> int:
        """Count the text once for each of its tokens."""
        return len(item.tokens.ids) * (len(item.tokens.ids) if self.target is None else 1)

    def records(self, items: list[Item]) -> Iterator[Record]:
        of_items = [self._guesses(item) for item in items]
        every = [guess for of_item in of_items for guess in of_item]
        log_probs = iter(scored(self.model, every, self.read_options.batch_tokens))
        for item, of_item in zip(items, of_items, strict=True):
            pairs = [pair for guess in of_item for pair in zip(guess.truth, next(log_probs), strict=True)]
            yield _record(self.model, item, pairs, self.target is not None)

    def _guesses(self, item: Item) -> list[Guess]:
        """The text once for each of its tokens, with that token masked; or, with a target, with its own masks."""
        if self.target is None:
            if self.model.tokenizer.mask_id in item.tokens.ids:
                self._note_masks()
            note_other_mask(self.model, item.text, self._noted)
            return guesses(self.model, item.tokens, self.within_word)
        sentence, truth = own_masks(self.model, item), _true_ids(self.model, item, self.target)
        return [Guess(sentence, [truth[at] for at in sentence.positions])]

    @cached_property
    def _noted(self) -> set[str]:
        """Mask tokens of which a note has said what they do in a text."""
        return set()

    def _note_masks(self) -> None:
        mask = self.model.tokenizer.mask_token
        if mask in self._noted:
            return
        self._noted.add(mask)
        logger.info(
            "a text has %s: no word is named for it, so it is left out of the loss, and the text has no "
            "pseudo-perplexity. To score a word there, give the whole text (--target TEXT).", mask,
        )  # fmt: skip


def _record(model: LoadedModel, item: Item, scored: list[tuple[int, float]], at_masks: bool) -> Record:
    loss_sum = -math.fsum(log_prob for _, log_prob in scored) if scored else None
    loss = None if loss_sum is None else loss_sum / len(scored)
    if loss is not None and not loss < math.log(float(2**1000)):
        raise NotFinite
    exponential = None if loss is None else math.exp(loss)
    if at_masks:
        of_text = {"loss_sum": loss_sum, "perplexity": exponential}
    else:
        # It is one only where every token was predicted; no word is named at a mask of the text's own.
        is_whole = model.tokenizer.special_id("mask") not in item.tokens.ids
        of_text = {"pseudo_perplexity": exponential if is_whole else None}
    return {
        "index": item.index,
        "text": item.text.text,
        "truncated": item.tokens.truncated,
        "tokens": [{"token": model.tokenizer.piece(id), "log_prob": log_prob} for id, log_prob in scored],
        "loss": loss,
        **of_text,
    }


def _true_ids(model: LoadedModel, item: Item, target: str) -> list[int]:
    """Tokenize the true sentence. Errors: BertcliError if it differs from the text elsewhere than at its masks."""
    tokenizer = model.tokenizer
    (truth,) = tokenizer.encode([target], [item.text.pair])
    (whole,) = tokenizer.encode([item.text.text], [item.text.pair])
    pieces = list(zip(whole.ids, truth.ids, strict=False))
    wrong = next((i for i, (id, true) in enumerate(pieces) if id not in (true, tokenizer.mask_id)), None)
    if wrong is not None or len(whole.ids) != len(truth.ids):
        at = min(len(pieces) - 1, len(pieces) if wrong is None else wrong)
        raise BertcliError(
            f"The target {quoted(target)} does not match {item.title}: they have {len(truth.ids)} and {len(whole.ids)} "
            f"tokens and differ at token {at} ({truth.pieces[at]}); write one {tokenizer.mask_token} for every masked "
            "word piece."
        )
    (kept,) = tokenizer.encode([target], [item.text.pair], len(item.tokens.ids))
    if tokenizer.mask_id in kept.ids:
        raise BertcliError(
            f"There is a {tokenizer.mask_token} in the target or in the second text of {item.title}, so the true word "
            "is unknown there: write the word."
        )
    return kept.ids
