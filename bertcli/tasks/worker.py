"""A worker process: reads windows of texts from standard input and writes results to standard output, until it ends.

Started by `workers.py` as a separate Python process that imports nothing from the program it works for.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import traceback
from collections.abc import Callable
from io import FileIO
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from bertcli import blas, team
from bertcli.errors import BertcliError
from bertcli.tasks.windows import Task

LENGTH = 8  # bytes for the length of a message


class Setup(NamedTuple):
    """A worker's first message: the task, its number of threads, and the number that all processes divide work for."""

    task: Task[Any]
    threads: int
    cut: int


def main() -> None:
    """Answer every message (texts, number of the first) with (result, error)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    logging.getLogger("bertcli").disabled = True  # and has already logged what there is to say
    replies = FileIO(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    messages: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(messages,), daemon=True).start()
    task, failure = _attempt(lambda: _set_up(messages.get()))
    while True:
        message = messages.get()
        answer = _attempt(lambda: _result(task, message)) if failure is None else (None, failure)  # noqa: B023
        try:
            send(replies, pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
        except OSError:
            os._exit(0)  # as in `_listen`


def _attempt(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return work(), None
    except Exception as error:
        return None, _portable(error)


def _set_up(message: bytes) -> Task[Any]:
    setup: Setup = pickle.loads(message)
    team.set_thread_count(setup.threads, setup.cut)
    blas.set_threads(setup.threads)
    return setup.task


def _result(task: Task[Any], message: bytes) -> Any:
    return task.compute(task.window(*pickle.loads(message)))


def _listen(messages: SimpleQueue[bytes]) -> None:
    """End the process as soon as the program it works for is gone, even in the middle of a window."""
    requests = FileIO(0)
    try:
        while True:
            messages.put(receive(requests))
    except (OSError, EOFError):
        os._exit(0)


def _portable(error: Exception) -> Exception:
    """The error, or a similar one that can be pickled; unless it is a BertcliError, a note says where it arose."""
    if isinstance(error, BertcliError):
        return error
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def send(pipe: FileIO, message: bytes) -> None:
    """Write a complete message."""
    rest = memoryview(len(message).to_bytes(LENGTH, "big") + message)
    while rest:
        rest = rest[pipe.write(rest) :]


def receive(pipe: FileIO) -> bytes:
    """The next message; EOFError if there is none, or only part of one."""
    return _exactly(pipe, int.from_bytes(_exactly(pipe, LENGTH), "big"))


def _exactly(pipe: FileIO, count: int) -> bytes:
    data = bytearray(count)
    rest = memoryview(data)
    while rest:
        read = pipe.readinto(rest)
        if not read:
            raise EOFError
        rest = rest[read:]
    return bytes(data)
