"""bertcli doctor"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from bertcli.cli.command import command


@command("doctor")
def doctor(
    format: Annotated[Literal["table", "json"], typer.Option("--format", help="How to print it.")] = "table",
) -> None:
    """Show what speed depends on here: BLAS and its kernel, threads, measured rates.

    bertcli doctor
    bertcli doctor --format json
    """
    from bertcli.doctor import examine

    found = examine()
    if format == "json":
        print(json.dumps(found, indent=2))
        return
    for name, value in found.items():
        if value not in (None, []):
            print(f"{name.replace('_', ' '):26}{' '.join(value) if isinstance(value, list) else value}")
