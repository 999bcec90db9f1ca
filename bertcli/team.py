"""A few threads that share out the pieces of one step: NumPy's loops let go of the interpreter while they run.

Each piece is computed by one thread in the same way whoever it is, so results do not depend on how many there are.
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

MOST = 8  # beyond this, threads of one interpreter wait for each other; more cores are for worker processes


class _Team:
    """Helpers that sleep until there is work; the caller works too and waits only for pieces somebody has begun."""

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
                except BaseException as failure:  # the caller's, once nobody works on its arrays any more
                    failures.append(failure)
                done.put(None)

        for _ in range(min(self.helpers, len(pieces) - 1)):
            self.calls.put(partial(copy_context().run, work_off))  # what the caller has NumPy warn of, and the like
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
    """Cores this process has the time of, or fewer if its products were given fewer; worker processes share them."""
    global _total
    if _total is None:
        usable = usable_cores()
        _total = min(usable, blas.threads() or usable)
    return _total


def thread_count() -> int:
    """Threads that work together, for which work is cut into pieces; they are fewer in a worker process."""
    return _cut or min(MOST, core_count())


def is_worker() -> bool:
    """True in a worker process, one of several with the same weights."""
    return _cut is not None


def set_thread_count(count: int | None, cut: int | None = None) -> None:
    """Work with `count` threads from now on; None: as many as fit the machine.

    Work is cut for `cut` of them, if that is given: how it is cut can change the last bit of a result.
    """
    global _total, _cut, _team
    with _making:
        _total, _cut, _team = count, cut, None


def share(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """`work` on every piece; within a piece of other work, one after the other. After an error no more are begun."""
    if len(pieces) < 2 or thread_count() == 1 or sharing():
        one_by_one(work, pieces)
        return
    _here.helping = True
    try:
        _helpers().share(work, pieces)
    finally:
        _here.helping = False


def one_by_one(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """`work` on every piece, in this thread."""
    for piece in pieces:
        work(piece)


def sharing() -> bool:
    """True in a piece of shared work: the other cores have pieces of their own."""
    return getattr(_here, "helping", False)


def _helpers() -> _Team:
    global _team
    team = _team
    if team is None:
        with _making:
            team = _team = _team or _Team(min(MOST, core_count()) - 1)
    return team


def _forget() -> None:
    """In a forked child: threads do not cross a fork, and a lock may have been held by one of them."""
    global _team, _making
    _team, _making = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
