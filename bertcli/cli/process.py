"""The process around a command: signals that ask it to end (Ctrl-C, SIGTERM, a closed terminal), and closed streams."""

import os
import signal
import sys
from types import FrameType

from bertcli.errors import EndedBySignal

_asked: list[int] = []


def heed_signals() -> None:
    """Let signals end the process by an exception, so that half-written files are removed."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # not in the background
        signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
    # Windows has no SIGHUP; under nohup it stays ignored.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _end)


def asked_to_end() -> int | None:
    """The exit status if a signal came, else None. A later error, such as a half-done import, is its consequence."""
    return _asked[0] if _asked else None


def _end(number: int, frame: FrameType | None) -> None:
    _asked.append(128 + number)
    raise KeyboardInterrupt if number == signal.SIGINT else EndedBySignal(128 + number)


def open_closed_streams() -> None:
    """Replace closed standard streams (`>&-`): writing a result to stdout fails, notes to stderr are discarded.

    A stream to which nothing is written may be closed, as with -o.
    """
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def leave_streams() -> None:
    """Discard buffered output of a closed stream, which Python would try to write again at exit, with an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
