"""Worker processes that compute windows of texts, with `concurrent.futures`."""

from __future__ import annotations

import logging
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, TypeVar

from bertcli.engine import blas, threads
from bertcli.errors import BertcliError
from bertcli.files.texts import Text
from bertcli.tasks.task import Task

R = TypeVar("R")
Begin = Callable[[Sequence[Text], int], "Future[R]"]  # of texts and the number of the first


@contextmanager
def workers(task: Task[R], count: int) -> Iterator[Begin[R]]:
    """A function that has one of up to `count` processes compute a window; they end with the block, whatever they do.

    Each process waits at a pipe whose other end is held only here, so that it closes also if this process is killed.
    Errors: BertcliError if a process cannot be started, or dies.
    """
    context = get_context("spawn")  # a fork would inherit locked locks of other threads
    share = max(1, threads.core_count() // count)
    environment = _environment(share)
    here, there = context.Pipe()
    setup = there, pickle.dumps(task, pickle.HIGHEST_PROTOCOL), share, threads.thread_count()
    try:
        with _started_with(environment):
            pool = ProcessPoolExecutor(count, context, _set_up, setup)

        def begin(texts: Sequence[Text], first: int) -> Future[R]:
            with _started_with(environment):  # a process is started when there is a window for it
                return pool.submit(_compute, texts, first)

        try:
            yield begin
        except BrokenExecutor:
            raise BertcliError(
                "A worker process ended unexpectedly, perhaps for lack of memory: try again with fewer workers "
                '(--workers). A script needs `if __name__ == "__main__":` around what it does with workers.'
            ) from None
        finally:
            here.close()
            pool.shutdown(cancel_futures=True)
    finally:
        here.close()
        there.close()


def _environment(share: int) -> dict[str, str]:
    """The variables of a worker: the kernel in use here, its share of the threads, no modules from this folder."""
    kernel = blas.kernel()
    warnings = (os.environ.get("PYTHONWARNINGS"), "ignore:resource_tracker")  # where it cleans up after a killed parent
    return {
        **dict.fromkeys(threads.THREAD_VARIABLES, str(share)),
        **({} if kernel is None else {blas.KERNEL_VARIABLE: kernel}),
        "PYTHONSAFEPATH": "1",
        "PYTHONWARNINGS": ",".join(filter(None, warnings)),
    }


@contextmanager
def _started_with(environment: Mapping[str, str]) -> Iterator[None]:
    """Inside, a process starts with these variables and with Ctrl-C blocked, which is meant for this one.

    Errors: BertcliError if it cannot be started.
    """
    before = {name: os.environ.get(name) for name in environment}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    os.environ.update(environment)
    try:
        yield
    except (OSError, NotImplementedError, ImportError) as error:  # the last two where there are no semaphores
        reason = getattr(error, "strerror", None) or error
        raise BertcliError(f"A worker process cannot be started ({reason}): set workers (--workers) to 1.") from None
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


# ----------------------------------------------------------------------------------------------------- in a worker

_task: Callable[[], Task[Any]]


def _set_up(parent: Connection, task: bytes, share: int, divided_for: int) -> None:
    """Make this process a worker with `share` threads, which divides its work as all do."""
    global _task
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    logging.getLogger("bertcli").disabled = True  # the parent has logged what there is to say
    threads.set_thread_count(share, divided_for)
    blas.set_threads(share)
    _task = cache(lambda: pickle.loads(task))  # opened at the first window, so that its error is that window's


def _end_with(parent: Connection) -> None:
    """End this process as soon as the parent is gone or wants no more, even in the middle of a window."""
    try:
        parent.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


def _compute(texts: Sequence[Text], first: int) -> Any:
    task = _task()
    return task.compute(task.window(texts, first))
