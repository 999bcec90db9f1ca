"""Exchange: one request, from its limits and its tokens through the stream to the counts of its answer."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from typing_extensions import TypedDict

from bertcli.errors import BertcliError, number_of
from bertcli.files.texts import CHARACTERS_A_TOKEN, Item, Text
from bertcli.serve.answers import Answer
from bertcli.serve.requests import LONG_BODY, MOST_CHARACTERS, Refusal, TruncatingRequest, validate
from bertcli.serve.routes import Route
from bertcli.serve.served import Served, spec_of_use
from bertcli.serve.service import Service
from bertcli.serve.stream import SHARE_OF_TIME, Abandoned, Busy, QueuedTask, TooLarge, Value
from bertcli.tasks.compute.task import Task
from bertcli.tasks.options import Windows

T = TypeVar("T")
# Characters that take as long to tokenize as a small model takes to compute one token.
CHARACTERS_OF_COST = 32
# Characters that are tokenized at a time, which bounds the tokenizer's memory.
CHARACTERS_TOGETHER = 250_000
# Share of the timeout after which the time that tokenizing all texts takes is estimated.
TELLING_SHARE = 0.05
# Tokens that take about a millisecond to tokenize or write, which may hold up the event loop.
FEW_TOKENS = 1024
# Options with several values, each of which is computed.
SEVERAL = ("candidates", "targets", "choices")


class Usage(TypedDict):
    """The number of tokens computed, with OpenAI's names."""

    prompt_tokens: int
    total_tokens: int


@dataclass(eq=False)
class Exchange:
    """One request, and the model that answers it; a route's function gets it as its first argument.

    cuts: the texts that were cut. texts, tokens, predictions: numbers of what was computed. over: it has been answered,
    or its client has left, so that nothing more is computed for it.
    """

    service: Service
    request: Request
    served: Served = field(init=False)
    use: str = field(init=False)  # of the model
    body: dict[str, Any] = field(default_factory=dict)
    cuts: list[dict[str, int]] = field(default_factory=list)
    texts: int = 0
    tokens: int = 0
    predictions: int = 0
    bytes_held: int = 0  # of the body
    begun: float = field(default_factory=monotonic)
    over: bool = False
    _call: QueuedTask | None = None  # what the stream computes for it
    _kept: list[Any] = field(default_factory=list)  # which `end` frees

    @property
    def usage(self) -> Usage:
        """The number of tokens computed, with OpenAI's names."""
        return {"prompt_tokens": self.tokens, "total_tokens": self.tokens}

    async def answer(self, route: Route, body: dict[str, Any], *, in_thread: bool = False) -> Answer:
        """What a route gives for a request's body. Errors: Refused."""
        assert route.request is not None
        most = self.service.limits.max_inputs
        request = await self.in_thread(validate, route.request, body, most, whether=in_thread)
        self.keep(request)
        self.served, self.use = self.service.choose(route.uses, request.model)
        return await route.answer(self, request)

    async def in_thread(self, function: Callable[..., T], *arguments: Any, whether: bool = True) -> T:
        """What a function gives that takes a while: in another thread, unless it is known to be short."""
        if not whether:
            return function(*arguments)
        return await self.service.in_thread(function, *arguments)

    @property
    def is_short(self) -> bool:
        """True if the answer is written in less than a millisecond, and so may be in the event loop."""
        return self.tokens + self.predictions <= FEW_TOKENS

    @property
    def is_nearly_done(self) -> bool:
        """True if all of its texts are computed, or in the batch that is computed now."""
        return self._call is not None and self._call.is_nearly_done

    def check_begun(self) -> None:
        """Refuse a request for too much that waits, if its turn has not come. Errors: Refused."""
        if self._call is not None and not self._call.taken:
            raise busy(self.service.stream.give_up(self._call))

    async def values(
        self,
        request: TruncatingRequest,
        task: str,
        texts: list[Text],
        *,
        length: int | None = None,
        reported: bool = True,
        ids: Sequence[Sequence[int]] | None = None,
        **options: Any,
    ) -> list[Value]:
        """What the task with these options gives for each text; an option that is None is not given.

        length: cut texts to so many tokens, -1: as many as the model reads. reported: it is said which were cut.
        ids: what the texts are made of, without special tokens; the texts are then empty.
        Errors: Refused for too many texts, a full queue, a text that cannot be used, damaged weights.
        """
        service, limits = self.service, self.service.limits
        self.listed(texts)
        cut = {"max_length": None if length == -1 else length}
        given = {name: value for name, value in {**cut, **options}.items() if value is not None}
        several = self._check_sizes(texts, given)
        estimate = sum(3 + (len(text.text) + len(text.pair or "")) // CHARACTERS_A_TOKEN for text in texts)
        most = len(texts) * self.served.model.config.max_tokens
        if not issubclass(spec_of_use(task).options, Windows):  # else they are cut
            estimate = min(estimate, most)
        estimate += sum(map(len, ids or ()))
        self._wait_for(estimate)

        may_cut = (limits.truncation == "auto" if request.truncate is None else request.truncate) or length is not None

        def prepare() -> QueuedTask:
            made = self.served.plan(task, request.truncation_direction, **given)
            if ids is None:
                items, costs = self._tokenized(made, texts)
            else:
                items = self.served.items_of_ids(made, ids)
                costs = self._costs(made, items)
            self._note(items, may_cut, reported)
            return QueuedTask(made, items, costs, self.served.speed, self.begun + limits.timeout)

        leaving = asyncio.ensure_future(self._leave())
        try:
            call = await self.in_thread(prepare, whether=several or estimate > FEW_TOKENS)
            service.waiting += call.left - estimate
            estimate = call.left
            service.metrics.observe("te_request_tokenization_duration", monotonic() - self.begun)
            return await self._computed(call)
        except TooLarge as error:
            why = f"It takes about {error.seconds} seconds, which --timeout {limits.timeout:g} does not allow"
            raise Refusal(422, f"{why}: send fewer texts at once.", code="too_many_tokens") from None
        finally:
            leaving.cancel()
            service.waiting -= estimate

    def listed(self, value: Any) -> list[Any]:
        """Make a list of one input or several. Errors: Refused for none, an empty text alone, or too many."""
        if value in ("", []):
            raise Refusal(400, "There is no text: the input is empty.", code="empty")
        values: list[Any] = value if isinstance(value, list) else [value]
        most = self.service.limits.max_inputs
        if len(values) > most:
            raise Refusal(422, f"There are {len(values):,} texts, more than {most:,}.", code="too_many")
        return values

    def keep(self, *values: Any) -> None:
        """Keep values until the end, when another thread frees them."""
        self._kept += values

    def end(self) -> None:
        """Let go of what was kept. Nothing more is computed."""
        self.over = True
        self.body = {}
        kept, self._kept, self._call = self._kept, [], None
        if self.bytes_held > LONG_BODY or not self.is_short:
            self.service.drop(kept)

    # ----------------------------------------------------------------------------------------------- what it may cost

    def _check_sizes(self, texts: Sequence[Text], options: Mapping[str, Any]) -> bool:
        """Refuse what would cost too much, before anything is tokenized; return True if an option has several values.

        Errors: Refused.
        """
        limits = self.service.limits
        counts = {name: len(_listed(options[name])) for name in SEVERAL if name in options}
        most = max(counts.values(), default=0)
        if most > limits.max_candidates:
            why = f"There are {most:,} candidates or targets, more than {limits.max_candidates:,} (--max-candidates)."
            raise Refusal(422, why, code="too_many_candidates")
        self.check_texts([side for text in texts for side in (text.text, text.pair or "")], sides=2)
        copies = max(counts.get("candidates", 1), counts.get("choices", 1))  # a text is read with each of them
        characters = copies * sum(len(text.text) + len(text.pair or "") for text in texts)
        self._check_tokens(characters // CHARACTERS_OF_COST)
        return bool(counts)

    def check_texts(self, texts: Sequence[str], sides: int = 1) -> None:
        """Refuse texts that take too much memory to tokenize; each has so many `sides`. Errors: Refused."""
        for number, text in enumerate(texts):
            if len(text) > MOST_CHARACTERS:
                why = f"Text {number // sides} has {len(text):,} characters, more than {MOST_CHARACTERS:,}: split it."
                raise Refusal(422, why, code="too_long")

    def _tokenized(self, task: Task[Any], texts: Sequence[Text]) -> tuple[list[Item], list[int]]:
        """The items of texts and their costs; CHARACTERS_TOGETHER characters are tokenized at a time.

        Errors: Abandoned if nobody waits any more; TooLarge if it takes too long; Refused for too many tokens, and for
        too large an answer.
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
            made = task.window(group, first).items
            for item in made:
                if item.tokens.lost > len(item.tokens.ids):
                    item.tokens = item.tokens.without_lost()
            items += made
            costs += self._costs(task, made, sum(costs))
        return items, costs

    def _costs(self, task: Task[Any], items: Sequence[Item], before: int = 0) -> list[int]:
        """The tokens computed for each item, after so many for others.

        Errors: Refused for too many, and for too large an answer.
        """
        costs = [*map(task.cost, items)]
        self._check_tokens(before + sum(costs))
        self.count_predictions(sum(map(task.predictions, items)))
        return costs

    def count_predictions(self, count: int) -> None:
        """Count predictions of the answer. Errors: Refused for more than it may have."""
        self.predictions += count
        most = self.service.limits.max_predictions
        if self.predictions > most and self.use != "late":  # a ranking keeps no vectors of tokens
            why = f"The answer would have at least {self.predictions:,} predictions, more than {most:,}"
            raise Refusal(422, f"{why} (--max-predictions): ask for fewer.", code="too_many_predictions")

    def _check_tokens(self, tokens: int) -> None:
        most = self.service.limits.max_request_tokens
        if tokens > most:
            why = f"It takes {tokens:,} tokens to compute, more than {most:,} (--max-request-tokens): ask for less."
            raise Refusal(422, why, code="too_many_tokens")

    def _wait_for(self, tokens: int) -> None:
        """Count tokens as waiting. Errors: Refused for more than may wait; if nothing waits, any number may."""
        service = self.service
        excess = service.waiting + tokens - service.limits.max_queue_tokens
        if service.waiting and excess > 0:
            # What waits is done within the time that a request may take.
            speed = self.served.speed
            raise busy(service.stream.turn_away(speed.seconds(excess), tokens, speed))
        service.waiting += tokens

    def _note(self, items: Sequence[Item], may_cut: bool, reported: bool) -> None:
        """Count texts and tokens, and those that were cut. Errors: Refused, where none may be."""
        metrics = self.service.metrics
        for item in items:
            kept, lost = len(item.tokens.ids), item.tokens.lost
            metrics.observe("te_request_input_length", kept)
            self.texts, self.tokens = self.texts + 1, self.tokens + kept
            if lost and not may_cut:
                why = f"Text {item.index} has {kept + lost} tokens, more than {kept}: shorten it, or ask for it to be "
                raise Refusal(422, f"{why}cut (truncate).", code="too_long")
            if lost:
                metrics.count("bertcli_truncated_total")
                self.cuts += [{"index": item.index, "tokens": kept + lost, "kept": kept}] * reported

    # ------------------------------------------------------------------------------------------------------ computing

    async def _computed(self, call: QueuedTask) -> list[Value]:
        """The values of a call. Errors: Refused for what cannot be done in time; TooLarge, even if nothing waited."""
        self._call = call
        self.keep(call.items, call.values)
        try:
            self.service.stream.add(call)
            values = await asyncio.wrap_future(call.future)
        except Busy as error:
            raise busy(error.retry_after) from None
        self.service.metrics.observe("te_request_queue_duration", call.begun - call.arrived)
        self.service.metrics.observe("te_request_inference_duration", monotonic() - call.begun)
        for index, value in enumerate(values):
            if isinstance(value, Exception):
                raise BertcliError(f"Text {index}: {value}") if isinstance(value, BertcliError) else value
        return values

    async def _leave(self) -> None:
        """When the client leaves, its texts are dropped."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
        self.over = True
        if self._call is not None:
            with suppress(InvalidStateError):  # it has just been answered
                self._call.future.set_exception(ClientDisconnect())


def _grouped(texts: Sequence[Text]) -> Iterator[tuple[int, list[Text]]]:
    """Group consecutive texts to about CHARACTERS_TOGETHER characters; with the number of the first of each group."""
    group: list[Text] = []
    size = first = 0
    for number, text in enumerate(texts):
        length = len(text.text) + len(text.pair or "")
        if group and size + length > CHARACTERS_TOGETHER:
            yield first, group
            group, size, first = [], 0, number
        group.append(text)
        size += length
    yield first, group


def busy(seconds: int) -> Refusal:
    """The refusal of a request that cannot be answered in time; a client may retry after `seconds`."""
    why = f"Too much is waiting to be done in time: try again in {number_of(seconds, 'second')}."
    return Refusal(429, why, code="overloaded", retry_after=seconds)


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    """Make a list of names, which may be one text with commas."""
    return names.split(",") if isinstance(names, str) else names
