"""A request on its way: its texts through the stream, and what is to be said of them."""

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic, time
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

from starlette.requests import ClientDisconnect, Request

from bertcli.errors import BertcliError, shown
from bertcli.files.texts import CHARACTERS_A_TOKEN, Item, Text
from bertcli.report.terminal import visible
from bertcli.serve.fields import Refused, asked, read
from bertcli.serve.metrics import Metrics
from bertcli.serve.served import Served
from bertcli.serve.stream import Call, Stream, Value
from bertcli.tasks.compute.task import Task

T = TypeVar("T")
Answer = Any  # what json.dumps takes, and vectors of float32
MOST_NAMES = 1000
CHARACTERS_OF_COST = 32  # tokenizing so many takes about as long as computing a token of a small model
FEW = 1024  # tokens: what takes a millisecond, as tokenizing them does, holds up nobody


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
    hosts: tuple[str, ...] = ()  # names of this server beside localhost, or "*"
    max_candidates: int = 1000  # of zero-shot, targets, choices
    max_predictions: int = 100_000  # of a request
    max_request_tokens: int = 1_048_576
    quiet: bool = False  # without a line for every request


class Service:
    """What all requests share. `draining`: what has been accepted is answered, and no more is."""

    def __init__(self, models: Sequence[Served], limits: Limits) -> None:
        self.models, self.limits, self.metrics = models, limits, Metrics()
        self.stream = Stream(limits.batch_tokens, self.metrics.batch)
        self.draining, self.begun = False, int(time())
        self._unknown: set[str] = set()  # names of models that are not served, logged once each
        self.waiting = 0  # tokens, as estimated from their characters, of requests that are not answered yet
        # What waits for files and tokenizers does not hold up the loop that reads and answers.
        self.pool = ThreadPoolExecutor(2, thread_name_prefix="bertcli_read")
        self.drawing = asyncio.Lock()  # of passes, one at a time

    def note(self, line: str) -> None:
        """A line in the log."""
        with suppress(OSError):  # a closed stderr stops nobody
            print(visible(line), file=sys.stderr, flush=True)

    def end(self) -> None:
        """Wait for what is being computed."""
        self.stream.end()
        self.pool.shutdown(cancel_futures=True)

    def chosen(self, uses: Sequence[str], name: str | None) -> tuple[Served, str]:
        """The model for a request, and which of `uses`, best first (none: any), it is for.

        The one that it names, or else the first one that fits. A name that is not served means the one that fits, if
        there is no other: many programs have the name of another vendor's model there.
        Errors: Refused if none fits, or a name leaves open which.
        """
        named = self._named(name) if name else []
        fitting = self._fitting(named or self.models, uses)
        if name and fitting and len(named or fitting) > 1:
            names = ", ".join(one.name for one in named or fitting)
            why = f"Several models are called {shown(name)}" if named else f"The model {shown(name)} is not served"
            raise Refused(404, f"{why}; for this route there are: {names}.", "model", "model_not_found")
        if name and not named and name not in self._unknown and len(self._unknown) < MOST_NAMES:
            self._unknown.add(name)
            self.note(f"a request names the model {shown(name)}, which is not served; the one that fits answers.")
        if fitting:
            return fitting[0], next(use for use in uses or fitting[0].uses if use in fitting[0].uses)
        models = named or self.models
        other = f"what it does: {', '.join(paths_for(models[0]))}"
        why = f"{models[0].short} is no model for this route ({uses[0]}); {other}."
        raise Refused(422, why, "model", "wrong_model")

    def _named(self, name: str) -> list[Served]:
        """The models with this name, or else with it as the last part of theirs; of one that is served twice, one."""
        whole = [one for one in self.models if one.name == name]
        return whole[:1] or [one for one in self.models if one.is_called(name)]

    def _fitting(self, models: Sequence[Served], uses: Sequence[str]) -> list[Served]:
        """The models for the best use that any of them has: those made for it, or else those that can do it, too."""
        if not uses:
            return [*models]
        for use in uses:
            if able := [one for one in models if use in one.uses]:
                return [one for one in able if one.uses[0] == use] or able
        return []


class Route(NamedTuple):
    """Paths, what answers, and what that is, in words; of a POST what it takes, and for which uses of a model it is."""

    paths: tuple[str, ...]
    answer: Callable[..., Awaitable[Any]]
    summary: str
    wanted: type[Any] | None
    uses: Sequence[str]  # best first; none: any
    free: bool  # without a key


ROUTES: list[Route] = []  # those that the modules of this package declare


def route(*paths: str, uses: Sequence[str] = (), free: bool = False, summary: str = "") -> Callable[[T], T]:
    """What a function answers: requests that it takes as `wanted`, if it takes some, with its docstring as summary."""

    def declare(answer: T) -> T:
        said = summary or (answer.__doc__ or "").partition("\n")[0]
        wanted = get_type_hints(answer).get("wanted")
        ROUTES.append(Route(paths, answer, said, wanted, uses, free))  # type: ignore[arg-type]
        return answer

    return declare


def listed_names(names: str | Sequence[str]) -> Sequence[str]:
    """Several names, which may be in one text, separated by commas."""
    return names.split(",") if isinstance(names, str) else names


def paths_for(served: Served) -> list[str]:
    """The routes that a model answers."""
    return [one.paths[0] for one in ROUTES if {*one.uses} & {*served.uses}]


# ---------------------------------------------------------------------------------------------------------- a request


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request to a model."""

    model: str | None = asked(
        "The model's name; where it is not served, the first served model that fits answers.", None
    )


@dataclass(frozen=True, kw_only=True)
class Reading(Asked):
    """A request whose texts may be too long for the model."""

    truncate: bool | None = asked("Whether a text that is too long is cut, or refused.", None)
    truncation_direction: Literal["left", "right"] | None = asked("Where it is cut: right, the end.", None)


@dataclass(eq=False)
class Ask:
    """A request, and the model for it. `cuts`: which texts were cut; `texts`, `tokens`: how many were computed."""

    service: Service
    request: Request
    served: Served = field(init=False)
    use: str = field(init=False)  # of the model
    body: dict[str, Any] = field(default_factory=dict)
    cuts: list[dict[str, int]] = field(default_factory=list)
    texts: int = 0
    tokens: int = 0
    begun: float = field(default_factory=monotonic)

    @property
    def usage(self) -> dict[str, int]:
        """How many tokens were computed, as OpenAI says it."""
        return {"prompt_tokens": self.tokens, "total_tokens": self.tokens}

    async def answer(self, route: Route, body: dict[str, Any]) -> Answer:
        """What a route gives for a request's body. Errors: Refused."""
        assert route.wanted is not None
        wanted = read(route.wanted, body)
        self.served, self.use = self.service.chosen(route.uses, wanted.model)
        return await route.answer(self, wanted)

    async def apart(self, function: Callable[..., T], *arguments: Any, tokens: float = math.inf) -> T:
        """What a function gives, which takes a while: in another thread, unless it is about few `tokens`."""
        if tokens <= FEW:
            return function(*arguments)
        return await asyncio.get_running_loop().run_in_executor(self.service.pool, function, *arguments)

    async def values(
        self,
        wanted: Reading,
        task: str,
        texts: Sequence[Text],
        *,
        length: int | None = None,
        reported: bool = True,
        **options: Any,
    ) -> list[Value]:
        """What the task with these options gives for each text; an option that is None is not given.

        length: cut texts to so many tokens, -1: as many as the model reads. reported: it is said which were cut.
        Errors: Refused for too many texts, a full queue, a text that cannot be used, damaged weights.
        """
        service, limits = self.service, self.service.limits
        if not texts:
            raise Refused(400, "There is no text: the input is empty.", code="empty")
        if len(texts) > limits.max_inputs:
            raise Refused(422, f"There are {len(texts):,} texts, more than {limits.max_inputs:,}.", code="too_many")
        size = sum(3 + (len(text.text) + len(text.pair or "")) // CHARACTERS_A_TOKEN for text in texts)
        if service.waiting and service.waiting + size > limits.max_queue_tokens:
            raise Refused(429, "Too much is waiting: try again later.", code="overloaded")
        service.waiting += size

        def prepared() -> tuple[Task[Any], list[Item]]:
            cut = {"max_length": None if length == -1 else length}
            given = {name: value for name, value in {**cut, **options}.items() if value is not None}
            self._check_sizes(texts, given)
            made = self.served.plan(task, wanted.truncation_direction, **given)
            items = made.window(texts, 0).items
            self._check_costs(made, items)
            return made, items

        try:
            call = Call(*await self.apart(prepared, tokens=size))
            service.metrics.observe("te_request_tokenization_duration", monotonic() - self.begun)
            may_cut = limits.truncation == "auto" if wanted.truncate is None else wanted.truncate
            self._note(call.items, may_cut or length is not None, reported)
            return await self._computed(call)
        finally:
            service.waiting -= size

    def _check_sizes(self, texts: Sequence[Text], options: Mapping[str, Any]) -> None:
        """Refuse what would cost too much before anything is tokenized. Errors: Refused."""
        limits = self.service.limits
        counts = [len(listed_names(options[name])) for name in ("candidates", "targets", "choices") if name in options]
        if (most := max(counts, default=0)) > limits.max_candidates:
            why = f"There are {most:,} candidates or targets, more than {limits.max_candidates:,} (--max-candidates)."
            raise Refused(422, why, code="too_many_candidates")
        times = max(counts, default=1) if "candidates" in options or "choices" in options else 1
        characters = times * sum(len(text.text) + len(text.pair or "") for text in texts)
        self._check_tokens(characters // CHARACTERS_OF_COST)

    def _check_costs(self, task: Task[Any], items: Sequence[Item]) -> None:
        """Refuse what would cost too much to compute, or to answer. Errors: Refused."""
        limits = self.service.limits
        self._check_tokens(sum(map(task.cost, items)))
        predictions = sum(map(task.predictions, items))
        if predictions > limits.max_predictions and self.use != "late":  # a ranking keeps no vectors of tokens
            why = f"The answer would have {predictions:,} predictions, more than {limits.max_predictions:,}"
            raise Refused(422, f"{why} (--max-predictions): ask for fewer.", code="too_many_predictions")

    def _check_tokens(self, tokens: int) -> None:
        most = self.service.limits.max_request_tokens
        if tokens > most:
            why = f"It takes {tokens:,} tokens to compute, more than {most:,} (--max-request-tokens): ask for less."
            raise Refused(422, why, code="too_many_tokens")

    def _note(self, items: Sequence[Item], may_cut: bool, reported: bool) -> None:
        """Count texts and tokens, and those that were cut. Errors: Refused, where none may be."""
        metrics = self.service.metrics
        for item in items:
            kept, lost = len(item.tokens.ids), item.tokens.lost
            metrics.observe("te_request_input_length", kept)
            self.texts, self.tokens = self.texts + 1, self.tokens + kept
            if lost and not may_cut:
                why = f"Text {item.index} has {kept + lost} tokens, more than {kept}: shorten it, or ask for it to be "
                raise Refused(422, f"{why}cut (truncate).", code="too_long")
            if lost:
                metrics.count("bertcli_truncated_total")
                self.cuts += [{"index": item.index, "tokens": kept + lost, "kept": kept}] * reported

    async def _computed(self, call: Call) -> list[Value]:
        self.service.stream.add(call)
        leaving = asyncio.ensure_future(self._leave(call))
        try:
            values = await asyncio.wrap_future(call.future)
        finally:
            leaving.cancel()
        self.service.metrics.observe("te_request_queue_duration", call.begun - call.arrived)
        self.service.metrics.observe("te_request_inference_duration", monotonic() - call.begun)
        for index, value in enumerate(values):
            if isinstance(value, Exception):
                raise BertcliError(f"Text {index}: {value}") if isinstance(value, BertcliError) else value
        return values

    async def _leave(self, call: Call) -> None:
        """When the client leaves, its texts are dropped."""
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
        with suppress(InvalidStateError):  # it has just been answered
            call.future.set_exception(ClientDisconnect())
