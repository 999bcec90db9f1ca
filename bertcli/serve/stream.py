"""What all waiting requests want computed, as one stream of texts: what arrived while a batch ran is the next batch.

One thread computes, with all of NumPy's threads. A batch is of one task with one set of options, the one whose request
has waited longest, and takes a text of each of its requests in turn, so that a long request delays a short one by a
batch at most. There is no timer to wait for, and no padding. Like the run commands it computes windows of texts by
`Task.compute`, so a text's numbers are theirs, whatever it is served with.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Condition, Thread
from time import monotonic
from typing import Any

from bertcli.files.texts import Item
from bertcli.tasks.compute.task import START, Records, Task, Window

Value = Any  # of one item: a record, a vector, vectors of tokens; or the exception that computing it raised


@dataclass(eq=False)
class Call:
    """What a request wants of one task: a value for each item. `done` is called from the computing thread, at the end.

    gone: nobody waits for it any more.
    """

    task: Task[Any]
    items: Sequence[Item]
    done: Callable[[list[Value]], None]
    gone: bool = False
    values: list[Value] = field(default_factory=list)
    taken: int = 0
    arrived: float = field(default_factory=monotonic)
    waited: float = 0.0  # seconds until its first item was computed
    computed: float = 0.0  # seconds of the batches that it was in


class Stream:
    """The calls that wait, and the thread that computes them, up to `batch_tokens` tokens at a time."""

    def __init__(self, batch_tokens: int, noted: Callable[[int, int], None] = lambda size, tokens: None) -> None:
        """noted: is told of each batch how many items and tokens it has."""
        self._batch_tokens = batch_tokens
        self._noted = noted
        self._calls: list[Call] = []  # the one that has waited longest first
        self._changed = Condition()
        self._ending = False
        self._thread = Thread(target=self._run, name="bertcli_compute", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """How many calls wait for a batch."""
        with self._changed:
            return sum(not call.gone and call.taken < len(call.items) for call in self._calls)

    def add(self, call: Call) -> None:
        """Let a call take its place behind those that wait."""
        with self._changed:
            self._calls.append(call)
            self._changed.notify()

    def end(self) -> None:
        """Let the thread end when nothing waits, and wait for it."""
        with self._changed:
            self._ending = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            begun = monotonic()
            self._noted(len(batch), sum(len(call.items[number].tokens.ids) for call, number in batch))
            values = _values(batch)
            calls = dict.fromkeys(call for call, _ in batch)
            for call in calls:
                call.waited = call.waited or begun - call.arrived
                call.computed += monotonic() - begun
            for (call, _), value in zip(batch, values, strict=True):
                call.values.append(value)
            for call in calls:
                if len(call.values) == len(call.items):
                    call.done(call.values)
            del batch, values, calls, call, value  # while waiting, nothing of an old batch is kept

    def _next(self) -> list[tuple[Call, int]]:
        """The next batch: calls, and the numbers of their items; empty at the end."""
        with self._changed:
            while True:
                self._calls = [call for call in self._calls if not call.gone and call.taken < len(call.items)]
                if self._calls or self._ending:
                    break
                self._changed.wait()
            if not self._calls:
                return []
            batch: list[tuple[Call, int]] = []
            tokens = 0
            turns = deque(call for call in self._calls if call.task is self._calls[0].task)
            served = [*turns]
            while turns and (not batch or tokens < self._batch_tokens):
                call = turns.popleft()
                batch.append((call, call.taken))
                tokens += len(call.items[call.taken].tokens.ids)
                call.taken += 1
                if call.taken < len(call.items):
                    turns.append(call)
            # Those of this task have had their turn: another task's requests are next.
            self._calls = [call for call in self._calls if call not in served] + served
            return batch


def _values(batch: Sequence[tuple[Call, int]]) -> list[Value]:
    """What computing gives for each item; if it fails, each is computed alone, so that one error is one item's."""
    items = [replace(call.items[number], index=index) for index, (call, number) in enumerate(batch)]
    try:
        result = batch[0][0].task.compute(Window(items, [], START))
    except Exception as error:  # reported in the answer to the request
        return [error] if len(batch) == 1 else [value for one in batch for value in _values([one])]
    return [*(result.records if isinstance(result, Records) else result.vectors)]
