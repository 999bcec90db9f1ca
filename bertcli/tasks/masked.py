"""Log-probabilities of the vocabulary at chosen tokens, the basis of fill-mask and score.

log p(word | rest) = x_word - log Σ exp(x),   x = MLM(hidden state of the token)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.array import Array
from bertcli.engine.packing import pack
from bertcli.tasks.checks import check_finite, hidden_states
from bertcli.tasks.task import in_micro_batches

if TYPE_CHECKING:
    from bertcli.model import Model

R = TypeVar("R")
NUMBERS_TOGETHER = 1 << 22  # logits held at a time: 16 MB, 137 tokens at BERT's vocabulary


class MaskedSentence(NamedTuple):
    """A sentence (packable as it is) and the positions in it that are to be predicted, ascending."""

    ids: Sequence[int]
    segments: Sequence[int]
    positions: Sequence[int]

    def replaced(self, position: int, ids: Sequence[int], predicted: Sequence[int] = ()) -> MaskedSentence:
        """The sentence with other pieces in one place; those at `predicted` are to be predicted."""
        segments = [self.segments[position]] * len(ids)
        return MaskedSentence(
            [*self.ids[:position], *ids, *self.ids[position + 1 :]],
            [*self.segments[:position], *segments, *self.segments[position + 1 :]],
            predicted,
        )


class TokenLogits(NamedTuple):
    """Logits of one token over the vocabulary, and their log Σ exp."""

    logits: Array
    log_total: float

    def log_probability(self, id: int) -> float:
        return float(self.logits[id]) - self.log_total

    def best(self, count: int) -> list[int]:
        """Ids of the `count` most probable pieces, best first; of equal ones the smaller id first."""
        count = min(count, len(self.logits))
        reach = np.partition(self.logits, len(self.logits) - count)[len(self.logits) - count]
        (ids,) = np.nonzero(self.logits >= reach)
        return [int(id) for id in ids[np.argsort(-self.logits[ids], kind="stable")][:count]]


def at_masks(
    model: Model, sentences: Sequence[MaskedSentence], batch_tokens: int, read: Callable[[int, int, TokenLogits], R]
) -> list[list[R]]:
    """`read(sentence, which of its positions, row)` for all to be predicted; a row is valid only during the call."""
    step = max(1, NUMBERS_TOGETHER // model.config.vocab_size)

    def run(batch: list[int]) -> list[list[R]]:
        packed = pack([sentences[i] for i in batch])
        starts = packed.offsets[:-1].tolist()
        wanted = [
            start + position for start, i in zip(starts, batch, strict=True) for position in sentences[i].positions
        ]
        if not wanted:
            return [[] for _ in batch]
        hidden = hidden_states(model, packed, np.array(wanted))
        rows = _rows(lambda some: model.network.predict("mlm", some, packed), hidden, step)
        return [[read(i, which, next(rows)) for which in range(len(sentences[i].positions))] for i in batch]

    return in_micro_batches([len(sentence.ids) for sentence in sentences], batch_tokens, run)


def _rows(head: Callable[[Array], Array], hidden: Array, step: int) -> Iterator[TokenLogits]:
    """Rows of the vocabulary for hidden states [token, hidden], computed `step` at a time."""
    for start in range(0, len(hidden), step):
        logits = head(hidden[start : start + step])
        largest = logits.max(axis=1)
        check_finite(logits.min(axis=1))
        # Always row-major, however many rows there are: NumPy sums strided rows in another order.
        below = np.subtract(logits, largest[:, None], order="C")
        totals = np.exp(below, out=below).sum(axis=1, dtype=np.float64)
        log_totals: NDArray[np.float64] = largest.astype(np.float64) + np.log(totals)
        check_finite(log_totals)
        yield from map(TokenLogits, logits, log_totals.tolist())
