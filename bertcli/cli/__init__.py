"""The command line. Only the code in this file and in streams.py runs before Ctrl-C and closed pipes are handled."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Any

from bertcli.cli.streams import leave_streams, open_closed_streams


def main() -> None:
    """Run `bertcli` with the arguments of this process, and exit."""
    open_closed_streams()
    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # not under nohup
        signal.signal(signal.SIGHUP, _terminate)
    try:
        from bertcli.cli.app import application
        from bertcli.report import spell_out

        spell_out()
        try:
            application(*sys.argv[1:2])(prog_name="bertcli")
        finally:
            sys.stdout.flush()
    except (KeyboardInterrupt, OSError, SystemExit) as left:
        leave_streams()
        sys.exit(_status(left))


def _status(left: BaseException) -> Any:
    """The exit status: a stream that can no longer be written hides neither Ctrl-C nor an earlier error."""
    before = left.__context__
    if isinstance(left, KeyboardInterrupt):
        return 130
    if isinstance(left, OSError):
        status = 0 if before is None else _status(before)
        full = not isinstance(left, BrokenPipeError)
        return f"Error: {left.strerror}: while writing the result." if full and status in (0, None) else status
    if isinstance(left, SystemExit):  # Typer turns a closed pipe into this, as in `bertcli --help | head`
        return _status(before) if isinstance(before, BrokenPipeError) else left.code
    return getattr(left, "exit_code", 1)


def _terminate(number: int, frame: FrameType | None) -> None:
    """Exit as after an error, so that half-written files are removed."""
    sys.exit(128 + number)
