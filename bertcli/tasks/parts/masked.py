"""Compute a masked language model's predictions at some tokens of sentences, over its vocabulary."""

from collections.abc import Collection, Iterator, Sequence
from logging import getLogger
from typing import NamedTuple

import numpy as np

from bertcli.engine.packing import Packed, pack
from bertcli.errors import BertcliError, check_finite
from bertcli.files.texts import Text
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import ROUNDING, best_first
from bertcli.tasks.running.batches import NUMBERS_TOGETHER, Numbers, hidden_states, in_micro_batches
from bertcli.tracing.dispatch import Array

logger = getLogger("bertcli")


class MaskedSentence(NamedTuple):
    """A sentence, which `pack` accepts, and the positions in it to predict, ascending."""

    ids: Sequence[int]
    segments: Sequence[int]
    positions: Sequence[int]

    def replaced(self, position: int, ids: Sequence[int], predicted: Sequence[int] = ()) -> "MaskedSentence":
        """Replace the token at a position by other pieces; those at `predicted` are predicted next."""
        segments = [self.segments[position]] * len(ids)
        return MaskedSentence(
            [*self.ids[:position], *ids, *self.ids[position + 1 :]],
            [*self.segments[:position], *segments, *self.segments[position + 1 :]],
            predicted,
        )


def no_mask(model: LoadedModel, text: Text, title: str, remedy: str) -> BertcliError:
    """The error for a text without a mask; it names one of another model that stands there, as RoBERTa's in BERT's."""
    mask = model.tokenizer.mask_token
    written = model.tokenizer.other_mask(f"{text.text} {text.pair or ''}")
    if written is not None:
        return BertcliError(f"{title} has {written}, and the mask token of {model.name} is {mask}: write {mask}.")
    return BertcliError(f"There is no {mask} in {title}: {remedy}")


def note_other_mask(model: LoadedModel, text: Text, noted: set[str]) -> None:
    """Warn of another model's mask token in a text, unless `noted` says that a warning has named it."""
    written = model.tokenizer.other_mask(f"{text.text} {text.pair or ''}")
    if written is not None and written not in noted:
        noted.add(written)
        mask = model.tokenizer.mask_token
        logger.warning("%s is read as text: the mask token of %s is %s.", written, model.name, mask)


def log_probabilities(
    model: LoadedModel,
    sentences: Sequence[MaskedSentence],
    pieces: int | Sequence[Collection[int]],
    batch_tokens: int | None,
) -> list[list[dict[int, float]]]:
    """The log-probabilities of pieces at the predicted positions of each sentence.

    pieces: how many of the most probable ones, which come best first; or the ids for each sentence.
    log p(piece | rest) = x_piece - log Σ exp(x), where x = MLM(hidden state of the token).
    """
    of_sentences: Sequence[int | Collection[int]] = [pieces] * len(sentences) if isinstance(pieces, int) else pieces

    def run(batch: list[int]) -> list[list[dict[int, float]]]:
        packed = pack([sentences[i] for i in batch])
        starts = packed.offsets[:-1].tolist()
        masks = [start + at for start, i in zip(starts, batch, strict=True) for at in sentences[i].positions]
        if not masks:
            return [[] for _ in batch]
        rows = _over_vocabulary(model, hidden_states(model, packed, np.array(masks)), packed)
        return [[_chosen(*next(rows), of_sentences[i]) for _ in sentences[i].positions] for i in batch]

    extra_keys = [
        (tuple(sentence.positions), None if isinstance(ids, int) else tuple(ids))
        for sentence, ids in zip(sentences, of_sentences, strict=True)
    ]
    return in_micro_batches(sentences, batch_tokens, run, extra_keys)


def _over_vocabulary(model: LoadedModel, hidden: Array, packed: Packed) -> Iterator[tuple[Array, float]]:
    """Yield each hidden state's logits over the vocabulary, and their log Σ exp; computed some at a time."""
    step = max(1, NUMBERS_TOGETHER // model.config.vocab_size)
    for start in range(0, len(hidden), step):
        logits = model.network.predict("mlm", hidden[start : start + step], packed)
        largest = logits.max(axis=1)
        check_finite(logits.min(axis=1))
        # Always row-major, however many rows there are: NumPy sums strided rows in another order.
        below = np.subtract(logits, largest[:, None], order="C")
        totals = np.exp(below, out=below).sum(axis=1, dtype=np.float64)
        log_totals: Numbers = largest.astype(np.float64) + np.log(totals)
        check_finite(log_totals)
        yield from zip(logits, log_totals.tolist(), strict=True)


def _chosen(row: Array, log_total: float, pieces: int | Collection[int]) -> dict[int, float]:
    """log p of so many most probable pieces (of two that are equal the smaller id is first), or of the given ids."""
    ids = _best(row, pieces) if isinstance(pieces, int) else pieces
    return {id: float(row[id]) - log_total for id in ids}


def _best(row: Array, count: int) -> list[int]:
    """The ids of the `count` largest logits, best first."""
    rest = max(0, len(row) - count)
    least = np.partition(row, rest)[rest]
    # `best_first` takes logits that differ by rounding as equal, so it sees all that are as good as the least.
    (ids,) = np.nonzero(row >= least - ROUNDING * np.abs(row).max())
    return [int(id) for id in ids[best_first(row[ids], count)]]
