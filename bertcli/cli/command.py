"""A command is a function whose parameters are groups of options; here it becomes one that Typer runs."""

from __future__ import annotations

import logging
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand, TyperOption

from bertcli.cli.options import DebugOptions, name_of, wrong
from bertcli.cli.signals import INTERRUPTED, asked_to_end
from bertcli.cli.streams import leave_streams
from bertcli.errors import BertcliError
from bertcli.report import visible


class GivenOnce(TyperCommand):
    """A command that refuses an option given twice, of which Typer would use the last value without a word."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for one, times in Counter(given).items():
            takes_one = isinstance(one, TyperOption) and not (one.multiple or one.is_flag)
            if times > 1 and takes_one and not ctx.resilient_parsing:  # as it is for shell completion
                raise wrong(one.opts[-1], f"this takes one value ({one.metavar}), and was given {times} times.")
        return super().parse_args(ctx, args)


def register(app: typer.Typer, function: Callable[..., None], panel: str) -> None:
    """Add a command to the application, named like the function; its docstring is the help.

    Typer only handles single parameters, so each group is split into its fields for the command line and reassembled
    for the call.
    """
    groups = get_type_hints(function)
    del groups["return"]

    def run(**values: Any) -> None:
        with reported(values["debug"]):
            function(**{key: _gathered(kind, values) for key, kind in groups.items()})
            sys.stdout.flush()

    parameters = [one for kind in (*groups.values(), DebugOptions) for one in _parameters(kind)]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    app.command(rich_help_panel=panel, cls=GivenOnce)(run)


def _parameters(group: Any) -> Iterator[Parameter]:
    """The parameters of a group of options, which may hold other groups."""
    hints = get_type_hints(group)
    for one in fields(group):
        kind = hints[one.name]
        if is_dataclass(kind):
            yield from _parameters(kind)
        elif one.init:  # one that is not is no option of this command
            default = Parameter.empty if one.default is ... else one.default
            kind = Annotated[kind, one.metadata["make"](*one.metadata["names"] or [name_of(one)])]
            yield Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _gathered(group: Any, values: dict[str, Any]) -> Any:
    """The group with these values."""
    hints = get_type_hints(group)
    known = [one.name for one in fields(group) if one.init]
    return group(**{n: _gathered(hints[n], values) if is_dataclass(hints[n]) else values[n] for n in known})


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Send notes, warnings and one-line errors to standard error, and exit with the matching status."""
    logger, handler = logging.getLogger("bertcli"), _StderrHandler()
    level, showwarning = logger.level, warnings.showwarning
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    warnings.showwarning = lambda message, *_: logger.warning("%s", message)
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        leave_streams()
    except Exception as error:
        if debug:
            traceback.print_exc()
        elif status := asked_to_end():
            raise typer.Exit(status) from None
        with suppress(OSError):  # stderr may be closed; the exit status still tells
            print(f"Error: {_one_line(_message(error))}", file=sys.stderr)
        raise typer.Exit(1) from None
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        warnings.showwarning = showwarning


def _message(error: Exception) -> str:
    if isinstance(error, BertcliError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory: try a smaller --batch-tokens or a smaller model."
    if isinstance(error, ImportError):
        return f"A package cannot be imported ({error}): install it again."
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or 'while writing the result'}."
    return f"Unexpected error, {type(error).__name__}: {error} (--debug shows where; please report it)."


def _one_line(text: str) -> str:
    return visible(" ".join(text.splitlines()))


class _StderrHandler(logging.Handler):
    """`Note: …` and `Warning: …` on standard error, each line once: work that is begun twice repeats what it says."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        kind = "Warning" if record.levelno >= logging.WARNING else "Note"
        line = f"{kind}: {_one_line(record.getMessage())}"
        if line not in self._said:
            self._said.add(line)
            with suppress(OSError):  # a closed stderr is no reason to stop the work
                print(line, file=sys.stderr, flush=True)
