"""Texts on their way through a task: tokenized once, in windows, and computed with others of similar length.

Windows make it possible to sort by length without holding a whole file; micro-batches keep a layer's working set inside
the processor's cache. What a text gets does not depend on either, beyond 1e-6 of a vector's largest number.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import numpy as np

from bertcli.checkpoint.sentence import read_limit
from bertcli.engine.array import Array
from bertcli.engine.packing import LEAST_TOKENS, pack
from bertcli.engine.threads import each_or_whole, thread_count
from bertcli.errors import BertcliError, shown
from bertcli.files.texts import Chunk, Failure, Text
from bertcli.tasks.activation import Numbers
from bertcli.tasks.checks import check_choice, check_count, check_whole, logits
from bertcli.tokens import Tokens

if TYPE_CHECKING:
    from bertcli.model import Model

R = TypeVar("R")
Result = TypeVar("Result")
Record = dict[str, Any]
Truncation = Literal["warn", "error", "silent"]

BATCH_TOKENS = 1536  # at 128 tokens a text 1.07 times as fast as 1,000, and 1.9 times as fast as 6,000

logger = logging.getLogger("bertcli")


class Progress(NamedTuple):
    """How far a run has got: windows and texts done, texts cut, tokens lost by that, texts that could not be used."""

    windows: int = 0
    texts: int = 0
    cut: int = 0
    lost: int = 0
    failed: int = 0

    def after(self, window: Progress) -> Progress:
        """The progress after one more window."""
        return Progress(*map(sum, zip(self, window, strict=True)))


START = Progress()


Workers = int | Literal["auto"] | None  # how many processes; None: this one alone


class Options(TypedDict, total=False):
    """How a task reads texts, and who computes them: keywords of every task, the fields of Reading."""

    max_length: int | None
    batch_tokens: int | None
    keep_going: bool
    workers: Workers
    start: Progress


class CutOptions(Options, total=False):
    """The same for tasks that cut texts which are too long."""

    truncation: Truncation


@dataclass(frozen=True)
class Reading:
    """How texts are read: where they are cut, how that is reported, how many tokens are computed together, and by whom.

    max_length: tokens; None: the model's own limit. truncation: one warning at the end, an error, or nothing.
    keep_going: a text that cannot be used becomes a Failure in its place. workers: processes, see `bertcli.tasks.run`.
    start: the `progress` at which an earlier run stopped; pass the same texts from the beginning and its windows are
    skipped.
    """

    max_length: int | None = None
    truncation: Truncation = "warn"
    batch_tokens: int | None = None
    keep_going: bool = False
    workers: Workers = None
    start: Progress = START

    def __post_init__(self) -> None:
        check_choice("truncation", self.truncation, Truncation)
        check_whole("max_length", self.max_length)
        check_count("batch_tokens", self.batch_tokens)

    @property
    def tokens_together(self) -> int:
        return self.batch_tokens or BATCH_TOKENS


@dataclass(frozen=True, slots=True)
class Item:
    """A text on its way, or a part of it: the number of the text in the input, the text, its tokens."""

    index: int
    text: Text
    tokens: Tokens
    chunk: Chunk | None = None

    @property
    def shown(self) -> str:
        """The text, or the part of it."""
        return self.text.text if self.chunk is None else self.text.text[self.chunk.start : self.chunk.end]

    @property
    def named(self) -> Record:
        """How a record begins: {index}, and where there is one the text's own id and the part's chunk, start, end."""
        id = {} if self.text.id is None else {"id": self.text.id}
        chunk = {} if self.chunk is None else dict(zip(("chunk", "start", "end"), self.chunk, strict=True))
        return {"index": self.index, **id, **chunk}

    @property
    def place(self) -> str:
        """What to call the text in a message."""
        return f"{self.text.place or f'text {self.index}'} ({shown(self.text.text)})"


def warn_of_cuts(progress: Progress, limit: int, see: str) -> None:
    """One warning for all texts that were cut; `see` names the options that affect this."""
    _, texts, cut, lost, _ = progress
    logger.warning("%d of %d texts had more than %d tokens and lost %d (see %s).", cut, texts, limit, lost, see)


class Window(NamedTuple):
    """Consecutive texts: those to compute, those that failed, and what they add to the run's progress."""

    items: list[Item]
    failures: list[Failure]
    progress: Progress

    def records(self, computed: Iterable[Record]) -> Records:
        """The records of `items`, with those of the failures at their places."""
        return Records(merged(computed, self.failures), self.progress)


class Records(NamedTuple):
    """The records of a window in input order, with its progress; in the final results, that of the run so far.

    `underway`: how many texts beyond `progress` are computed, whose records come with those of later ones.
    """

    records: list[Record]
    progress: Progress
    underway: int = 0


class RecordStream(Iterator[Record]):
    """Records one by one, or (`blocks`) as they are computed, a window at a time."""

    def __init__(self, blocks: Generator[Records, None, None]) -> None:
        self.blocks = blocks
        self._records = (record for block in blocks for record in block.records)

    def __next__(self) -> Record:
        return next(self._records)


def merged(computed: Iterable[Record], failures: Iterable[Failure]) -> list[Record]:
    """Records in the order of their index, including those of failures."""
    return sorted([*computed, *(failure.record() for failure in failures)], key=lambda record: int(record["index"]))


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

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        """What the network sees of each text."""
        return self.model.tokenizer.encode([text.text for text in texts], [text.pair for text in texts], self.limit)

    def items(self, numbered: Sequence[tuple[int, Text]]) -> list[list[Item]]:
        """Of each text, with its number, what is computed for it: one item, or several."""
        tokenized = self.tokens([text for _, text in numbered])
        return [[Item(index, text, tokens)] for (index, text), tokens in zip(numbered, tokenized, strict=True)]

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text that the task cannot use."""

    def compute(self, window: Window) -> Result:
        """The result of a window, with its progress."""
        raise NotImplementedError

    def logits(self, head: str, sentences: Sequence[Tokens]) -> Numbers:
        """What a head that reads sentences says of each: [sentence, output]."""

        def run(batch: list[int]) -> Array:
            return logits(self.model, head, pack([sentences[i] for i in batch]))

        rows = in_micro_batches([len(one.ids) for one in sentences], self.reading.tokens_together, run)
        return np.stack(rows).astype(np.float64) if rows else np.empty((0, 1))

    def token_logits(self, head: str, sentences: Sequence[Tokens]) -> list[Numbers]:
        """What a head that reads tokens says of each sentence's: [token, output]."""

        def run(batch: list[int]) -> list[Numbers]:
            packed = pack([sentences[i] for i in batch])
            return np.split(logits(self.model, head, packed).astype(np.float64), packed.offsets[1:-1])

        return in_micro_batches([len(one.ids) for one in sentences], self.reading.tokens_together, run)

    def received(self, result: Result) -> Result:
        """A result computed by another process, made equal to one computed here."""
        return result

    def window(self, group: Sequence[Text], first: int) -> Window:
        """Tokenized texts, the first of which is number `first` of the run.

        Errors: BertcliError for something that is not a text, a text that the task cannot use, and (truncation
        "error") one that is too long.
        """
        found = self._found(group, first)
        items = [item for each in found if not isinstance(each, Failure) for item in each]
        failures = [each for each in found if isinstance(each, Failure)]
        cut, lost = sum(item.tokens.truncated for item in items), sum(item.tokens.lost for item in items)
        return Window(items, failures, Progress(1, len(group), cut, lost, len(failures)))

    def _found(self, group: Sequence[Text], first: int) -> list[list[Item] | Failure]:
        numbered = list(enumerate(group, first))
        if not self.reading.keep_going:
            return [self._checked(items) for items in self.items(numbered)]
        usable = [(index, text) for index, text in numbered if not text.error]
        try:
            found = dict(zip((index for index, _ in usable), self.items(usable), strict=True))
        except BertcliError:  # caused by one text; the others are fine
            found = {}
        return [self._attempt(index, text, found.get(index)) for index, text in numbered]

    def _attempt(self, index: int, text: Text, items: list[Item] | None) -> list[Item] | Failure:
        if text.error:
            return Failure(index, text, text.error)
        try:
            return self._checked(items or self.items([(index, text)])[0])
        except BertcliError as error:
            return Failure(index, text, str(error))

    def _checked(self, items: list[Item]) -> list[Item]:
        for item in items:
            self._check(item)
        return items

    def _check(self, item: Item) -> None:
        if not item.tokens.ids and self.model.config.contextual:
            raise BertcliError(f"The tokenizer produces no tokens for {item.place}, so there is nothing to compute.")
        if item.tokens.truncated and self.reading.truncation == "error":
            raise BertcliError(
                f"{item.place} has {self.limit + item.tokens.lost} tokens, more than {self.limit}: shorten it, raise "
                "max_length (--max-length) where the model allows it, or let it be cut (--truncation warn)."
            )
        self.check(item)


def length_limit(model: Model, max_length: int | None) -> int:
    """The number of tokens at which texts are cut: `max_length`, else the smallest of the model's own limits."""
    positions = model.config.max_tokens
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
