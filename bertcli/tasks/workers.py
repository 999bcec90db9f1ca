"""Worker processes, seen from the process that has the texts: each has a thread here that sends work and waits."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from weakref import finalize

from bertcli import blas, team
from bertcli.errors import BertcliError
from bertcli.tasks.futures import Future, ThreadPool
from bertcli.tasks.worker import Setup, receive, send

if TYPE_CHECKING:
    from bertcli.tasks.run import WindowTexts
    from bertcli.tasks.windows import Task

R = TypeVar("R")
PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from bertcli.tasks.worker import main; main()"


def possible() -> bool:
    """Whether another Python process can be started; not if Python is embedded in a program."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


class Workers(Generic[R]):
    """Up to `count` processes, each started when there is a window for it; `close` or any exit ends them."""

    def __init__(self, task: Task[R], count: int) -> None:
        self._count = count
        self._threads = max(1, team.core_count() // count)
        self._setup = pickle.dumps(Setup(task, self._threads, team.thread_count()), pickle.HIGHEST_PROTOCOL)
        self._pool: ThreadPool[WindowTexts, R] = ThreadPool()
        self._processes: list[Popen[bytes]] = []
        self._kill = finalize(self, _kill, self._processes)

    def begin(self, group: WindowTexts) -> Future[R]:
        """Have a worker tokenize and compute these texts."""
        if len(self._pool) < self._count:
            process = _start(self._threads)
            self._processes.append(process)
            self._pool.add(_worker(process, self._setup))
        return self._pool.begin(group)

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._kill()
        self._pool.end()


def _start(threads: int) -> Popen[bytes]:
    """A process that uses the same kernel and ignores Ctrl-C, which is meant for this process."""
    kernel = blas.kernel()
    environment = {**os.environ, **dict.fromkeys(blas.THREAD_VARIABLES, str(threads))}
    environment |= {} if kernel is None else {blas.KERNEL_VARIABLE: kernel}
    command = [sys.executable, "-P", "-c", PROGRAM, *(path for path in sys.path if isinstance(path, str))]
    try:
        with _interrupts_blocked():
            return Popen(command, bufsize=0, stdin=PIPE, stdout=PIPE, env=environment)
    except OSError as error:
        raise BertcliError(
            f"A worker process cannot be started ({error.strerror}): set workers (--workers) to 1."
        ) from None


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block Ctrl-C in this thread: a new process inherits that, and so has it blocked from the start."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill(processes: list[Popen[bytes]]) -> None:
    for process in processes:
        process.kill()


@contextmanager
def _worker(process: Popen[bytes], setup: bytes) -> Iterator[Callable[[WindowTexts], Any]]:
    """A function that has `process` compute the texts of a window."""

    def compute(group: WindowTexts) -> Any:
        if group.error is not None:
            raise group.error
        try:
            send(cast(FileIO, process.stdin), pickle.dumps((group.texts, group.first), pickle.HIGHEST_PROTOCOL))
            result, error = pickle.loads(receive(cast(FileIO, process.stdout)))
        except (OSError, EOFError):
            raise _ended(process) from None
        if error is not None:
            raise error
        return result

    with process:
        with suppress(OSError):  # if this fails, the first texts report why
            send(cast(FileIO, process.stdin), setup)
        yield compute


def _ended(process: Popen[bytes]) -> BertcliError:
    process.kill()
    status = process.wait()
    how = f"was killed by signal {-status}, perhaps for lack of memory" if status < 0 else f"ended with status {status}"
    return BertcliError(f"A worker process {how}: try again with fewer workers (--workers).")
