"""The command line run inside this process, as a test sees it: status, standard output, standard error."""

import io
import json
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer
from helpers.kept_models import opened_once

from bertcli.cli.app import application
from bertcli.loaded_model import LoadedModel
from bertcli.report.terminal import take_any_text


class Result(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The line on standard error after notes and files written; asserts one, nothing printed, status 1."""
        lines = [line for line in self.err.splitlines() if not line.startswith(("Note: ", "Wrote "))]
        assert self.status == 1
        assert len(lines) == 1, self.err
        assert lines[0].startswith("Error: ")
        assert self.out == ""
        return lines[0]

    @property
    def said(self) -> str:
        """Standard error as one line, without the box around a wrong usage."""
        return " ".join(re.sub(r"[│╭╮╰╯─]", " ", self.err).split())


class _Stream(io.TextIOWrapper):
    """A text stream in memory that may claim to be a terminal."""

    def __init__(self, data: bytes = b"", terminal: bool = False, encoding: str = "utf-8") -> None:
        self.memory = io.BytesIO(data)
        self._terminal = terminal
        super().__init__(self.memory, encoding=encoding, newline="")

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        return self.memory.getvalue().decode(self.encoding)


@cache
def _group(app: typer.Typer) -> Callable[..., Any]:
    """What Typer makes of an application in every process, made once in this one."""
    return typer.main.get_command(app)


def bertcli(
    *arguments: str | Path,
    stdin: str | bytes | None = None,
    terminal: bool = False,
    environment: dict[str, str] | None = None,
    encoding: str = "utf-8",
) -> Result:
    """Run `bertcli ARGUMENTS`. Without `stdin` that is a terminal; `terminal` makes the other two streams one.

    encoding: of these two.
    """
    data = stdin.encode("utf-8") if isinstance(stdin, str) else stdin or b""
    out, err = (_Stream(terminal=terminal, encoding=encoding) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", _Stream(data, terminal=stdin is None))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "BERTCLI_MODEL"):
            patch.delenv(name, raising=False)
        # rich keeps the codes of a style as it first printed it: all commands of a process need one system of colors.
        patch.setenv("COLORTERM", "truecolor")
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        patch.setattr(LoadedModel, "open", opened_once)
        take_any_text()
        words = [str(argument) for argument in arguments]
        with pytest.raises(SystemExit) as left:
            _group(application(*words[:1]))(words, prog_name="bertcli")
    code = left.value.code
    return Result(code if isinstance(code, int) else 0, out.text(), err.text())


def wrong_usage(*arguments: str | Path, why: str, **how: Any) -> Result:
    """Run a command that is refused as wrong usage, and for this reason: status 2, nothing on standard output.

    An option that the command does not have, or no longer has, is refused whatever a test is about: then that has to be
    the reason.
    """
    result = bertcli(*arguments, **how)
    assert (result.status, result.out) == (2, ""), result.err
    assert why in result.said, result.said
    unknown = re.compile("no such (option|command)|there is no option", re.IGNORECASE)
    assert unknown.search(why) or not unknown.search(result.said), result.said
    return result


def continued(*arguments: str | Path, **how: Any) -> Result:
    """Run a command that has to go on where an earlier one was broken off, and says so: it began nothing anew."""
    result = bertcli(*arguments, **how)
    assert "continuing an unfinished run of " in result.err, result.err
    return result
