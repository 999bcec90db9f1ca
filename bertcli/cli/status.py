"""The exit statuses of commands, and which of them an error has.

0        it is done. A reader of the output that closes the pipe early (`| head`) changes nothing.
1        it could not be done, or not for every text: a line on standard error says what, where, and what to do.
         `search -l` ends so, without a line, where it finds nothing, as grep does.
2        wrong usage: of a command, an option or an argument.
128 + n  signal n ended it: 130 is Ctrl-C, 143 is SIGTERM.
"""

from typing import Any

from bertcli.cli.process import asked_to_end

DONE, FAILED, WRONG_USAGE = 0, 1, 2
INTERRUPTED = 130


def status_of(error: BaseException) -> Any:
    """The exit status: a stream that can no longer be written hides neither Ctrl-C nor an earlier error."""
    before = error.__context__
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, OSError):
        status = DONE if before is None else status_of(before)
        full = not isinstance(error, BrokenPipeError)
        return f"Error: {error.strerror}: while writing the result." if full and status in (DONE, None) else status
    if isinstance(error, SystemExit):  # Typer turns a closed pipe into this, as in `bertcli --help | head`
        return status_of(before) if isinstance(before, BrokenPipeError) and asked_to_end() is None else error.code
    return getattr(error, "exit_code", FAILED)
