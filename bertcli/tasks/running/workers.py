"""Worker processes that compute groups (`workers`): start them, divide the cores among them, end them."""

import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from bertcli.engine import blas
from bertcli.engine.threads import THREAD_VARIABLES, core_count, set_thread_count, thread_count
from bertcli.errors import BertcliError
from bertcli.tasks.running.task import Group

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

R = TypeVar("R")
Submit = Callable[[Group], Future[R]]
MOST_ON_WINDOWS = 61  # processes: a ProcessPoolExecutor cannot wait for more there


@contextmanager
def worker_processes(work: Callable[[Group], R], count: int) -> Iterator[Submit[R]]:
    """Yield a function that submits `work` to one of up to `count` processes, which end with the context.

    Each process waits at a pipe whose other end is held only here, so that it closes also if this process is killed.
    Errors: BertcliError if a process cannot be started, or dies.
    """
    context = get_context("spawn")  # a fork would inherit locked locks of other threads
    if sys.platform == "win32":
        count = min(count, MOST_ON_WINDOWS)
    share = max(1, core_count() // count)
    environment = _environment(share)
    here, there = context.Pipe()
    setup = there, pickle.dumps(work, pickle.HIGHEST_PROTOCOL), share, thread_count()
    with here, there:
        with _started_with(environment):
            pool = ProcessPoolExecutor(count, context, _set_up, setup)

        def submit(group: Group) -> Future[R]:
            with _started_with(environment):  # a process is started when there is a group for it
                return pool.submit(_do, group)

        try:
            yield submit
        except BrokenExecutor:
            raise BertcliError(
                "A worker process ended unexpectedly, perhaps for lack of memory: try again with fewer workers, in "
                'a command with --threads 8. A script needs `if __name__ == "__main__":` around what it does with '
                "workers."
            ) from None
        finally:
            here.close()
            pool.shutdown(cancel_futures=True)


def _environment(share: int) -> dict[str, str]:
    """Make a worker's environment: OpenBLAS' kernel, its share of the threads, no modules from this folder."""
    kernel = blas.kernel()
    warnings = (os.environ.get("PYTHONWARNINGS"), "ignore:resource_tracker")  # where it cleans up after a killed parent
    return {
        **dict.fromkeys(THREAD_VARIABLES, str(share)),
        **({} if kernel is None else {blas.KERNEL_VARIABLE: kernel}),
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": ",".join(filter(None, warnings)),
    }


@contextmanager
def _started_with(environment: Mapping[str, str]) -> Iterator[None]:
    """Processes started inside get these variables, and Ctrl-C blocked, since that is meant for the parent.

    Errors: BertcliError if it cannot be started.
    """
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        with _interrupts_blocked():
            yield
    except (OSError, NotImplementedError, ImportError) as error:  # the last two where there are no semaphores
        reason = getattr(error, "strerror", None) or error
        raise BertcliError(
            f"A worker process cannot be started ({reason}): set workers to 1, in a command --threads 8."
        ) from None
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C where signals can be blocked: processes started inside inherit that."""
    if not hasattr(signal, "pthread_sigmask"):
        yield  # on Groups a worker ignores Ctrl-C once it has begun (`_set_up`)
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


# ----------------------------------------------------------------------------------------------------- in a worker

SECONDS_TO_SEND = 1.0  # a result, to a parent that is alive
_work: Callable[[], Callable[[Group], Any]]
# Held while nothing is computed: a result is perhaps being sent.
_not_computing = Lock()


def _set_up(parent: "Connection", work: bytes, share: int, divided_for: int) -> None:
    """Set up this process as a worker with `share` threads; it divides work for `divided_for` threads, as all do."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _not_computing.acquire()
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    logging.getLogger("bertcli").disabled = True  # the parent has logged what there is to say
    set_thread_count(share, divided_for)
    blas.set_threads(share)
    _work = cache(lambda: pickle.loads(work))  # the model is opened at the first group, whose error it then is


def _end_with(parent: "Connection") -> None:
    """End this process as soon as the parent has closed its end of the pipe, even in the middle of a group.

    Not in the middle of a result: a parent that is alive would wait for the rest of it for ever.
    """
    try:
        parent.recv_bytes()
    except (EOFError, OSError):
        _not_computing.acquire(timeout=SECONDS_TO_SEND)
        os._exit(0)


def _do(group: Group) -> Any:
    _not_computing.release()
    try:
        return _work()(group)
    finally:
        _not_computing.acquire()
