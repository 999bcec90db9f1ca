"""What a command says on standard error: notes, warnings, and an error in one line. status.py has the exit statuses."""

import logging
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from bertcli.cli.process import asked_to_end, leave_streams
from bertcli.cli.status import FAILED, INTERRUPTED
from bertcli.errors import BertcliError, described, shortened
from bertcli.extensions import at_fault
from bertcli.report.terminal import visible

LONGEST = 4000  # characters of a message: the longest of ours has 1,500, and what others say may be of any length


@contextmanager
def notes_shown() -> Iterator[None]:
    """Send notes and warnings to standard error."""
    logger, handler = logging.getLogger("bertcli"), _StderrHandler()
    level, showwarning = logger.level, warnings.showwarning
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    warnings.showwarning = lambda message, *_: logger.warning("%s", message)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        warnings.showwarning = showwarning


@contextmanager
def usage_visible() -> Iterator[None]:
    """Show what wrong usage quotes as any other message: words of a command line may control a terminal."""
    try:
        yield
    except typer.TyperException as error:
        error.message = visible(shortened(error.message, LONGEST), lines=True)
        raise


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Send notes, warnings and one-line errors to standard error, and exit with the matching status."""
    try:
        with notes_shown(), usage_visible():
            yield
    except (typer.Exit, typer.Abort, typer.TyperException):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        leave_streams()
    except BaseException as error:
        # What a plugin raises may be of any class; SystemExit of our own says a status.
        if not isinstance(error, Exception) and at_fault(error) is None:
            raise
        if debug:
            traceback.print_exc()
        elif status := asked_to_end():
            raise typer.Exit(status) from None
        with suppress(OSError):  # stderr may be closed; the exit status still tells
            print(f"Error: {_one_line(_message(error))}", file=sys.stderr)
        raise typer.Exit(FAILED) from None


def _message(error: BaseException) -> str:
    if isinstance(error, BertcliError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory: close other programs, or use a smaller model."
    if (plugin := at_fault(error)) is not None:
        return f"The plugin {plugin.title} failed, {described(error)} (--debug shows where): use another version of it."
    if isinstance(error, ImportError):
        return f"A package cannot be imported ({error}): install it again."
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or 'while writing the result'}."
    return f"Unexpected error, {described(error)} (--debug shows where; please report it)."


def _one_line(text: str) -> str:
    return visible(shortened(" ".join(text.splitlines()), LONGEST))


class _StderrHandler(logging.Handler):
    """Log handler that writes `Note: …` and `Warning: …` to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "Warning" if record.levelno >= logging.WARNING else "Note"
        with suppress(OSError):  # a closed stderr is no reason to stop the work
            print(f"{prefix}: {_one_line(record.getMessage())}", file=sys.stderr, flush=True)
