"""What the commands of the application take and give, asked of the application itself."""

from functools import cache
from typing import Any

import typer

from bertcli.cli.app import application


def commands_with(option: str) -> set[str]:
    """The names of the commands that have an option of this name."""
    return {name for name, options in options_of().items() if option in options}


def choices(command: str, option: str) -> tuple[str, ...]:
    """The words that an option of a command may be; none if there is no such option."""
    found = options_of()[command].get(option)
    return tuple(found.type.choices) if found else ()


def command_of(name: str) -> Any:
    """A command of the application, as Typer made it."""
    group: Any = typer.main.get_command(application())
    return group.commands[name]


@cache
def options_of() -> dict[str, dict[str, Any]]:
    """The options of every command by their names on the command line."""
    group: Any = typer.main.get_command(application())
    return {
        name: {spelling: option for option in command.params for spelling in (*option.opts, *option.secondary_opts)}
        for name, command in group.commands.items()
    }
