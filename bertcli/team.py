"""A few threads that share the pieces of one step: NumPy's loops release the interpreter lock while they run.

Each piece is computed by one thread, always in the same way, so results do not depend on the number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread, local
from typing import TypeVar

from bertcli import blas
from bertcli.cores import usable_cores

T = TypeVar("T")

MOST = 8  # more threads of one interpreter would wait for each other; further cores are for worker processes


class _Team:
    """Helper threads that sleep until there is work; the caller works too, and waits only for pieces already begun."""

    def __init__(self, helpers: int) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for _ in range(helpers):
            Thread(target=self._help, name="bertcli", daemon=True).start()
        self.helpers = helpers

    def _help(self) -> None:
        _here.helping = True
        while True:
            self.calls.get()()

    def share(self, work: Callable[[T], object], pieces: Sequence[T]) -> None:
        todo = iter(pieces)  # taking the next one is atomic: no piece is done twice
        done: SimpleQueue[None] = SimpleQueue()
        failures: list[BaseException] = []

        def work_off() -> None:
            for piece in todo:
                try:
                    if not failures:
                        work(piece)
                except BaseException as failure:  # raised in the caller once no thread uses its arrays any more
                    failures.append(failure)
                done.put(None)

        for _ in range(min(self.helpers, len(pieces) - 1)):
            self.calls.put(partial(copy_context().run, work_off))  # with the caller's NumPy error settings etc.
        work_off()
        for _ in pieces:
            done.get()
        if failures:
            raise failures[0]


_here = local()
_team: _Team | None = None
_making = Lock()
_total: int | None = None
_cut: int | None = None


def core_count() -> int:
    """Cores this process may use, or fewer if the BLAS library was given fewer; worker processes share them."""
    global _total
    if _total is None:
        usable = usable_cores()
        _total = min(usable, blas.threads() or usable)
    return _total


def thread_count() -> int:
    """Number of threads that work is divided for; a worker process itself uses fewer."""
    return _cut or min(MOST, core_count())


def is_worker() -> bool:
    """True in a worker process, which shares its weights with others."""
    return _cut is not None


def set_thread_count(count: int | None, cut: int | None = None) -> None:
    """Work with `count` threads from now on; None: as many as suit the machine.

    If `cut` is given, work is divided for that many threads: the division can change the last bit of a result.
    """
    global _total, _cut, _team
    with _making:
        _total, _cut, _team = count, cut, None


def share(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Run `work` on every piece; inside a piece of other work, one by one. After an error no more are begun."""
    if len(pieces) < 2 or thread_count() == 1 or sharing():
        one_by_one(work, pieces)
        return
    _here.helping = True
    try:
        _helpers().share(work, pieces)
    finally:
        _here.helping = False


def one_by_one(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Run `work` on every piece in this thread."""
    for piece in pieces:
        work(piece)


def sharing() -> bool:
    """True inside a piece of shared work: the other cores have pieces of their own."""
    return getattr(_here, "helping", False)


def _helpers() -> _Team:
    global _team
    team = _team
    if team is None:
        with _making:
            team = _team = _team or _Team(min(MOST, core_count()) - 1)
    return team


def _forget() -> None:
    """In a forked child: threads do not survive a fork, and one of them may have held a lock."""
    global _team, _making
    _team, _making = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
