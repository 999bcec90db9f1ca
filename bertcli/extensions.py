"""Find what wings and plugins bring: commands, names of `bertcli`, engines, examples for `info`, pages of the guide.

A wing is a folder of `bertcli/wings/`, whose `__init__.py` declares an `Extension` named WING and imports nothing else.
No list anywhere else names one: deleting a wing's folder removes it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple

WINGS = "bertcli.wings"


@dataclass(frozen=True)
class Command:
    """A command, as --help shows it before its module is imported.

    summary    the first line of the command's docstring; a test holds the two equal
    module     has a function of the command's name, or `command_parts(name)`, which makes `CommandParts`
    position   the place in the group
    most_used  the options that `-h` shows
    brief      what `-h` says of an option, or of the command (by its name), where the help's first sentence is too long
    """

    name: str
    group: str
    summary: str
    module: str
    position: int = 0
    most_used: tuple[str, ...] = ()
    brief: Mapping[str, str] = field(default_factory=dict)


class CommandParts(NamedTuple):
    """The parts of a command made from a spec: its help, the groups of its options by parameter, and its function."""

    help: str | None
    groups: Mapping[str, Any]
    call: Callable[..., None]


@dataclass(frozen=True)
class Topic:
    """A page of the guide: its file, its place in the list, and what else a reader may call it."""

    file: Path
    position: int = 100
    other_words: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name that `bertcli guide NAME` takes."""
        return self.file.stem


@dataclass(frozen=True)
class Extension:
    """The declaration of a wing or a plugin. A module is named, not imported, until what it holds is used.

    names      names of the package `bertcli`, each with the module: {"search": "bertcli.wings.search.stored"}
    methods    methods of `bertcli.Model`, each with the module that has the function, whose first argument is the model
    examples   the module with `examples(subject)`, which yields an `Example` for each use of a model
    doctor     the module with `examine()`: what it adds to the record of `bertcli doctor`
    engines    engines that compute instead of NumPy, each with the module that opens it
    stands_on  other wings that this one imports; it cannot be used without them
    extra      the extra of `pip install 'bertcli[EXTRA]'` that it needs
    """

    name: str
    commands: tuple[Command, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    examples: str | None = None
    doctor: str | None = None
    engines: Mapping[str, str] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()
    stands_on: tuple[str, ...] = ()
    extra: str | None = None


@cache
def wings() -> tuple[Extension, ...]:
    """The wings that are there, by their names."""
    folder = Path(__file__).with_name("wings")
    declared = (import_module(f"{WINGS}.{module.name}").WING for module in iter_modules([str(folder)]))
    by_name: dict[str, Extension] = {wing.name: wing for wing in declared}
    return tuple(wing for wing in by_name.values() if set(wing.stands_on) <= by_name.keys())


def commands() -> dict[str, Command]:
    """The commands of all wings by their names."""
    return {command.name: command for wing in wings() for command in wing.commands}


def exported(name: str) -> Any:
    """The object that a wing brings to the package `bertcli`. Errors: KeyError if none brings the name."""
    return getattr(import_module(_home("names", name)), name)


def method(name: str) -> Callable[..., Any]:
    """The function that a wing brings as a method of `bertcli.Model`. Errors: KeyError if none brings the name."""
    function: Callable[..., Any] = getattr(import_module(_home("methods", name)), name)
    return function


def engine(name: str) -> Any:
    """The module of an engine. Errors: KeyError if no wing brings an engine of this name."""
    return import_module(_home("engines", name))


def exported_names() -> list[str]:
    """The names that wings bring to the package `bertcli`."""
    return [name for wing in wings() for name in wing.names]


def modules(kind: str) -> Iterator[Any]:
    """Import and yield the modules that wings name for `kind`: "examples", "doctor"."""
    for wing in wings():
        module = getattr(wing, kind)
        if module is not None:
            yield import_module(module)


def _home(kind: str, name: str) -> str:
    """The module in which a wing has `name`, an entry of its mapping `kind`."""
    homes: dict[str, str] = {}
    for wing in wings():
        homes |= getattr(wing, kind)
    return homes[name]
