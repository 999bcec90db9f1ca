"""Texts in windows, a window in micro-batches: every text is tokenized once and computed beside others of its length.

A text's numbers do not depend on any of this. Windows make it possible to sort by length without holding a whole file;
micro-batches keep what a layer works on inside the processor's cache.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np

from bertcli.errors import BertcliError
from bertcli.inputs import Text, Texts
from bertcli.model import Model
from bertcli.packing import LEAST_TOKENS
from bertcli.products import each
from bertcli.sentence import read_limit
from bertcli.tasks.items import Failure, Item, Reading, Tally, Window
from bertcli.team import one_by_one, size

R = TypeVar("R")
logger = logging.getLogger("bertcli")


def windows(
    model: Model,
    texts: Texts,
    reading: Reading,
    span: int,
    prepare: Callable[[str], str] = str,
    check: Callable[[Item], object] = lambda item: None,
) -> Iterator[Window]:
    """Tokenized texts, window by window; the last holds about `span` micro-batches, the first ones less.

    `prepare` changes the first text of each before the tokenizer sees it; `check` raises BertcliError for a text the
    task cannot use. Errors: that; BertcliError for an impossible max_length, a text that is none, and (truncation
    "error") one that is too long. At the end one warning sums up how much was cut.
    """
    work = _Tokenizing(model, reading, prepare, check, length_limit(model, reading.max_length))
    return work.windows(texts, span)


@dataclass(frozen=True)
class _Tokenizing:
    model: Model
    reading: Reading
    prepare: Callable[[str], str]
    check: Callable[[Item], object]
    limit: int

    def windows(self, texts: Texts, span: int) -> Iterator[Window]:
        tally = self.reading.start
        for group in islice(texts.grouped(self.reading.tokens_together, span), tally.windows, None):
            found = self._found(group, tally.texts)
            items = [item for item in found if isinstance(item, Item)]
            failures = [item for item in found if isinstance(item, Failure)]
            tally = Tally(
                tally.windows + 1,
                tally.texts + len(group),
                tally.cut + sum(item.tokens.truncated for item in items),
                tally.lost + sum(item.tokens.lost for item in items),
                tally.failed + len(failures),
            )
            yield Window(items, failures, tally)
        if tally.cut and self.reading.truncation == "warn":
            logger.warning(
                "%d of %d texts had more than %d tokens and lost %d "
                "(see max_length and truncation: --max-length, --truncation).",
                tally.cut,
                tally.texts,
                self.limit,
                tally.lost,
            )

    def _found(self, group: list[Text], first: int) -> list[Item | Failure]:
        numbered = list(enumerate(group, first))
        if not self.reading.keep_going:
            return [self._checked(item) for item in self._items(numbered)]
        usable = [(index, text) for index, text in numbered if not text.error]
        try:
            items = self._items(usable)
        except BertcliError:  # of one text; the others are fine
            items = None
        found = {item.index: item for item in items or ()}
        return [self._attempt(index, text, found.get(index)) for index, text in numbered]

    def _attempt(self, index: int, text: Text, item: Item | None) -> Item | Failure:
        if text.error:
            return Failure(index, text, text.error)
        try:
            return self._checked(item or self._items([(index, text)])[0])
        except BertcliError as error:
            return Failure(index, text, str(error))

    def _items(self, numbered: list[tuple[int, Text]]) -> list[Item]:
        texts, pairs = [self.prepare(text.text) for _, text in numbered], [text.pair for _, text in numbered]
        tokenized = self.model.tokenizer.encode(texts, pairs, self.limit)
        return [Item(index, text, tokens) for (index, text), tokens in zip(numbered, tokenized, strict=True)]

    def _checked(self, item: Item) -> Item:
        if not item.tokens.ids:
            raise BertcliError(f"The tokenizer makes no token of {item.place}, so there is nothing to compute.")
        if item.tokens.truncated and self.reading.truncation == "error":
            raise BertcliError(
                f"{item.place} has {self.limit + item.tokens.lost} tokens, more than {self.limit}: shorten it, raise "
                "max_length (--max-length) where the model allows it, or let it be cut (--truncation warn)."
            )
        self.check(item)
        return item


def length_limit(model: Model, max_length: int | None) -> int:
    """The number of tokens at which texts are cut: `max_length`, else the smallest of the model's own limits."""
    positions = model.config.max_position_embeddings
    if max_length is None:
        own = (model.tokenizer.model_max_length, read_limit(model.path) if model.path else None)
        max_length = min(positions, *(limit for limit in own if limit is not None), positions)
    if max_length > positions:
        raise BertcliError(
            f"max_length (--max-length) is {max_length}, more than the {positions} positions of this model."
        )
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


def even_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Micro-batches of about one size, as many as come to an end together on all cores; shortest texts first."""
    total, cores = sum(lengths), size()
    rounds = max(1, -(-10 * total // (9 * cores * batch_tokens)))  # a tenth below the limit, as texts are not cut
    count = max(1, min(rounds * cores, total // LEAST_TOKENS))
    shares: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        middle = 2 * before + lengths[index]
        shares[min(count - 1, middle * count // max(1, 2 * total))].append(index)
        before += lengths[index]
    return [
        [share[i] for i in batch]
        for share in shares
        for batch in micro_batches([lengths[index] for index in share], batch_tokens)
    ]


def in_micro_batches(lengths: Sequence[int], batch_tokens: int, run: Callable[[list[int]], Iterable[R]]) -> list[R]:
    """What `run` gives for each index of `lengths`, in their order; `run` is called with one micro-batch at a time."""
    results: dict[int, R] = {}

    def work(batch: list[int]) -> None:
        results.update(zip(batch, run(batch), strict=True))

    batches = even_batches(lengths, batch_tokens)
    with np.errstate(all="ignore"):  # damaged weights overflow; what comes of it is checked, and said in one line
        (each if len(batches) > 1 else one_by_one)(work, batches[::-1])  # a core each, the short ones to fill the gaps
    return [results[index] for index in range(len(lengths))]
