"""The standard streams where they are closed: at the start, or by whoever read the other end of a pipe."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Replace closed standard streams (`>&-`): writing a result to stdout fails, notes to stderr are discarded.

    A stream to which nothing is written may be closed, as with -o.
    """
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def leave_streams() -> None:
    """Discard what a closed stream no longer takes: Python would try again at exit, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
