"""Threads that help: an executor that may be interrupted anywhere, and used until the very end."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

from bertcli.engine.blas import OWN_THREADS


class Helpers(Executor):
    """Up to `count` threads that do what is submitted; if none can be started, it is done at once.

    ThreadPoolExecutor takes nothing any more once the interpreter is about to end, as in a function of `atexit`. And
    all of them share a lock: a signal handler that computes and has interrupted any `submit` would wait for ever.
    """

    def __init__(self, count: int, *, daemon: bool = False) -> None:
        self._count, self._daemon = count, daemon
        self._threads: list[Thread] = []
        self._todo: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future[Any]:
        """As every executor."""
        if len(self._threads) < self._count:
            self._start_one()
        future: Future[Any] = Future()
        if self._threads:
            self._todo.put((future, lambda: work(*arguments, **keywords)))
        else:
            _do(future, lambda: work(*arguments, **keywords))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the threads end when all is done; `cancel_futures` has no effect."""
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            if wait and thread.is_alive():
                thread.join()

    def _start_one(self) -> None:
        name = f"{OWN_THREADS}_{len(self._threads)}"
        thread = Thread(target=self._serve, name=name, daemon=self._daemon)
        self._threads.append(thread)  # first of all: an interruption leaves none that is not told to end
        try:
            thread.start()
        except RuntimeError:  # there are too many, or the interpreter is about to end
            self._threads.remove(thread)
            self._count = len(self._threads)

    def _serve(self) -> None:
        while job := self._todo.get():
            _do(*job)
            del job  # it would keep what was worked on until the next one


def _do(future: Future[Any], work: Callable[[], Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)
            del future  # whose error holds this frame
