"""The command line. This file is all that runs before Ctrl-C and a closed pipe are taken care of."""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType
from typing import Any


def main() -> None:
    """Run `bertcli` with the arguments of this process, and exit."""
    _open_closed_streams()
    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not under nohup
        signal.signal(signal.SIGHUP, _terminate)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that lacks a character still gets the table
    try:
        from bertcli.cli.app import app
        from bertcli.output.spelling import spell_out

        spell_out()
        try:
            app(prog_name="bertcli")
        finally:
            sys.stdout.flush()
    except (KeyboardInterrupt, BrokenPipeError, SystemExit) as left:
        sys.exit(_status(left))


def _open_closed_streams() -> None:
    """Lead standard streams that are closed (`>&-`) nowhere: the file of -o may still be wanted."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _status(left: BaseException | None) -> Any:
    """The exit status. That of a closed pipe is what it would have been without: 0, or that of an error before."""
    if isinstance(left, KeyboardInterrupt):
        return 130
    if isinstance(left, SystemExit) and not isinstance(left.__context__, BrokenPipeError):
        return left.code
    if left is None:
        return 0
    leave_closed_pipe()
    return _status(left.__context__)  # of `bertcli --help | head`, too, which Typer takes for a failure


def leave_closed_pipe() -> None:
    """Let what is still to be written go nowhere: its reader has left, and Python would complain at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Leave as on an error, so that half-written files are removed."""
    sys.exit(128 + number)
