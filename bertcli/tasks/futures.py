"""Futures and a pool of daemon threads: unlike those of `concurrent.futures`, Python does not wait for them to exit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from threading import Thread
from typing import Generic, TypeVar, cast

A = TypeVar("A")
R = TypeVar("R")


class Future(Generic[R]):
    """The result of some work, or its error, when a thread is done with it."""

    def __init__(self) -> None:
        self._answer: SimpleQueue[tuple[R | None, BaseException | None]] = SimpleQueue()

    def done(self) -> bool:
        """Whether `result` would not wait."""
        return not self._answer.empty()

    def result(self) -> R:
        """The result, waited for, or the error raised; to be asked for once."""
        value, error = self._answer.get()
        if error is not None:
            raise error
        return cast(R, value)

    def run(self, work: Callable[[A], R], argument: A) -> None:
        """Do the work."""
        try:
            self._answer.put((work(argument), None))
        except BaseException as error:  # it is for whoever asks for the result
            self._answer.put((None, error))


class ThreadPool(Generic[A, R]):
    """Threads that take up what is begun, in its order, each when it is free; no exit of Python waits for them."""

    def __init__(self) -> None:
        self._begun: SimpleQueue[tuple[Future[R], A] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def __len__(self) -> int:
        return len(self._threads)

    def add(self, tool: AbstractContextManager[Callable[[A], R]]) -> None:
        """One thread more; `tool` is what it works with, opened and closed by itself."""
        self._threads.append(Thread(target=_work, args=(tool, self._begun), name="bertcli windows", daemon=True))
        self._threads[-1].start()

    def begin(self, argument: A) -> Future[R]:
        """Have a thread do its work on `argument`."""
        future: Future[R] = Future()
        self._begun.put((future, argument))
        return future

    def end(self) -> None:
        """Wait until what was begun is done, and the threads are gone."""
        for _ in self._threads:
            self._begun.put(None)
        for thread in self._threads:
            if not sys.is_finalizing():  # threads stand still by then
                thread.join()


def _work(tool: AbstractContextManager[Callable[[A], R]], begun: SimpleQueue[tuple[Future[R], A] | None]) -> None:
    with tool as work:
        for future, argument in iter(begun.get, None):
            future.run(work, argument)
