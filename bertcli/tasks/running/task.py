"""Base class of tasks: tokenize texts in groups, and compute the result of each group. run.py drives it.

Groups make it possible to sort texts by length without holding a whole file.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from bertcli.errors import BertcliError, UnusableText, check_whole, number_of, quoted
from bertcli.files.texts import Failure, Item, Text, Texts
from bertcli.loaded_model import LoadedModel
from bertcli.report.digits import short
from bertcli.tasks.options import ReadOptions
from bertcli.tokens import Tokenizer, Tokens, refuse_long

Record = dict[str, Any]

logger = logging.getLogger("bertcli")


class Progress(NamedTuple):
    """The progress of a run: groups and texts done, texts truncated, tokens lost, texts that could not be used."""

    groups: int = 0
    texts: int = 0
    cut: int = 0
    lost: int = 0
    failed: int = 0

    def after(self, group: "Progress") -> "Progress":
        """The progress after one more group."""
        return Progress(*map(sum, zip(self, group, strict=True)))


START = Progress()


# ------------------------------------------------------------------------------------------- what is read, and results


class Group(NamedTuple):
    """Consecutive texts that are computed together. first: the index of the first of them."""

    texts: list[Text]
    first: int


class TokenizedGroup(NamedTuple):
    """Consecutive texts: what is computed of them, those that failed, and what they add to the run's progress."""

    items: list[Item]
    failures: list[Failure]
    progress: Progress


@dataclass(frozen=True, eq=False, repr=False)
class GroupResult:
    """The result of a group; `progress` is the group's; in results that `run.results` yields, the run's so far."""

    progress: Progress

    def records(self) -> "list[Record]":
        """The records, in input order."""
        raise NotImplementedError

    def with_tokenizer(self, tokenizer: Tokenizer) -> Self:
        """Attach a tokenizer to the tokens of a result that another process has computed."""
        return self


R = TypeVar("R", bound=GroupResult)


@dataclass(frozen=True, eq=False, repr=False)
class Records(GroupResult):
    """Records in input order. `underway`: texts beyond `progress` whose records come with those of later ones."""

    every: list[Record]
    underway: int = 0

    def records(self) -> list[Record]:
        return self.every


# ------------------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True, eq=False, repr=False)
class Task(Generic[R]):
    """A task: tokenizes and computes texts, a group at a time. Pickles as its model's path and its options.

    The constructor checks everything that does not depend on a text. Errors: BertcliError for an impossible max_length.
    """

    remedies_for_cuts: ClassVar[str] = "max_length and truncation; of a command --max-length"
    batches_per_group: ClassVar[int] = 5  # at most: memory is constant after a few hundred texts; 8 are no faster
    model: LoadedModel
    read_options: ReadOptions
    prompt: str = field(default="", kw_only=True)  # put before a text, or before the first of a pair

    def __post_init__(self) -> None:
        _ = self.limit  # raises an error now rather than at the first text

    @cached_property
    def limit(self) -> int:
        """The number of tokens at which texts are cut."""
        return length_limit(self.model, self.read_options.max_length)

    def order_groups(self, texts: Texts) -> Texts:
        """The texts, in the groups that the task needs."""
        return texts

    def reorder_results(self, computed: Generator[R, None, None], start: Progress) -> Generator[R, None, None]:
        """The results as they are given out, from those of groups; `start` is where the run begins."""
        return computed

    @property
    def may_be_empty(self) -> bool:
        """True if a text may have no tokens, as for a static model; a network needs at least one."""
        return not self.model.config.contextual

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        """Tokenize the texts, with the prompt, and truncate them."""
        first = [self.prompt + text.text for text in texts]
        return self.model.tokenizer.encode(first, [text.pair for text in texts], self.limit)

    def items(self, numbered: Sequence[tuple[int, Text]]) -> list[Item]:
        """Tokenize numbered texts: one item for each text, or several."""
        tokenized = self.tokens([text for _, text in numbered])
        return [Item(index, text, tokens) for (index, text), tokens in zip(numbered, tokenized, strict=True)]

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text that the task cannot use."""

    def cost(self, item: Item) -> int:
        """Count the tokens that are computed for an item; a server limits requests and batches by it."""
        return len(item.tokens.ids)

    def predictions(self, item: Item) -> int:
        """Count the predictions in an item's answer, for a server's limit; a long one counts as several."""
        return 1

    def compute(self, group: TokenizedGroup) -> R:
        """Compute the result of a group, with its progress."""
        raise NotImplementedError

    def tokenize_group(self, group: Sequence[Text], first: int) -> TokenizedGroup:
        """Tokenize a group of texts; the first one is number `first` of the run.

        Errors: UnusableText for something that is not a text, a text that the task cannot use, and (truncation
        "error") one that is too long, or BertcliError if that is so of every text; with keep_going each of these texts
        is a failure instead.
        """
        numbered = list(enumerate(group, first))
        failures: list[Failure] = []
        try:
            items = self._checked(numbered)
        except BertcliError as of_all:
            items = []
            for index, text in numbered:
                try:
                    items += self._checked([(index, text)])
                except BertcliError as error:
                    failures.append(Failure(index, text, str(error)))
                if items and failures and not self.read_options.keep_going:
                    break
            if not self.read_options.keep_going:
                why = failures[0].located if failures else str(of_all)
                # Where no text of several can be used, leaving them out is no help.
                raise (UnusableText if items or len(group) == 1 else BertcliError)(why) from None
        cut, lost = sum(item.tokens.truncated for item in items), sum(item.tokens.lost for item in items)
        return TokenizedGroup(items, failures, Progress(1, len(group), cut, lost, len(failures)))

    def _checked(self, numbered: Sequence[tuple[int, Text]]) -> list[Item]:
        for index, text in numbered:
            if text.error:
                raise BertcliError(text.error)
            for side in (text.text, text.pair or ""):
                refuse_long(side, text.location or f"Text {index}")
        items = self.items(numbered)
        for item in items:
            if not item.tokens.ids and not self.may_be_empty:
                raise BertcliError(
                    f"The tokenizer produces no tokens for {item.title}, so there is nothing to compute."
                )
            if item.tokens.truncated and self.read_options.truncation == "error":
                raise BertcliError(
                    f"{item.title} has {self.limit + item.tokens.lost} tokens, more than {self.limit}: shorten it, "
                    'raise max_length (--max-length) where the model allows it, or let it be cut (truncation="warn").'
                )
            self.check(item)
        return items


class RecordTask(Task[Records]):
    """A task that gives a record of each text."""

    def records(self, items: list[Item]) -> Iterable[Record]:
        """The record of each item."""
        raise NotImplementedError

    def failed(self, failure: Failure) -> Record:
        """The record of a text that cannot be used."""
        return failure.record()

    def compute(self, group: TokenizedGroup) -> Records:
        # What is kept of a row is added in merged, and stays as it was read.
        own = map(short, self.records(group.items))
        records = merged(group.items, own, group.failures, self.failed)
        return Records(group.progress, records)


def merged(
    items: Iterable[Item],
    records: Iterable[Record],
    failures: Iterable[Failure],
    failed: Callable[[Failure], Record] = Failure.record,
) -> list[Record]:
    """Merge the records of items and of failures, in the order of the texts, each with what is kept of its row."""
    computed = ((item.index, item.text.with_row(record)) for item, record in zip(items, records, strict=True))
    of_failures = ((failure.index, failure.text.with_row(failed(failure))) for failure in failures)
    return [record for _, record in sorted([*computed, *of_failures], key=itemgetter(0))]


def query_prompt(model: LoadedModel) -> str:
    """Return the prompt that a cross-encoder's files put before every query, the first text of a pair, and log it.

    Empty if the chat template inserts the prompt itself.
    """
    prompt = "" if model.layout is None else model.layout.query_prompt
    chat = bool(prompt) and model.tokenizer.chat is not None
    if prompt:
        where = "is the system's message in the chat template" if chat else "is prepended to every first text"
        logger.info("%s %s, as the checkpoint specifies.", quoted(prompt), where)
    return "" if chat else prompt


def length_limit(model: LoadedModel, max_length: int | None) -> int:
    """Return the number of tokens at which texts are truncated: `max_length`, else the model's own limit.

    The model's limit is its max_seq_length, else the tokenizer's, and at most the number of positions.
    """
    positions = model.config.max_tokens
    if max_length is None:
        of_module = model.layout.transformer_settings.limit if model.layout else None
        model_limit = of_module or model.tokenizer.model_max_length
        max_length = min(model_limit or positions, positions)
    check_whole("max_length", max_length)
    if max_length > positions:
        raise BertcliError(
            f"max_length (--max-length) is {max_length}, more than the {positions} positions of this model."
        )
    model.tokenizer.check_length(max_length, paired=False)
    return max_length


def warn_of_cuts(progress: Progress, limit: int, see: str) -> None:
    """Log one warning for all texts that were truncated; `see` names the options that affect this."""
    _, texts, cut, lost, _ = progress
    cuts = f"{cut:,} of {number_of(texts, 'text')} had more than {number_of(limit, 'token')} and lost {lost:,}"
    logger.warning("%s (see %s).", cuts, see)
