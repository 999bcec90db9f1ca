"""One stream of texts for all requests: those that arrived while a batch ran are the next batch.

One thread computes, with all of NumPy's threads. A batch is of one task with one set of options. It has at most
`batch_tokens` tokens and takes the texts of the oldest request first, so that requests are done in the order in which
they came. Requests that are large, with more left than a batch holds, have half of a batch while small ones wait. A
single text that costs more than a batch (many candidates, a copy for each masked token) lets others in between its
micro-batches, and stops when nobody waits for it any more.

There is no timer to wait for, and no padding. Like the run commands it computes groups of texts by `Task.compute`, so
a text's numbers are theirs, whatever it is served with.
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Condition, Thread
from time import monotonic
from typing import Any, NamedTuple

from bertcli.engine.pauses import Abandoned, pausing
from bertcli.files.texts import Item
from bertcli.tasks.running.task import START, Records, Task, TokenizedGroup

# The result for one item: a record, a vector, vectors of tokens; or the exception that computing it raised.
Value = Any
# A request is accepted if it is expected to take at most this share of its timeout: speeds are estimates.
SHARE_OF_TIME = 0.8
# Share of `batch_tokens` from which a batch shows the model's speed; smaller ones are slower.
FULL = 0.5
# Tokens: fewer take as long as these.
TELLING = 64
# Weight of the newest batch in the running mean if it was faster, and if it was slower: what is promised must be kept.
FASTER, SLOWER = 0.2, 0.5


class Busy(Exception):
    """A request that cannot be answered in time. `seconds`: until it could be accepted."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds


class TooLarge(Exception):
    """A request that takes too long even if nothing else waits. `seconds`: how long it would take."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = math.ceil(seconds)


class Speed:
    """The speed of a model in tokens a second, as a running mean; None before anything was computed.

    best: the highest that was measured. is_guess: no full batch has been measured yet.
    """

    def __init__(self) -> None:
        self.rate: float | None = None
        self.best = 0.0
        self.is_guess = True

    def guess(self, tokens: int, seconds: float) -> None:
        """Begin with what a single text took, which a full batch corrects."""
        if tokens >= TELLING:
            self.rate = tokens / seconds

    def observe(self, tokens: int, seconds: float, full: bool = True) -> None:
        """Take a batch into account; one that is not full only shows that the model is at least as fast."""
        if seconds <= 0 or (tokens < TELLING and not full):
            return
        rate = tokens / seconds
        self.best = max(self.best, rate)
        if self.rate is None or (full and self.is_guess):
            self.rate = rate
        elif full:
            self.rate += (FASTER if rate > self.rate else SLOWER) * (rate - self.rate)
        else:
            self.rate = max(self.rate, rate)
        self.is_guess = self.is_guess and not full

    def seconds(self, tokens: int) -> float:
        """The seconds that so many tokens take; 0 if the speed is not known."""
        return tokens / self.rate if self.rate else 0.0


@dataclass(eq=False)
class QueuedTask:
    """A request's items for one task, and the `future` of their values. Once that is done, nobody waits for them."""

    task: Task[Any]
    items: Sequence[Item]
    costs: Sequence[int]  # tokens that are computed for each item
    speed: Speed = field(default_factory=Speed)
    deadline: float = math.inf  # when its request ends, of `monotonic`
    future: "Future[list[Value]]" = field(default_factory=Future)
    values: list[Value] = field(default_factory=list)
    taken: int = 0  # items that batches have
    arrived: float = field(default_factory=monotonic)
    begun: float = 0.0  # when its first item was taken
    left: int = field(init=False)  # tokens of items that no batch has

    def __post_init__(self) -> None:
        self.left = sum(self.costs)

    @property
    def waits(self) -> bool:
        """True if it has items that no batch has."""
        return self.taken < len(self.items) and not self.future.done()

    @property
    def next_cost(self) -> int:
        """The tokens of the first item that no batch has."""
        return self.costs[self.taken]

    @property
    def seconds_left(self) -> float:
        """The seconds that its items take that no batch has yet."""
        return self.speed.seconds(self.left)

    def take(self) -> "BatchItem":
        """Take the first item that no batch has."""
        taken = BatchItem(self, self.items[self.taken], self.next_cost)
        self.begun = self.begun or monotonic()
        self.left -= taken.cost
        self.taken += 1
        return taken


class BatchItem(NamedTuple):
    """An item in a batch, and the call that it belongs to."""

    call: QueuedTask
    item: Item
    cost: int


Batch = list[BatchItem]


class Running(NamedTuple):
    """The computation under way: when it should be done, and whether it lets others in before that."""

    until: float
    pauses: bool


class Stream:
    """The calls that wait, and the thread that computes them, up to `batch_tokens` tokens at a time."""

    def __init__(self, batch_tokens: int, noted: Callable[[int, int], None] = lambda size, tokens: None) -> None:
        """noted: called with the numbers of items and of tokens of each batch."""
        self._batch_tokens = batch_tokens
        self._noted = noted
        self._calls: list[QueuedTask] = []  # the one that has waited longest first
        self._large_had_turn = False  # whether the latest batch was a large call's: next is the turn of small ones
        self._running = Running(0.0, False)
        self._others_seconds = 0.0  # spent on others in the midst of a large computation
        self._changed = Condition()
        self._ending = False
        self._thread = Thread(target=self._run, name="bertcli_compute", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """The number of calls that wait for a batch."""
        return sum(call.waits for call in self._calls)

    def add(self, call: QueuedTask) -> None:
        """Let a call take its place behind those that wait.

        Errors: Busy, if it could not be done in time; TooLarge, if it could not even where nothing waits.
        """
        with self._changed:
            room = SHARE_OF_TIME * (call.deadline - monotonic())
            # A speed that was measured while the machine did something else must not refuse what can be done now.
            if call.speed.best and call.left / call.speed.best > room:
                raise TooLarge(call.left / call.speed.best)
            waiting = [one for one in self._calls if one.waits]
            seconds = self._seconds_until_done(call, waiting)
            if seconds > room and (waiting or self._running.until > monotonic()):
                raise Busy(seconds - room)
            self._calls = [*waiting, call]
            self._changed.notify()

    @property
    def is_computing(self) -> bool:
        """True until its thread has ended."""
        return self._thread.is_alive()

    def end(self, timeout: float | None = None) -> bool:
        """Let the thread end when nothing waits, and wait for it; True if it has ended."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    # ------------------------------------------------------------------------------------------------- whose turn it is

    def _is_large(self, call: QueuedTask) -> bool:
        return call.left > self._batch_tokens

    def _seconds_until_done(self, call: QueuedTask, before: Sequence[QueuedTask]) -> float:
        """The seconds until a call is done after those before it; a small one has half of the time of large ones."""
        running = max(0.0, self._running.until - monotonic())
        in_order = running + sum(one.seconds_left for one in before) + call.seconds_left
        if self._is_large(call):
            return in_order
        small_before = sum(one.seconds_left for one in before if not self._is_large(one))
        sharing = 2 * (small_before + call.seconds_left)
        if not self._running.pauses:
            sharing += running
        return min(in_order, sharing)

    def _next(self) -> Batch:
        """The next batch, as soon as there is one; empty at the end."""
        with self._changed:
            while True:
                self._calls = [call for call in self._calls if call.waits]
                if self._calls or self._ending:
                    return self._batch(self._calls)
                self._changed.wait()

    def _batch(self, calls: Sequence[QueuedTask]) -> Batch:
        """A batch of waiting calls, in their order; empty if there is none."""
        if not calls:
            return []
        small = [call for call in calls if not self._is_large(call)]
        first = calls[0]
        if small and self._is_large(first) and self._large_had_turn:
            first = small[0]  # perhaps of another task
        room = self._batch_tokens
        room_of_large = room // 2 if small else room
        batch: Batch = []
        for call in calls:
            if call.task is not first.task:
                continue
            large = self._is_large(call)
            share = min(room, room_of_large) if large else room
            taken = 0
            # A text that alone has more than a batch is a batch, too.
            while call.waits and (taken + call.next_cost <= share or (call is first and not batch)):
                taken += call.next_cost
                batch.append(call.take())
            room -= taken
            room_of_large -= taken if large else 0
            if room <= 0:
                break
        self._large_had_turn = first not in small
        return batch

    # ------------------------------------------------------------------------------------------------------ computing

    def _run(self) -> None:
        while batch := self._next():
            self._compute(batch)

    def _compute(self, batch: Batch) -> None:
        first = batch[0].call
        tokens = sum(one.cost for one in batch)
        self._noted(len(batch), tokens)
        begun, others = monotonic(), self._others_seconds
        # A single text may cost more than a batch.
        alone = tokens > self._batch_tokens
        before = self._running
        self._running = Running(begun + first.speed.seconds(tokens), alone)
        try:
            with pausing((lambda: self._between(first)) if alone else None):
                values = _values(first.task, [one.item for one in batch])
        finally:
            self._running = before
        seconds = monotonic() - begun - (self._others_seconds - others)
        if not first.future.done():  # else it may have been stopped in its midst
            first.speed.observe(tokens, seconds, tokens >= FULL * self._batch_tokens)
        for one, value in zip(batch, values, strict=True):
            call = one.call
            call.values.append(value)
            if len(call.values) == len(call.items):
                with suppress(InvalidStateError):  # the client has just left
                    call.future.set_result(call.values)

    def _between(self, call: QueuedTask) -> None:
        """Between micro-batches of one large text: stop if nobody waits for it, and let small requests in."""
        if call.future.done():
            raise Abandoned
        with self._changed:
            waiting = [one for one in self._calls if one.waits and one.next_cost <= self._batch_tokens]
            batch = self._batch(waiting)
        if batch:
            begun = monotonic()
            self._compute(batch)
            self._others_seconds += monotonic() - begun


def _values(task: Task[Any], items: Sequence[Item]) -> list[Value]:
    """Compute the value of each item; if that fails, each one alone, so that an error stays with its item."""
    numbered = [replace(item, index=index) for index, item in enumerate(items)]
    try:
        result = task.compute(TokenizedGroup(numbered, [], START))
    except Exception as error:  # reported in the answer to the request
        if len(items) == 1:
            return [error]
        return [value for item in items for value in _values(task, [item])]
    if isinstance(result, Records):
        return [*result.records()]
    return [*result.vectors]
