"""Texts in windows, windows in micro-batches: every text is tokenized once and computed with others of similar length.

A text's results do not depend on any of this. Windows make it possible to sort by length without holding a whole file;
micro-batches keep a layer's working set inside the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from bertcli.errors import BertcliError
from bertcli.inputs import Text
from bertcli.model import Model
from bertcli.packing import LEAST_TOKENS
from bertcli.products import each_or_whole
from bertcli.sentence import read_limit
from bertcli.tasks.items import Failure, Item, Reading, Tally, Window
from bertcli.team import thread_count

R = TypeVar("R")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class Task(Generic[Result]):
    """What is done with texts, a window at a time; it pickles as its model's path and its options.

    `span`: micro-batches in a window. Errors: BertcliError for an impossible max_length.
    """

    model: Model
    reading: Reading
    span: int

    def __post_init__(self) -> None:
        self.limit  # noqa: B018  an error now, not at the first text

    @cached_property
    def limit(self) -> int:
        """The number of tokens at which texts are cut."""
        return length_limit(self.model, self.reading.max_length)

    def prepare(self, text: str) -> str:
        """The text (of a pair, the first) as it is passed to the tokenizer."""
        return text

    def prepare_pair(self, text: str) -> str:
        """The second text of a pair as it is passed to the tokenizer."""
        return text

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text that the task cannot use."""

    def compute(self, window: Window) -> Result:
        """The result of a window, with its tally."""
        raise NotImplementedError

    def received(self, result: Result) -> Result:
        """A result computed by another process, made equal to one computed here."""
        return result

    def window(self, group: Sequence[Text], first: int) -> Window:
        """Tokenized texts, the first of which is number `first` of the run.

        Errors: BertcliError for something that is not a text, a text that the task cannot use, and (truncation
        "error") one that is too long.
        """
        found = self._found(group, first)
        items = [item for item in found if isinstance(item, Item)]
        failures = [item for item in found if isinstance(item, Failure)]
        cut, lost = sum(item.tokens.truncated for item in items), sum(item.tokens.lost for item in items)
        return Window(items, failures, Tally(1, len(group), cut, lost, len(failures)))

    def _found(self, group: Sequence[Text], first: int) -> list[Item | Failure]:
        numbered = list(enumerate(group, first))
        if not self.reading.keep_going:
            return [self._checked(item) for item in self._items(numbered)]
        usable = [(index, text) for index, text in numbered if not text.error]
        try:
            items = self._items(usable)
        except BertcliError:  # caused by one text; the others are fine
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
        texts = [self.prepare(text.text) for _, text in numbered]
        pairs = [None if text.pair is None else self.prepare_pair(text.pair) for _, text in numbered]
        tokenized = self.model.tokenizer.encode(texts, pairs, self.limit)
        return [Item(index, text, tokens) for (index, text), tokens in zip(numbered, tokenized, strict=True)]

    def _checked(self, item: Item) -> Item:
        if not item.tokens.ids:
            raise BertcliError(f"The tokenizer produces no tokens for {item.place}, so there is nothing to compute.")
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
    """Micro-batches of about equal size, so many that all cores finish together; shortest texts first."""
    total, cores = sum(lengths), thread_count()
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
    """What `run` gives for each index of `lengths`, in order; `run` is called with one micro-batch at a time."""
    results: dict[int, R] = {}

    def work(batch: list[int]) -> None:
        results.update(zip(batch, run(batch), strict=True))

    batches = even_batches(lengths, batch_tokens)
    with np.errstate(all="ignore"):  # damaged weights overflow; the result is checked, and reported in one line
        each_or_whole(work, batches[::-1])  # one core each, the short ones last to fill the gaps
    return [results[index] for index in range(len(lengths))]
