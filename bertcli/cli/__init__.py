"""The command line. Only this file and process.py are imported before Ctrl-C and closed pipes are handled."""

import gc
import sys
from typing import Any

from bertcli.cli.process import INTERRUPTED, asked_to_end, heed_signals, leave_streams, open_closed_streams
from bertcli.engine.blas import choose_short_waits

COLLECT_AFTER = 50_000  # new objects; with Python's 700 a tenth of a short command's time went into its 60 collections


def main() -> None:
    """Run `bertcli` with the arguments of this process, and exit."""
    open_closed_streams()
    heed_signals()
    choose_short_waits()
    gc.set_threshold(COLLECT_AFTER)
    try:
        from bertcli.cli.app import application
        from bertcli.report.terminal import take_any_text

        take_any_text()
        try:
            application(*sys.argv[1:2])(prog_name="bertcli")
        finally:
            sys.stdout.flush()
            gc.freeze()  # the process ends: nothing is searched for garbage any more
    except BaseException as error:
        if asked_to_end() is None and not isinstance(error, (KeyboardInterrupt, OSError, SystemExit)):
            raise
        leave_streams()
        status = _status(error)
        if status:
            status = asked_to_end() or status  # a run that succeeded despite the signal ends with 0
        sys.exit(status)


def _status(error: BaseException) -> Any:
    """The exit status: a stream that can no longer be written hides neither Ctrl-C nor an earlier error."""
    before = error.__context__
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, OSError):
        status = 0 if before is None else _status(before)
        full = not isinstance(error, BrokenPipeError)
        return f"Error: {error.strerror}: while writing the result." if full and status in (0, None) else status
    if isinstance(error, SystemExit):  # Typer turns a closed pipe into this, as in `bertcli --help | head`
        return _status(before) if isinstance(before, BrokenPipeError) and asked_to_end() is None else error.code
    return getattr(error, "exit_code", 1)
