"""The command line run inside this process, as a test sees it: status, standard output, standard error."""

import io
import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

from bertcli.cli.app import application


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
    def error(self) -> str:
        """The line on standard error after notes and files written; asserts one, nothing printed, status 1."""
        lines = [line for line in self.err.splitlines() if not line.startswith(("Note: ", "Wrote "))]
        assert self.status == 1
        assert len(lines) == 1, self.err
        assert lines[0].startswith("Error: ")
        assert self.out == ""
        return lines[0]


class _Stream(io.TextIOWrapper):
    """A text stream in memory that may claim to be a terminal."""

    def __init__(self, data: bytes = b"", terminal: bool = False) -> None:
        self.memory = io.BytesIO(data)
        self._terminal = terminal
        super().__init__(self.memory, encoding="utf-8", newline="")

    def isatty(self) -> bool:
        return self._terminal

    def text(self) -> str:
        self.flush()
        return self.memory.getvalue().decode("utf-8")


@cache
def _group(*name: str) -> Callable[..., Any]:
    """What Typer makes of the application in every process, made once in this one for each first word."""
    return typer.main.get_command(application(*name))


def bertcli(
    *arguments: str | Path,
    stdin: str | bytes | None = None,
    terminal: bool = False,
    environment: dict[str, str] | None = None,
) -> Result:
    """Run `bertcli ARGUMENTS`. Without `stdin` that is a terminal; `terminal` makes the other two streams one."""
    data = stdin.encode("utf-8") if isinstance(stdin, str) else stdin or b""
    out, err = _Stream(terminal=terminal), _Stream(terminal=terminal)
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
        with pytest.raises(SystemExit) as left:
            _group(*map(str, arguments[:1]))([str(argument) for argument in arguments], prog_name="bertcli")
    code = left.value.code
    return Result(code if isinstance(code, int) else 0, out.text(), err.text())
