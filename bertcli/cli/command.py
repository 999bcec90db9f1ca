"""A command: a function whose parameters may be groups of options, and how its errors are reported."""

from __future__ import annotations

import dataclasses
import inspect
import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, get_type_hints

import typer

from bertcli.cli.options import DebugOptions
from bertcli.cli.streams import leave_streams
from bertcli.errors import BertcliError

Function = Callable[..., None]


class Command:
    """Made by `@command("name")` from a function; `register` adds it to the application.

    Typer only handles single parameters, so each parameter whose type is a dataclass of options is split into its
    fields for the command line and reassembled for the call.
    """

    def __init__(self, name: str, function: Function) -> None:
        self.name = name
        self._function = function
        hints = get_type_hints(function, include_extras=True)
        del hints["return"]
        self._groups = {key: kind for key, kind in hints.items() if dataclasses.is_dataclass(kind)}
        self._parameters = [
            *(
                one
                for key, parameter in inspect.signature(function).parameters.items()
                for one in _parameters(key, hints[key], parameter.default)
            ),
            *_parameters("debug", DebugOptions, None),
        ]

    def register(self, app: typer.Typer, panel: str) -> None:
        def run(**values: Any) -> None:
            with reported(values.pop("debug")):
                groups = {key: _gathered(kind, values) for key, kind in self._groups.items()}
                self._function(**values, **groups)
                sys.stdout.flush()

        run.__signature__ = inspect.Signature(self._parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in self._parameters}
        run.__doc__ = self._function.__doc__
        app.command(self.name, rich_help_panel=panel)(run)


def _parameters(name: str, kind: Any, default: Any) -> Iterator[inspect.Parameter]:
    """A parameter, or those of a group of options, which may hold other groups."""
    if not dataclasses.is_dataclass(kind):
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        return
    hints = get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if field.init:  # one that is not is no option of this command
            default = inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default
            yield from _parameters(field.name, hints[field.name], default)


def _gathered(kind: Any, values: dict[str, Any]) -> Any:
    """The group of these options, which are taken out of `values`."""
    hints = get_type_hints(kind)
    return kind(
        **{
            field.name: _gathered(hints[field.name], values)
            if dataclasses.is_dataclass(hints[field.name])
            else values.pop(field.name)
            for field in dataclasses.fields(kind)
            if field.init
        }
    )


def command(name: str) -> Callable[[Function], Command]:
    """Make a function a command of this name; its docstring is the help text."""
    return lambda function: Command(name, function)


@contextmanager
def reported(debug: bool) -> Iterator[None]:
    """Send notes, warnings and one-line errors to standard error, and exit with the matching status."""
    logger, handler = logging.getLogger("bertcli"), _StderrHandler()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except BrokenPipeError:
        leave_streams()
    except Exception as error:
        if debug:
            traceback.print_exc()
        with suppress(OSError):  # stderr may be closed; the exit status still tells
            print(f"Error: {one_line(_message(error))}", file=sys.stderr)
        raise typer.Exit(1) from None
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _message(error: Exception) -> str:
    if isinstance(error, BertcliError):
        return str(error)
    if isinstance(error, MemoryError):
        return "There is not enough memory: try a smaller --batch-tokens or a smaller model."
    if isinstance(error, OSError):
        return f"{error.strerror or error}: {error.filename or 'while writing the result'}."
    return f"Unexpected error, {type(error).__name__}: {error} (--debug shows where; please report it)."


def one_line(text: str) -> str:
    """Text for a message: line breaks and other control characters become spaces."""
    return "".join(character if character.isprintable() else " " for character in text)


class _StderrHandler(logging.Handler):
    """`Note: …` and `Warning: …` on standard error, each line once: work that is begun twice repeats what it says."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        kind = "Warning" if record.levelno >= logging.WARNING else "Note"
        line = f"{kind}: {one_line(record.getMessage())}"
        if line not in self._said:
            self._said.add(line)
            with suppress(OSError):  # a closed stderr is no reason to stop the work
                print(line, file=sys.stderr, flush=True)
