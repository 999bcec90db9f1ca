"""Texts in windows, a window in micro-batches: every text is tokenized once and computed beside others of its length.

A text's numbers do not depend on any of this. Windows make it possible to sort by length without holding a whole file;
micro-batches keep what a layer works on inside the processor's cache.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from bertcli.errors import BertcliError
from bertcli.inputs import Text, Texts
from bertcli.model import Model
from bertcli.sentence import read_limit
from bertcli.tokens import Tokens
from bertcli.untrusted import shown

R = TypeVar("R")
Truncation = Literal["warn", "error", "silent"]

BATCH_TOKENS = (
    1000  # about what keeps BERT-base's feed-forward layer in the second-level cache: 1.9 times 6,000 at once
)
logger = logging.getLogger("bertcli")


@dataclass(frozen=True)
class Reading:
    """How texts are read: where they are cut, what is said about it, how many tokens are computed together."""

    max_length: int | None = None
    truncation: Truncation = "warn"
    batch_tokens: int | None = None

    @property
    def tokens_together(self) -> int:
        return max(1, self.batch_tokens or BATCH_TOKENS)


@dataclass(frozen=True, slots=True)
class Item:
    """A text on its way: its number in the input, itself, its tokens."""

    index: int
    text: Text
    tokens: Tokens

    @property
    def place(self) -> str:
        """What to call the text in a message."""
        return f"{self.text.place or f'text {self.index}'} ({shown(self.text.text)})"


def windows(
    model: Model, texts: Texts, reading: Reading, span: int, prepare: Callable[[str], str] = str
) -> Iterator[list[Item]]:
    """Tokenized texts, window by window; the last holds about `span` micro-batches, the first ones less.

    `prepare` changes the first text of each before the tokenizer sees it. Errors: BertcliError for an impossible
    max_length, a text that is none, and (truncation "error") one that is too long. At the end one warning sums up how
    much was cut.
    """
    limit = length_limit(model, reading.max_length)
    return _tokenized(model, texts, reading, span, prepare, limit)


def _tokenized(
    model: Model, texts: Texts, reading: Reading, span: int, prepare: Callable[[str], str], limit: int
) -> Iterator[list[Item]]:
    index = cut = lost = 0
    for window in texts.grouped(reading.tokens_together, span):
        tokenized = model.tokenizer.encode(
            [prepare(text.text) for text in window], [text.pair for text in window], limit
        )
        items = [Item(index + i, text, tokens) for i, (text, tokens) in enumerate(zip(window, tokenized, strict=True))]
        for item in items:
            _check_item(item, limit, reading.truncation)
        index += len(items)
        cut += sum(tokens.truncated for tokens in tokenized)
        lost += sum(tokens.lost for tokens in tokenized)
        yield items
    if cut and reading.truncation == "warn":
        logger.warning(
            "%d of %d texts had more than %d tokens and lost %d (see --max-length, --truncation).",
            cut,
            index,
            limit,
            lost,
        )


def _check_item(item: Item, limit: int, truncation: Truncation) -> None:
    if not item.tokens.ids:
        raise BertcliError(f"The tokenizer makes no token of {item.place}, so there is nothing to compute.")
    if item.tokens.truncated and truncation == "error":
        raise BertcliError(
            f"{item.place} has {limit + item.tokens.lost} tokens, more than {limit}: shorten it, raise --max-length "
            "where the model allows it, or let it be cut with --truncation warn."
        )


def length_limit(model: Model, max_length: int | None) -> int:
    """The number of tokens at which texts are cut: `max_length`, else the smallest of the model's own limits."""
    positions = model.config.max_position_embeddings
    if max_length is None:
        own = (model.tokenizer.model_max_length, read_limit(model.path) if model.path else None)
        max_length = min(positions, *(limit for limit in own if limit is not None), positions)
    if max_length > positions:
        raise BertcliError(f"--max-length {max_length} is more than the {positions} positions of this model.")
    model.tokenizer.check_length(max_length, paired=False)
    return max_length


def micro_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices of `lengths`, shortest first, in groups whose lengths sum to at most `batch_tokens` (or one by one)."""
    batch: list[int] = []
    total = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and total + lengths[index] > batch_tokens:
            yield batch
            batch, total = [], 0
        batch.append(index)
        total += lengths[index]
    if batch:
        yield batch


def in_micro_batches(lengths: Sequence[int], batch_tokens: int, run: Callable[[list[int]], Iterable[R]]) -> list[R]:
    """What `run` gives for each index of `lengths`, in their order; `run` is called with one micro-batch at a time."""
    results: dict[int, R] = {}
    with np.errstate(all="ignore"):  # damaged weights overflow; what comes of it is checked, and said in one line
        for batch in micro_batches(lengths, batch_tokens):
            results.update(zip(batch, run(batch), strict=True))
    return [results[index] for index in range(len(lengths))]
