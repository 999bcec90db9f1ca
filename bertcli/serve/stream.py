"""What all waiting requests want computed, as one stream of texts: what arrived while a batch ran is the next batch.

One thread computes, with all of NumPy's threads. A batch is of one task with one set of options, the one whose request
has waited longest, and takes a text of each of its requests in turn, so that a long request delays a short one by a
batch at most. There is no timer to wait for, and no padding. Like the run commands it computes windows of texts by
`Task.compute`, so a text's numbers are theirs, whatever it is served with.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Condition, Thread
from time import monotonic
from typing import Any

from bertcli.files.texts import Item
from bertcli.tasks.compute.task import START, Records, Task, Window

Value = Any  # of one item: a record, a vector, vectors of tokens; or the exception that computing it raised


@dataclass(eq=False)
class Call:
    """What a request wants of one task: in `future`, a value for each item. Once that is done, nobody waits for it."""

    task: Task[Any]
    items: Sequence[Item]
    future: "Future[list[Value]]" = field(default_factory=Future)
    values: list[Value] = field(default_factory=list)
    taken: int = 0  # items that batches have
    arrived: float = field(default_factory=monotonic)
    begun: float = 0.0  # when its first item was taken

    @property
    def waits(self) -> bool:
        """Whether it has items for a batch."""
        return self.taken < len(self.items) and not self.future.done()

    @property
    def next(self) -> Item:
        """The first item that no batch has."""
        return self.items[self.taken]

    def take(self) -> Item:
        """That item, for a batch."""
        item, self.begun = self.next, self.begun or monotonic()
        self.taken += 1
        return item


class Stream:
    """The calls that wait, and the thread that computes them, up to `batch_tokens` tokens at a time."""

    def __init__(self, batch_tokens: int, noted: Callable[[int, int], None] = lambda size, tokens: None) -> None:
        """noted: is told of each batch how many items and tokens it has."""
        self._batch_tokens, self._noted = batch_tokens, noted
        self._calls: list[Call] = []  # the one that has waited longest first
        self._changed = Condition()
        self._ending = False
        self._thread = Thread(target=self._run, name="bertcli_compute", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """How many calls wait for a batch."""
        return sum(call.waits for call in self._calls)

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
        while self._compute():
            pass

    def _compute(self) -> bool:
        """Compute the next batch, once there is one; false at the end."""
        batch = self._next()
        items = [item for _, item in batch]
        if items:
            self._noted(len(items), sum(len(item.tokens.ids) for item in items))
            for (call, _), value in zip(batch, _values(batch[0][0].task, items), strict=True):
                call.values.append(value)
                if len(call.values) == len(call.items):
                    with suppress(InvalidStateError):  # the client has just left
                        call.future.set_result(call.values)
        return bool(items)

    def _next(self) -> list[tuple[Call, Item]]:
        """The next batch; empty at the end."""
        batch: list[tuple[Call, Item]] = []
        with self._changed:
            while not (calls := [call for call in self._calls if call.waits]) and not self._ending:
                self._changed.wait()
            alike = [call for call in calls if call.task is calls[0].task]
            turns, tokens = deque(alike), 0
            while turns and (not batch or tokens + len(turns[0].next.tokens.ids) <= self._batch_tokens):
                call = turns.popleft()
                batch.append((call, call.take()))
                tokens += len(batch[-1][1].tokens.ids)
                if call.waits:
                    turns.append(call)
            # Those of this task have had their turn: another task's requests are next, then whose turn it would be now.
            self._calls = [*(call for call in calls if call not in alike), *turns]
        return batch


def _values(task: Task[Any], items: Sequence[Item]) -> list[Value]:
    """What computing gives for each item; if it fails, each is computed alone, so that one error is one item's."""
    try:
        result = task.compute(Window([replace(item, index=index) for index, item in enumerate(items)], [], START))
    except Exception as error:  # reported in the answer to the request
        return [error] if len(items) == 1 else [value for item in items for value in _values(task, [item])]
    return [*(result.records() if isinstance(result, Records) else result.vectors)]
