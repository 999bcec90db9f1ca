"""Futures and a pool of daemon threads: unlike with `concurrent.futures`, Python does not wait for them at exit."""

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
    """The result of some work, or its error, once a thread has finished it."""

    def __init__(self) -> None:
        self._answer: SimpleQueue[tuple[R | None, BaseException | None]] = SimpleQueue()

    def done(self) -> bool:
        """Whether `result` would not wait."""
        return not self._answer.empty()

    def result(self) -> R:
        """Wait for the result, or raise the error; to be called only once."""
        value, error = self._answer.get()
        if error is not None:
            raise error
        return cast(R, value)

    def run(self, work: Callable[[A], R], argument: A) -> None:
        """Do the work."""
        try:
            self._answer.put((work(argument), None))
        except BaseException as error:  # raised where the result is asked for
            self._answer.put((None, error))


class ThreadPool(Generic[A, R]):
    """Threads that take work in the order it was begun, each when it is free; Python does not wait for them at exit."""

    def __init__(self) -> None:
        self._begun: SimpleQueue[tuple[Future[R], A] | None] = SimpleQueue()
        self._threads: list[Thread] = []

    def __len__(self) -> int:
        return len(self._threads)

    def add(self, tool: AbstractContextManager[Callable[[A], R]]) -> None:
        """Add a thread; it opens and closes `tool` itself, and does its work with it."""
        self._threads.append(Thread(target=_work, args=(tool, self._begun), name="bertcli windows", daemon=True))
        self._threads[-1].start()

    def begin(self, argument: A) -> Future[R]:
        """Have a thread do its work on `argument`."""
        future: Future[R] = Future()
        self._begun.put((future, argument))
        return future

    def end(self) -> None:
        """Wait until all work is done and the threads have ended."""
        for _ in self._threads:
            self._begun.put(None)
        for thread in self._threads:
            if not sys.is_finalizing():  # daemon threads no longer run then
                thread.join()


def _work(tool: AbstractContextManager[Callable[[A], R]], begun: SimpleQueue[tuple[Future[R], A] | None]) -> None:
    with tool as work:
        for future, argument in iter(begun.get, None):
            future.run(work, argument)
