"""Processes and threads that a test waits for, but not for ever: what hangs fails."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from subprocess import Popen
from threading import Timer
from typing import Any

SECONDS = 120.0  # for what takes a few at most


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[Popen[bytes]]:
    """A process, killed when its time is up: reads from it then end. A session of its own goes with it."""
    process = Popen(command, **options)
    timer = Timer(SECONDS, _kill, [process, bool(options.get("start_new_session"))])
    timer.start()
    try:
        with process:
            yield process
    finally:
        timer.cancel()


def _kill(process: Popen[bytes], session: bool) -> None:
    if session:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
