"""The names that are promised to stay: of Python objects, methods, commands and options."""

import inspect

from helpers.doors import options_of

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
    }
