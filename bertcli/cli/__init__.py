"""The command line. Of it only this file and process.py run before Ctrl-C and closed pipes are handled."""

import sys
from typing import Any

from bertcli.cli.process import INTERRUPTED, asked_to_end, heed_signals, leave_streams, open_closed_streams


def main() -> None:
    """Run `bertcli` with the arguments of this process, and exit."""
    open_closed_streams()
    heed_signals()
    try:
        from bertcli.cli.app import application
        from bertcli.report import take_any_text

        take_any_text()
        try:
            application(*sys.argv[1:2])(prog_name="bertcli")
        finally:
            sys.stdout.flush()
    except BaseException as left:
        if asked_to_end() is None and not isinstance(left, (KeyboardInterrupt, OSError, SystemExit)):
            raise
        leave_streams()
        status = _status(left)
        sys.exit(status and (asked_to_end() or status))  # what was done all the same is done


def _status(left: BaseException) -> Any:
    """The exit status: a stream that can no longer be written hides neither Ctrl-C nor an earlier error."""
    before = left.__context__
    if isinstance(left, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(left, OSError):
        status = 0 if before is None else _status(before)
        full = not isinstance(left, BrokenPipeError)
        return f"Error: {left.strerror}: while writing the result." if full and status in (0, None) else status
    if isinstance(left, SystemExit):  # Typer turns a closed pipe into this, as in `bertcli --help | head`
        return _status(before) if isinstance(before, BrokenPipeError) and asked_to_end() is None else left.code
    return getattr(left, "exit_code", 1)
