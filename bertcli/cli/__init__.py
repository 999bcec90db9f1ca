"""The command line. Only this file, process.py and status.py are imported before Ctrl-C and closed pipes are heeded."""

import gc
import sys

from bertcli.cli.process import asked_to_end, heed_signals, leave_streams, open_closed_streams
from bertcli.cli.status import status_of
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
        status = status_of(error)
        if status:
            status = asked_to_end() or status  # a run that succeeded despite the signal ends with 0
        sys.exit(status)
