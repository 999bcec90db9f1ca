"""A request on its way: which model it is for, its texts through the stream, and what is to be said of them."""

import asyncio
import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal, TypeVar

from starlette.requests import Request

from bertcli.errors import BertcliError, damaged, shown
from bertcli.files.texts import CHARACTERS_A_TOKEN, Item, Text
from bertcli.serve.fields import Refused
from bertcli.serve.metrics import Metrics
from bertcli.serve.served import Served, chosen
from bertcli.serve.stream import Call, Stream, Value
from bertcli.tasks.compute.task import Task

T = TypeVar("T")
FEW = 1024  # tokens: what takes a millisecond, as tokenizing them does, holds up nobody
UNCUT = ("tag", "answer")  # read in windows
OPTIONS = re.compile(r" \([^()]*--[a-z][^()]*\)")  # the names on the command line that a message gives


@dataclass(frozen=True)
class Limits:
    """How much is accepted, how long it may take, and from whom."""

    truncation: Literal["auto", "error"] = "auto"
    max_inputs: int = 2048  # texts of a request
    max_body: int = 32  # MB
    max_queue_tokens: int = 262144
    batch_tokens: int = 1536
    timeout: float = 60  # seconds for a request
    api_key: str | None = None
    cors: tuple[str, ...] = ()
    quiet: bool = False  # without a line for every request


@dataclass(eq=False)
class Service:
    """What all requests share."""

    models: Sequence[Served]
    limits: Limits
    stream: Stream
    metrics: Metrics
    note: Callable[[str], None]
    unknown: set[str] = field(default_factory=set)  # names of models that are not served, logged once each
    waiting: int = 0  # tokens, as estimated from their characters, of requests that are not answered yet
    # What waits for files and tokenizers does not hold up the loop that reads and answers.
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="bertcli_read"))


@dataclass(eq=False)
class Ask:
    """A request. `cuts`: which of its texts were cut; `tokens` and `texts`: how many were computed."""

    service: Service
    request: Request
    cuts: list[dict[str, int]] = field(default_factory=list)
    texts: int = 0
    tokens: int = 0
    begun: float = field(default_factory=monotonic)

    def chosen(self, uses: Sequence[str], name: str | None) -> tuple[Served, str]:
        """The model for it; see the function of this name. Errors: Refused."""
        service = self.service
        if name is not None and name not in service.unknown and not any(one.is_called(name) for one in service.models):
            if len(service.unknown) < service.limits.max_inputs:
                service.unknown.add(name)
            service.note(f"a request names the model {shown(name)}, which is not served; the first that fits answers.")
        try:
            return chosen(service.models, uses, name)
        except BertcliError as error:
            raise Refused(422, str(error), "model", "wrong_model") from None

    async def apart(self, function: Callable[..., T], *arguments: Any, tokens: float = math.inf) -> T:
        """What a function gives, which takes a while: in another thread, unless it is about few `tokens`.

        Errors: Refused in place of BertcliError.
        """
        try:
            if tokens <= FEW:
                return function(*arguments)
            return await asyncio.get_running_loop().run_in_executor(self.service.pool, function, *arguments)
        except BertcliError as error:
            raise Refused(422, OPTIONS.sub("", str(error)), code="unusable") from None

    async def values(
        self,
        served: Served,
        task: str,
        texts: Sequence[Text],
        options: Mapping[str, Any],
        *,
        truncate: bool | None = None,
        reported: bool = True,
    ) -> list[Value]:
        """What the task with these options gives for each text.

        truncate: whether a text may be cut (None: as the server was told).

        reported: whether it is said which of them were cut, by their numbers.
        Errors: Refused for too many texts, a full queue, a text that cannot be used, damaged weights, lack of time.
        """
        limits, service = self.service.limits, self.service
        if not texts:
            raise Refused(400, "There is no text: the input is empty.", code="empty")
        if len(texts) > limits.max_inputs:
            raise Refused(422, f"There are {len(texts):,} texts, more than {limits.max_inputs:,}.", code="too_many")
        size = sum(3 + (len(text.text) + len(text.pair or "")) // CHARACTERS_A_TOKEN for text in texts)
        if service.waiting and service.waiting + size > limits.max_queue_tokens:
            raise Refused(429, "Too much is waiting: try again later.", code="overloaded")
        service.waiting += size
        try:
            silent = {} if task in UNCUT else {"truncation": "silent"}
            made, items = await self.apart(_prepared, served, task, texts, {**silent, **options}, tokens=size)
            service.metrics.observe("te_request_tokenization_duration", monotonic() - self.begun)
            self._note(items, reported, limits.truncation == "auto" if truncate is None else truncate)
            return await self._computed(made, items)
        finally:
            service.waiting -= size

    def _note(self, items: Sequence[Item], reported: bool, truncate: bool) -> None:
        """Count texts and tokens, and those that were cut. Errors: Refused, where none may be."""
        for item in items:
            tokens = item.tokens
            self.service.metrics.observe("te_request_input_length", len(tokens.ids))
            self.texts, self.tokens = self.texts + 1, self.tokens + len(tokens.ids)
            if tokens.truncated:
                cut = {"index": item.index, "tokens": len(tokens.ids) + tokens.lost, "kept": len(tokens.ids)}
                if not truncate:
                    why = f"Text {item.index} has {cut['tokens']} tokens, more than {cut['kept']}: shorten it, or ask "
                    raise Refused(422, f"{why}for it to be cut (truncate).", code="too_long")
                self.service.metrics.count("bertcli_truncated_total")
                if reported:
                    self.cuts.append(cut)

    async def _computed(self, task: Task[Any], items: Sequence[Item]) -> list[Value]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def answered(values: list[Value]) -> None:
            if not answer.done():
                answer.set_result(values)

        call = Call(task, items, lambda values: _in_loop(loop, answered, values))
        left: asyncio.Future[Any] = asyncio.ensure_future(self._left())
        try:
            self.service.stream.add(call)
            await asyncio.wait({answer, left}, timeout=self._remaining, return_when=asyncio.FIRST_COMPLETED)
        finally:
            call.gone = not answer.done()
            left.cancel()
        if call.gone:
            if left.done() and not left.cancelled():
                raise Refused(499, "The client has left.", code="gone")
            raise Refused(504, f"It was not done within {self.service.limits.timeout:g} seconds.", code="timeout")
        self.service.metrics.observe("te_request_queue_duration", call.waited)
        self.service.metrics.observe("te_request_inference_duration", call.computed)
        return [_sound(index, value) for index, value in enumerate(answer.result())]

    @property
    def _remaining(self) -> float:
        return max(0.0, self.begun + self.service.limits.timeout - monotonic())

    async def _left(self) -> None:
        """Returns when the client has left."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


def _prepared(
    served: Served, task: str, texts: Sequence[Text], options: dict[str, Any]
) -> tuple[Task[Any], list[Item]]:
    made = served.plan(task, **options)
    return made, served.items(made, texts)


def _in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: Any) -> None:
    """Call it in the loop, unless that has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(function, *arguments)


def _sound(index: int, value: Value) -> Value:
    """A value; Refused if computing it raised an error."""
    if isinstance(value, BertcliError) and str(value) == str(damaged()):
        raise Refused(500, f"Text {index}: {value}", code="not_finite")
    if isinstance(value, BertcliError):
        raise Refused(422, OPTIONS.sub("", f"Text {index}: {value}"), code="unusable")
    if isinstance(value, Exception):
        raise value
    return value
