"""Exchange: one request, its tokens, values from the stream, and the counts of its answer.

Not here: what a request may cost (`tasks/limits.py`; the bounds are in service.py).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from time import monotonic
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from typing_extensions import TypedDict

from bertcli.engine.pauses import Abandoned, pausing
from bertcli.errors import BertcliError, NotFinite, number_of
from bertcli.files.texts import CHARACTERS_A_TOKEN, Item, Text
from bertcli.tasks.limits import LISTS, Cost, check_options, check_texts, over, too_many_texts
from bertcli.tasks.running.task import Task
from bertcli.tasks.window_options import WindowOptions
from bertcli.wings.serve.answers import Answer
from bertcli.wings.serve.requests import (
    Refusal,
    TruncatingRequest,
    validate,
)
from bertcli.wings.serve.routes import Route, places_of_options
from bertcli.wings.serve.served_model import Served, spec_of_use
from bertcli.wings.serve.service import Service
from bertcli.wings.serve.stream import SHARE_OF_TIME, Busy, QueuedTask, TooLarge, Value

T = TypeVar("T")
# Characters that are tokenized at a time: this bounds the tokenizer's memory.
CHARACTERS_TOGETHER = 250_000
# Share of the timeout that tokenizing must have taken before its total time is estimated from it.
TELLING_SHARE = 0.05
# Tokens that take about a millisecond to tokenize or write, which may hold up the event loop.
FEW_TOKENS = 1024
# Characters that take about as long to tokenize, whatever a text is cut to.
FEW_CHARACTERS = 4096


class Usage(TypedDict):
    """The number of tokens computed, with OpenAI's names."""

    prompt_tokens: int
    total_tokens: int


@dataclass(eq=False)
class Exchange:
    """One request, and the model that answers it. A route's function gets it as its first argument.

    cuts: the texts that were cut. texts, tokens: counts of what was computed. cost: what it costs, and may cost.
    over: it has been answered, or its client has left, so that nothing more is computed for it.
    """

    service: Service
    request: Request
    served: Served = field(init=False)
    use: str = field(init=False)  # of the model, for this request
    body: dict[str, Any] = field(default_factory=dict)
    cuts: list[dict[str, int]] = field(default_factory=list)
    texts: int = 0
    tokens: int = 0
    cost: Cost = field(init=False)
    bytes_held: int = 0  # of the body
    begun: float = field(default_factory=monotonic)
    over: bool = False
    _call: QueuedTask | None = None  # what the stream computes for it

    def __post_init__(self) -> None:
        self.cost = Cost(self.service.limits.door)

    @property
    def usage(self) -> Usage:
        """The number of tokens computed, with OpenAI's names."""
        return {"prompt_tokens": self.tokens, "total_tokens": self.tokens}

    async def answer(self, route: Route, body: dict[str, Any], *, short: bool = True) -> Answer:
        """Call a route's function with a request's body, read in a thread unless it is short. Errors: Refusal."""
        assert route.request is not None
        most, options = self.cost.limits.texts or 0, places_of_options(route)
        request = await self.in_thread(validate, route.request, body, most, options, unless=short)
        self.served, self.use = self.service.choose(route.uses, request.model)
        return await route.answer(self, request)

    async def in_thread(self, function: Callable[..., T], *arguments: Any, unless: bool = False) -> T:
        """Call a function in another thread, unless it is known to be short, and return its result."""
        if unless:
            return function(*arguments)
        return await self.service.in_thread(function, *arguments)

    async def while_wanted(self, function: Callable[..., T]) -> T:
        """Call a function in another thread; where it looks (`check_wanted`) it stops once nobody waits for it.

        Errors: Abandoned.
        """

        def check() -> None:
            if self.over:
                raise Abandoned

        def run() -> T:
            check()
            with pausing(check):
                return function()

        leaving = asyncio.ensure_future(self._leave())
        try:
            return await self.in_thread(run)
        finally:
            leaving.cancel()

    @property
    def is_short(self) -> bool:
        """True if writing the answer takes less than a millisecond, so that the event loop may do it."""
        return self.tokens + self.cost.predictions <= FEW_TOKENS

    async def values(
        self,
        request: TruncatingRequest,
        use: str,
        texts: list[Text],
        *,
        length: int | None = None,
        reported: bool = True,
        ids: Sequence[Sequence[int]] | None = None,
        **options: Any,
    ) -> list[Value]:
        """Compute the result of a use for each text; an option that is None counts as not given.

        length: cut texts to this many tokens; -1: to the most that the model reads. reported: list the texts that were
        cut in the answer. ids: token ids without special tokens, one list a text; the texts are then empty.
        Errors: TooMuch; Refusal for a full queue, a text that cannot be used; BertcliError for damaged weights.
        """
        service, limits = self.service, self.service.limits
        self.as_list(texts)
        options.setdefault("max_length", None if length == -1 else length)
        given = {name: value for name, value in options.items() if value is not None}
        check_texts(texts, self.cost.limits)
        of_options = check_options(given, texts, self.cost.limits)
        has_lists = any(name in LISTS or isinstance(value, tuple) for name, value in given.items())
        is_short = not has_lists and of_options + sum(map(_length, texts)) <= FEW_CHARACTERS
        if length is not None:
            may_cut = True
        elif request.truncate is not None:
            may_cut = request.truncate
        else:
            may_cut = limits.truncation == "auto"
        estimate = self._estimate(use, texts) + sum(map(len, ids or ()))
        self._admit(estimate)

        def prepare() -> QueuedTask:
            task = self.served.task_of(use, request.truncation_direction, **given)
            if ids is None:
                items, costs = self._tokenized(task, texts)
            else:
                items = self.served.items_of_ids(task, ids)
                costs = self._costs(task, items)
            self._count(items, may_cut, reported)
            return QueuedTask(task, items, costs, self.served.speed, self.begun + limits.timeout)

        leaving = asyncio.ensure_future(self._leave())
        try:
            with service.queue.hold(estimate) as held:
                short = is_short and estimate <= FEW_TOKENS and not self.served.opens_model(given)
                call = await self.in_thread(prepare, unless=short)
                held.tokens = call.left
                service.metrics.observe("te_request_tokenization_duration", monotonic() - self.begun)
                return await self._computed(call)
        except TooLarge as error:
            why = f"The request takes about {number_of(error.seconds, 'second')}, more than {limits.timeout:g}"
            raise Refusal(422, f"{why}: send fewer texts at once.", code="too_many_tokens") from None
        finally:
            leaving.cancel()

    def as_list(self, value: Any) -> list[Any]:
        """Make a list of an input, or of several. Errors: Refusal for none; TooMuch."""
        if value == []:
            raise Refusal(400, "The input is empty: send at least one text.", code="empty")
        values: list[Any] = value if isinstance(value, list) else [value]
        most = self.cost.limits.texts
        if over(len(values), most):
            raise too_many_texts(len(values), most)
        return values

    def end(self) -> None:
        """Compute nothing more for this request."""
        self.over = True
        self.body = {}
        self._call = None

    # -------------------------------------------------------------------------------------------------------- limits

    def _estimate(self, use: str, texts: Sequence[Text]) -> int:
        """About how many tokens the texts have, before they are tokenized."""
        special_tokens = 3
        estimate = sum(special_tokens + _length(text) // CHARACTERS_A_TOKEN for text in texts)
        # A task that reads long texts in windows cuts nothing.
        if issubclass(spec_of_use(use).options, WindowOptions):
            return estimate
        return min(estimate, len(texts) * self.served.model.config.max_tokens)

    def _tokenized(self, task: Task[Any], texts: Sequence[Text]) -> tuple[list[Item], list[int]]:
        """Tokenize texts, and return their items and costs; CHARACTERS_TOGETHER characters are tokenized at a time.

        Errors: Abandoned if nobody waits any more; TooLarge if it takes too long; TooMuch.
        """
        items: list[Item] = []
        costs: list[int] = []
        begun, timeout = monotonic(), self.service.limits.timeout
        for first, group in _grouped(texts):
            if self.over:
                raise Abandoned
            seconds = monotonic() - begun
            expected = seconds * len(texts) / max(first, 1)
            if seconds > TELLING_SHARE * timeout and expected > SHARE_OF_TIME * timeout:
                raise TooLarge(expected)
            of_group = task.tokenize_group(group, first).items
            for item in of_group:
                # Of a long text that was cut, the lost tokens would take more memory than the others.
                if item.tokens.lost > len(item.tokens.ids):
                    item.tokens = item.tokens.without_lost()
            items += of_group
            costs += self._costs(task, of_group)
        return items, costs

    def _costs(self, task: Task[Any], items: Sequence[Item]) -> list[int]:
        """Count the items, and return the tokens computed for each. Errors: TooMuch."""
        # A ranking by late interaction has token vectors in memory, but not in its answer.
        return self.cost.add(task, items, held=self.use == "late")

    def _admit(self, tokens: int) -> None:
        """Refuse a request with more tokens than the queue has room for. Errors: Refusal."""
        excess = self.service.queue.excess(tokens)
        if excess:
            raise busy(self.served.speed.seconds(excess))

    def _count(self, items: Sequence[Item], may_cut: bool, reported: bool) -> None:
        """Count texts and tokens, and the texts that were cut. Errors: Refusal, if none may be cut."""
        metrics = self.service.metrics
        for item in items:
            kept, lost = len(item.tokens.ids), item.tokens.lost
            metrics.observe("te_request_input_length", kept)
            self.texts += 1
            self.tokens += kept
            if not lost:
                continue
            if not may_cut:
                why = f"The text at index {item.index} has {kept + lost:,} tokens, more than {kept:,}"
                raise Refusal(422, f"{why}: shorten it, or have it cut (field truncate).", code="too_long")
            metrics.count("bertcli_truncated_total")
            if reported:
                self.cuts.append({"index": item.index, "tokens": kept + lost, "kept": kept})

    # ------------------------------------------------------------------------------------------------------ computing

    async def _computed(self, call: QueuedTask) -> list[Value]:
        """Wait for the values of a call.

        Errors: Abandoned if the client left while its texts were tokenized; Refusal if it cannot be done in time;
        TooLarge if it could not even with nothing before it; BertcliError for a text that failed, with its index.
        """
        if self.over:
            raise Abandoned
        self._call = call
        try:
            self.service.stream.add(call)
            values = await asyncio.wrap_future(call.future)
        except Busy as error:
            raise busy(error.seconds) from None
        self.service.metrics.observe("te_request_queue_duration", call.begun - call.arrived)
        self.service.metrics.observe("te_request_inference_duration", monotonic() - call.begun)
        for index, value in enumerate(values):
            if isinstance(value, BertcliError):
                kind = NotFinite if isinstance(value, NotFinite) else BertcliError
                raise kind(f"The text at index {index}: {value}")
            if isinstance(value, Exception):
                raise value
        return values

    async def _leave(self) -> None:
        """Wait until the client leaves, and drop its texts."""
        message_type = ""
        while message_type != "http.disconnect":
            message_type = (await self.request.receive())["type"]
        self.over = True
        if self._call is not None:
            with suppress(InvalidStateError):  # it has just been answered
                self._call.future.set_exception(ClientDisconnect())


def _grouped(texts: Sequence[Text]) -> Iterator[tuple[int, list[Text]]]:
    """Group consecutive texts to about CHARACTERS_TOGETHER characters; yield the first one's index and the group."""
    group: list[Text] = []
    size = first = 0
    for index, text in enumerate(texts):
        length = _length(text)
        if group and size + length > CHARACTERS_TOGETHER:
            yield first, group
            group, size, first = [], 0, index
        group.append(text)
        size += length
    yield first, group


def _length(text: Text) -> int:
    """The characters of a text, or of both sides of a pair."""
    return len(text.text) + len(text.pair or "")


def busy(seconds: float) -> Refusal:
    """The refusal of a request that cannot be answered in time. seconds: until it could be accepted."""
    whole = max(1, ceil(seconds))
    why = f"Too many requests are waiting to answer this one in time: try again in {number_of(whole, 'second')}."
    return Refusal(429, why, code="overloaded", retry_after=whole)
