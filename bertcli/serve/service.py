"""Service: the state that all requests share: models, limits, stream, metrics, and threads beside the event loop."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from time import time
from typing import Any, Literal, TypeVar

from bertcli.errors import quoted
from bertcli.report.terminal import visible
from bertcli.serve.metrics import Metrics
from bertcli.serve.requests import Refusal
from bertcli.serve.routes import paths_for
from bertcli.serve.served import Served
from bertcli.serve.stream import Stream

T = TypeVar("T")
MOST_UNKNOWN_NAMES = 1000  # that are remembered, so that each is logged once
READING_THREADS = 4
# Share of letters from which a name is taken for a misspelt one.
NEARLY = 0.85
# Values in a body for each text that it may have: reading and checking them takes milliseconds.
VALUES_OF_A_TEXT = 100
FREED_TOGETHER = 1000  # values
BODIES_HELD = 8  # bodies of the largest size that may be in memory at a time
SECONDS_TO_END = 0.3  # for the batch that runs at the end


@dataclass(frozen=True)
class Limits:
    """The limits of a server: sizes, times, keys, hosts and origins."""

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
    token_ids: bool = False  # whether a text may be given as ids of the model's vocabulary
    quiet: bool = False  # without a line for every request

    @property
    def max_values(self) -> int:
        """The most values in a body: a few for each text, or the ids of its tokens."""
        return VALUES_OF_A_TEXT * self.max_inputs + self.token_ids * self.max_request_tokens


class Service:
    """The models, the stream and the counts of what waits. draining: accept no more requests, finish those accepted."""

    def __init__(self, models: Sequence[Served], limits: Limits) -> None:
        self.models, self.limits, self.metrics = models, limits, Metrics()
        self.stream = Stream(limits.batch_tokens, self.metrics.batch)
        self.draining, self.begun = False, int(time())
        self.waiting = 0  # tokens of requests that are not answered yet
        self.bytes_held = 0  # of bodies of requests that are not answered yet
        # Parsing, tokenizing and writing answers do not hold up the loop that reads and answers.
        self._pool = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="bertcli_read")
        self._in_pool = 0  # functions that are run there
        self.drawing = asyncio.Lock()  # of passes, one at a time
        self._unknown: set[str] = set()  # names of models that are not served

    def note(self, line: str) -> None:
        """Write a line to the log, on standard error."""
        with suppress(OSError):  # a closed stderr stops nobody
            print(visible(line), file=sys.stderr, flush=True)

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function gives, in another thread."""
        running = self._pool.submit(function, *arguments)
        self._in_pool += 1
        running.add_done_callback(self._left_pool)
        return await asyncio.wrap_future(running)

    def drop(self, values: list[Any]) -> None:
        """Free values in another thread, some at a time: to free a million of them takes long, too."""

        def free() -> None:
            while values:
                last = values.pop()
                while isinstance(last, list) and last:
                    del last[-FREED_TOGETHER:]

        with suppress(RuntimeError):  # at the end there is no other thread any more
            self._pool.submit(free)

    def _left_pool(self, running: "Future[Any]") -> None:
        self._in_pool -= 1

    @property
    def is_computing(self) -> bool:
        """True if a thread still works."""
        return self._in_pool > 0 or self.stream.is_computing

    def end(self) -> None:
        """Let the threads end; one that computes is not waited for."""
        self.stream.end(SECONDS_TO_END)
        self._pool.shutdown(wait=False, cancel_futures=True)

    # ------------------------------------------------------------------------------------------ which model is meant

    def choose(self, uses: Sequence[str], name: str | None) -> tuple[Served, str]:
        """The model for a request, and which of `uses`, best first (none: any), it is for.

        The one that it names, or else the first one that fits. A name that is not served means the one that fits, if
        there is no other: many programs have the name of another vendor's model there. But a name that is nearly that
        of another model which can do it is a mistake.
        Errors: Refused if none fits, or a name leaves open which.
        """
        named = self.named(name) if name else []
        able = _able(named or self.models, uses)
        # Those that were made for it, if there are such.
        fitting = [one for one in able if not uses or one.uses[0] in uses] or able
        if name and not named:
            _refuse_near_miss(name, able, fitting)
        if name and fitting and len(named or fitting) > 1:
            names = ", ".join(one.name for one in named or fitting)
            why = f"Several models are called {quoted(name)}" if named else f"The model {quoted(name)} is not served"
            raise Refusal(404, f"{why}; for this route there are: {names}.", "model", "model_not_found")
        if not fitting:
            model = (named or self.models)[0]
            other = f"what it does: {', '.join(paths_for(model))}"
            why = f"{model.short} is no model for this route ({uses[0]}); {other}."
            raise Refusal(422, why, "model", "wrong_model")
        if name and not named and name not in self._unknown and len(self._unknown) < MOST_UNKNOWN_NAMES:
            self._unknown.add(name)
            self.note(f"a request names the model {quoted(name)}, which is not served; the one that fits answers.")
        return fitting[0], next(use for use in uses or fitting[0].uses if use in fitting[0].uses)

    def named(self, name: str) -> list[Served]:
        """The models with this name, or else with it as the last part of theirs; of one that is served twice, one."""
        whole = [one for one in self.models if one.name == name]
        return whole[:1] or [one for one in self.models if one.is_called(name)]


def _able(models: Sequence[Served], uses: Sequence[str]) -> list[Served]:
    """The models that have the first of `uses` that any model has; all of them if there are no uses."""
    if not uses:
        return [*models]
    able = ([one for one in models if use in one.uses] for use in uses)
    return next(filter(None, able), [])


def _refuse_near_miss(name: str, able: Sequence[Served], fitting: Sequence[Served]) -> None:
    """Refuse a name that is nearly that of a model which can answer, but would not. Errors: Refused."""
    by_name = {one.short.lower(): one for one in able}
    near = get_close_matches(name.rstrip("/").rpartition("/")[2].lower(), by_name, n=1, cutoff=NEARLY)
    if near and by_name[near[0]] not in fitting:
        why = f"The model {quoted(name)} is not served; did you mean {by_name[near[0]].name}?"
        raise Refusal(404, why, "model", "model_not_found")
