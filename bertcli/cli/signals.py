"""Signals that ask the process to end: Ctrl-C, SIGTERM, a terminal that is closed."""

from __future__ import annotations

import signal
from types import FrameType

INTERRUPTED = 130
_asked: list[int] = []


def heed_signals() -> None:
    """From now on they end the process as an error does, so that half-written files are removed."""
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:  # not in the background
        signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not under nohup
        signal.signal(signal.SIGHUP, _end)


def asked_to_end() -> int | None:
    """The exit status if one came: whatever error follows (an import that fails half-way) follows from it."""
    return _asked[0] if _asked else None


def _end(number: int, frame: FrameType | None) -> None:
    _asked.append(128 + number)
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
