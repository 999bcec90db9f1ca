"""The names that are promised to stay: of Python objects, methods, commands, options; and those that `-h` shows."""

import inspect
import re

from helpers.options_of_commands import options_of
from helpers.terminal import bertcli as run

import bertcli


def public_names() -> dict[str, list[str]]:
    """The names of each kind, sorted; an option stands after its command."""
    options = [
        f"{command} {name}"
        for command, of_command in options_of().items()
        for name, option in of_command.items()
        if not option.hidden
    ]
    methods = [name for name, _ in inspect.getmembers(bertcli.Model, callable) if not name.startswith("_")]
    return {
        "names": [name for name in dir(bertcli) if not name.startswith("_")],
        "methods": sorted(methods),
        "commands": sorted(options_of()),
        "options": sorted(options),
        "lines of -h": sorted(f"{command} {line}" for command in options_of() for line in lines_of_short_help(command)),
    }


def lines_of_short_help(command: str) -> list[str]:
    """The first name on each line of a command's short help, read from the page."""
    page = run(command, "-h", environment={"COLUMNS": "80"}).out
    return re.findall(r"^  (-[\w-]+|\[?[A-Z]\S*)", page, re.MULTILINE)
