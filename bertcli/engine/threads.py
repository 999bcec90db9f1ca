"""The number of threads for a pass, and how they share the work: NumPy's loops release the interpreter lock.

Work is always divided for `thread_count()` threads, so a command gives the same bytes whether one process works or
several. Each piece is computed by one thread with single-threaded products.

Does not import NumPy: its library starts one thread per visible core when it is loaded, whatever the limits are.
"""

import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextvars import Context, ContextVar, copy_context
from pathlib import Path, PurePosixPath
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TypeVar

from bertcli.engine import blas
from bertcli.platforms import at_fork
from bertcli.tracing.dispatch import watched

T = TypeVar("T")

GROUPS = "/proc/self/cgroup"
MOUNT = "/sys/fs/cgroup"
MOST_THREADS = 8  # more threads of one interpreter would wait for each other; further cores are for worker processes
RAYON_VARIABLE = "RAYON_NUM_THREADS"  # for the tokenizers library
THREAD_VARIABLES = (  # libraries read their number of threads from these when they are loaded
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    RAYON_VARIABLE,
)


# --------------------------------------------------------------------------------------------------------- how many


def usable_cores() -> int:
    """Cores this process may run on, or fewer if its control groups (cgroups) allow less CPU time than that."""
    return max(1, math.ceil(min(cores(), cpu_quota())))


def cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_quota() -> float:
    """CPU seconds per second allowed by this process's control groups (version 2): `docker run --cpus 1.5` sets 1.5.

    Infinite without a limit, and on systems without such groups.
    """
    quota = math.inf
    named = re.search("^0::(.*)", _read(GROUPS), re.MULTILINE)
    if named is None:
        return quota
    group = PurePosixPath(named[1])
    for above in (group, *group.parents):  # a container may see its own group as the root
        limit = re.fullmatch(r"(\d+) ([1-9]\d*)\n", _read(f"{MOUNT}{above}/cpu.max"))  # microseconds, of a period's
        if limit:
            quota = min(quota, int(limit[1]) / int(limit[2]))
    return quota


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def choose_threads() -> bool:
    """Limit library threads to the CPU quota where a container grants less than its cores; true if done.

    Libraries start one thread for every core they see. On 64 cores with a quota of two, 62 of the threads would use it
    up by waiting. Nothing is done if the user has made the choice, or if NumPy is already loaded.
    """
    if "numpy" in sys.modules or any(name in os.environ for name in THREAD_VARIABLES) or usable_cores() == cores():
        return False
    for name in THREAD_VARIABLES:
        if name != RAYON_VARIABLE:  # read later, by a library that has such limits itself
            blas.choose(name, str(usable_cores()))
    return True


_total: int | None = None
_divided_for: int | None = None


def core_count() -> int:
    """Cores this process may use, or fewer if the BLAS library was given fewer; worker processes share them."""
    global _total
    if _total is None:
        usable = usable_cores()
        _total = min(usable, blas.usual_threads() or usable)
    return _total


def thread_count() -> int:
    """Number of threads that work is divided for; a worker process itself uses fewer."""
    return _divided_for or min(MOST_THREADS, core_count())


def set_thread_count(count: int | None, divided_for: int | None = None) -> None:
    """Work with `count` threads from now on; None: as many as suit the machine.

    If `divided_for` is given, work is divided for that many threads: the division can change the last bit of a result.
    """
    global _total, _divided_for
    _total, _divided_for = count, divided_for


# ---------------------------------------------------------------------------------------------------------- sharing


_sharing: ContextVar[bool] = ContextVar("sharing", default=False)


def sharing() -> bool:
    """True inside a piece of shared work: the other cores have pieces of their own."""
    return _sharing.get()


def each(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Run `work`, a few ops, on every piece, with one thread per product; on all cores unless a watcher is set."""
    if sharing():
        one_by_one(work, pieces)
        return
    with blas.single_threaded() as alone:
        if alone and not watched():
            run_pieces(work, pieces)
        else:
            one_by_one(work, pieces)


def each_or_whole(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Run `work` on every piece as `each` does; a single piece is computed with all threads in each product."""
    if len(pieces) > 1:
        each(work, pieces)
    else:
        one_by_one(work, pieces)


def one_by_one(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Run `work` on every piece in this thread."""
    for piece in pieces:
        work(piece)


def run_pieces(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Run `work` on every piece, in several threads; inside a piece of other work, one piece after the other.

    The calling thread works too, and waits only for pieces already begun. Every thread has the caller's context
    variables, such as NumPy's error settings. After an error no further piece is begun, and the error is raised.
    """
    count = min(MOST_THREADS, core_count(), len(pieces))
    if count < 2 or sharing():
        one_by_one(work, pieces)
        return
    todo = iter(pieces)  # taking the next one is atomic: no piece is done twice

    def work_off() -> None:
        try:
            for piece in todo:
                work(piece)
        except BaseException:
            # Use up the pieces, so that the other threads stop too.
            for _ in todo:
                pass
            raise

    context = copy_context()
    context.run(_sharing.set, True)
    turns = [_Turn(context.copy(), work_off) for _ in range(count - 1)]
    _ask_helpers(turns)
    try:
        context.run(work_off)
    finally:
        for turn in turns:
            turn.wait()
    for turn in turns:
        if turn.failure:
            raise turn.failure


class _Turn:
    """Work for a helper thread; `wait` cancels it if the helper has not begun.

    Two bare locks: an executor's future takes 20 µs more, a tenth of the time for a product of 16 tokens.
    """

    def __init__(self, context: Context, work: Callable[[], None]) -> None:
        self._context, self._work = context, work
        self._begun, self._done = Lock(), Lock()
        self._done.acquire()
        self.failure: BaseException | None = None

    def take(self) -> None:
        """Do the work, unless `wait` has cancelled it."""
        if self._begun.acquire(blocking=False):
            try:
                self._context.run(self._work)
            except BaseException as error:
                self.failure = error
            finally:
                self._done.release()

    def wait(self) -> None:
        """Wait until the work is done; cancel it if it has not begun."""
        if not self._begun.acquire(blocking=False):
            self._done.acquire()


_asked: "SimpleQueue[_Turn]" = SimpleQueue()
_helper_count = 0


def _ask_helpers(turns: Sequence[_Turn]) -> None:
    """Queue these turns for the helper threads, and start as many helpers as there are turns."""
    global _helper_count
    while _helper_count < len(turns):
        Thread(target=_help, args=(_asked,), name=f"bertcli_{_helper_count}", daemon=True).start()
        _helper_count += 1
    for turn in turns:
        _asked.put(turn)


def _help(asked: "SimpleQueue[_Turn]") -> None:
    while True:
        asked.get().take()


def _forget() -> None:
    """In a forked child: its threads did not survive the fork."""
    global _asked, _helper_count
    _asked, _helper_count = SimpleQueue(), 0


at_fork(after_in_child=_forget)
