"""Service: what all requests share: models, limits, stream, metrics, and threads beside the event loop."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from time import time
from typing import Any, Literal, TypeVar

from bertcli.capabilities import which
from bertcli.errors import LONGEST_COMPARED, quoted
from bertcli.report.terminal import visible
from bertcli.tasks.limits import DoorLimits
from bertcli.wings.serve.metrics import Metrics
from bertcli.wings.serve.requests import MOST_CHARACTERS, Refusal
from bertcli.wings.serve.routes import paths_for
from bertcli.wings.serve.served_model import Served
from bertcli.wings.serve.stream import Stream

T = TypeVar("T")
# Names of models that are not served; they are remembered, so that each is logged once.
MOST_UNKNOWN_NAMES = 1000
# Threads that parse, tokenize and write, beside the one that computes.
READING_THREADS = 4
# Similarity (of difflib) from which a name counts as a misspelt one.
NEARLY = 0.85
# Bodies of the largest size that may be in memory at a time.
BODIES_HELD = 32
# Seconds that the running batch has when the server ends.
SECONDS_TO_END = 0.3


OF_A_REQUEST = DoorLimits(
    texts=2048,
    characters=MOST_CHARACTERS,
    entries=1000,
    in_options=250_000,
    tokens=1_048_576,
    predictions=100_000,
    vectors=256 << 20,
)


@dataclass(frozen=True)
class Limits:
    """The limits of a server: times, keys, hosts and origins, and the bounds of a request (`door`).

    The command sets the first ones.
    """

    truncation: Literal["auto", "error"] = "auto"
    api_key: str | None = None
    cors: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()  # names of this server beside localhost, or "*"
    token_ids: bool = False  # texts may be sent as ids of the model's vocabulary
    quiet: bool = False  # no line in the log for every request
    batch_tokens: int = 1536
    # The command has no options for these; tests set them.
    door: DoorLimits = OF_A_REQUEST
    timeout: float = 60  # seconds for a request
    drain: float = 30  # seconds to finish accepted requests after SIGTERM
    max_body: int = 8  # MB
    max_queue_tokens: int = 262144


class Held:
    """The tokens that a request holds in the queue: an estimate, until they are counted."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens


class Queue:
    """The tokens of the requests that are not answered yet; each request holds its own while it is computed."""

    def __init__(self, most_tokens: int) -> None:
        self._most_tokens = most_tokens
        self._holding: set[Held] = set()

    @property
    def tokens(self) -> int:
        """The tokens that all requests hold."""
        return sum(held.tokens for held in self._holding)

    def excess(self, tokens: int) -> int:
        """How many of a request's tokens are too many; where nothing waits, any number may."""
        return max(0, self.tokens + tokens - self._most_tokens) if self._holding else 0

    @contextmanager
    def hold(self, tokens: int) -> Iterator[Held]:
        """`with queue.hold(tokens) as held:` Hold tokens until they are computed, or are not wanted any more."""
        held = Held(tokens)
        self._holding.add(held)
        try:
            yield held
        finally:
            self._holding.discard(held)


class Service:
    """The models, the stream, and counts of requests.

    draining: accept no more requests, finish those accepted. queue: tokens of requests that are not answered yet.
    bytes_held: of their bodies.
    """

    def __init__(self, models: Sequence[Served], limits: Limits) -> None:
        self.models = models
        self.limits = limits
        self.metrics = Metrics()
        self.stream = Stream(limits.batch_tokens, self.metrics.batch)
        self.draining = False
        # Seconds since 1970, which OpenAI's list of models has.
        self.begun = int(time())
        self.queue = Queue(limits.max_queue_tokens)
        self.bytes_held = 0
        # For parsing, tokenizing and writing answers, which would hold up the event loop.
        self._pool = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="bertcli_read")
        # Functions that wait for the pool or run there.
        self._in_pool = 0
        # The page of a pass takes much memory: one is drawn at a time.
        self.drawing = asyncio.Lock()
        self._unknown: set[str] = set()

    def note(self, line: str) -> None:
        """Write a line to the log, on standard error."""
        with suppress(OSError):  # stderr may be closed
            print(visible(line), file=sys.stderr, flush=True)

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in another thread, and return its result."""
        running = self._pool.submit(function, *arguments)
        self._in_pool += 1
        running.add_done_callback(self._left_pool)
        return await asyncio.wrap_future(running)

    def _left_pool(self, running: "Future[Any]") -> None:
        self._in_pool -= 1

    @property
    def is_computing(self) -> bool:
        """True if a thread still runs."""
        return self._in_pool > 0 or self.stream.is_computing

    def end(self) -> None:
        """Let the threads end; one that computes is not waited for."""
        self.stream.end(SECONDS_TO_END)
        self._pool.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------------------------------------ the model of a request

    def choose(self, uses: Sequence[str], name: str | None) -> tuple[Served, str]:
        """Choose the model that answers a request, and its use.

        uses: those that the route needs, best first; none: any model will do. name: the model that the request names.
        A request without a name gets the first model that fits, and so does a name that is not served if only one
        model fits: many programs send the name of another vendor's model. A misspelt name of another served model
        that could answer is a mistake, though.

        Errors: Refusal if no model fits, or if a name does not decide which.
        """
        named = self.named(name) if name else []
        able = _able(named or self.models, uses)
        fitting = [*which(able, lambda served: served.main_use in uses, lambda served: True)]
        if not fitting:
            model, *_ = named or self.models
            why = f"The model {model.short} cannot answer this route, which needs {uses[0]}."
            raise Refusal(422, f"{why} It answers {', '.join(paths_for(model))}.", "model", "wrong_model")
        served, *others = fitting
        if name and not named:
            _refuse_near_miss(name, able, fitting)
            if others:
                why = f"The model {quoted(name)} is not served. Name one that fits this route: {_names(fitting)}."
                raise Refusal(404, why, "model", "model_not_found")
            self._log_unknown(name, served)
        elif len(named) > 1:
            why = f"Several models are called {quoted(name)}. Send the whole name of one: {_names(named)}."
            raise Refusal(404, why, "model", "model_not_found")
        use = next(use for use in uses or served.uses if use in served.uses)
        return served, use

    def named(self, name: str) -> list[Served]:
        """The models with this name, or else those whose name ends in it; of one that is served twice, one."""
        whole = [served for served in self.models if served.name == name]
        return whole[:1] or [served for served in self.models if served.is_called(name)]

    def _log_unknown(self, name: str, served: Served) -> None:
        """Log once that a request named a model that is not served."""
        # Shortened, since a client may send names of megabytes.
        shown = quoted(name)
        if shown in self._unknown or len(self._unknown) >= MOST_UNKNOWN_NAMES:
            return
        self._unknown.add(shown)
        self.note(f"A request names the model {shown}, which is not served: {served.short} answers it.")


def _able(models: Sequence[Served], uses: Sequence[str]) -> list[Served]:
    """The models that have the first of `uses` that any model has; all of them if there are no uses."""
    if not uses:
        return [*models]
    for use in uses:
        able = [served for served in models if use in served.uses]
        if able:
            return able
    return []


def _refuse_near_miss(name: str, able: Sequence[Served], fitting: Sequence[Served]) -> None:
    """Refuse a name that is nearly that of a model which could answer, but is not the one that would.

    Errors: Refusal.
    """
    if len(name) > LONGEST_COMPARED:
        return
    by_name = {served.short.lower(): served for served in able}
    last_part = name.rstrip("/").rpartition("/")[2].lower()
    for near in get_close_matches(last_part, by_name, n=1, cutoff=NEARLY):
        if by_name[near] not in fitting:
            why = f"The model {quoted(name)} is not served; did you mean {by_name[near].name}?"
            raise Refusal(404, why, "model", "model_not_found")


def _names(models: Sequence[Served]) -> str:
    return ", ".join(served.name for served in models)
