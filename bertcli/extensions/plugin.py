"""Find plugins: packages with an entry point in the group `bertcli`, which names a module with an `Extension`.

bertcli looks here only for a name that is none of its own, and for --help, info, doctor and the guide. A plugin that
cannot be used is a warning of one line, and left out: it stops nothing that does not need it.
But where a plugin's kind cannot read a model, that is an error: kinds/read.py raises it.
"""

import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bertcli.errors import EndedBySignal, described, shortened
from bertcli.extensions.core import COMMANDS
from bertcli.extensions.declared import Command, Engine, Extension, Topic
from bertcli.extensions.wing import wings
from bertcli.names import NAMES

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

logger = logging.getLogger("bertcli")
T = TypeVar("T")
# Of a module's name and what a plugin has in it: why that cannot be used, if it cannot.
Misfit = Callable[[str, T], str | None]

GROUP = "bertcli"
ENTRY_POINTS = "entry_points.txt"
ENTRY = r"\s*[\w.]+\s*(:\s*[\w.]+\s*)?(\[[^\]]*\])?\s*"  # MODULE, or MODULE:OBJECT
LONGEST_PROBLEM = 700  # characters
HOME = Path(__file__).parents[1]
# The fields of `Extension` that are tuples, mappings of texts, and the name of one module.
TUPLES: dict[str, type] = {
    "commands": Command,
    "engines": Engine,
    "topics": Topic,
    "stands_on": str,
    "families": str,
}
MAPPINGS = ("names", "methods", "tasks", "kinds")
MODULES = ("examples", "doctor")


class Plugin(NamedTuple):
    """An installed plugin: the name and the version of its package, and what it declares."""

    name: str
    version: str
    extension: Extension
    package: str  # that of its modules

    @property
    def title(self) -> str:
        """Name and version, as lists and messages have them."""
        return f"{self.name} {self.version}"


# By the titles of plugins: why each cannot be used.
_problems: dict[str, str] = {}


class Unfit(Exception):
    """Why a plugin cannot be used."""


def plugins() -> tuple[Plugin, ...]:
    """The plugins that can be used, by the names of their packages. The others are warned of, once."""
    return _plugins() if _folders() else ()


def problems() -> Mapping[str, str]:
    """By name and version: why a plugin cannot be used, of those that were looked at."""
    return _problems


def part(plugin: Plugin, module: str, attribute: str, kind: type[T], unfit: Misfit[T]) -> T | None:
    """What a plugin's module has by this name; None, with a warning, if it cannot be imported or is unfit."""
    with blamed(plugin):
        brought = getattr(import_module(module), attribute, None)
        if not isinstance(brought, kind):
            raise Unfit(f"{module} has no {attribute} that is a {kind.__name__}")
        problem = unfit(module, brought)
        if problem is not None:
            raise Unfit(problem)
        return brought
    return None


@contextmanager
def blamed(plugin: Plugin) -> Iterator[None]:
    """Warn of what a plugin's code raises, and go on."""
    try:
        yield
    except Unfit as error:
        _report(plugin.title, str(error))
    except (KeyboardInterrupt, EndedBySignal):
        raise
    except BaseException as error:  # its code may raise anything
        _report(plugin.title, described(error))


def at_fault(error: BaseException) -> Plugin | None:
    """The plugin whose code raised an error, or was running when it was raised; None if it is none of theirs."""
    # Not loaded for this alone: an error of bertcli's own needs no plugin.
    of_modules = {plugin.package: plugin for plugin in _plugins()} if _plugins.cache_info().currsize else {}
    at, culprit = error.__traceback__, None
    while at is not None:
        package = str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        culprit = of_modules.get(package, culprit)
        at = at.tb_next
    return culprit


@cache
def _folders() -> tuple[str, ...]:
    """The folders beside installed packages that name the group; packages in .zip files are not looked at."""
    folders: list[str] = []
    for folder in dict.fromkeys(sys.path):
        try:
            with os.scandir(folder or ".") as entries:
                names = sorted(entry.path for entry in entries if entry.name.endswith((".dist-info", ".egg-info")))
        except OSError:
            continue
        folders += filter(_names_group, names)
    return tuple(folders)


def _names_group(folder: str) -> bool:
    try:
        with open(os.path.join(folder, ENTRY_POINTS), "rb") as file:
            return f"[{GROUP}]".encode() in file.read()
    except OSError:
        return False


@cache
def _plugins() -> tuple[Plugin, ...]:
    taken = set(own_names())
    usable: list[Plugin] = []
    for name, version, entry in sorted(_entries()):
        try:
            extension = _declaration(entry)
            _check(extension)
            brought = names_of(extension)
            for kind, word in brought:
                if (kind, word) in taken:
                    raise Unfit(f"the {kind} {word!r} is taken")
        except Unfit as error:
            _report(f"{name} {version}", str(error))
            continue
        except Exception as error:  # what it declares may be anything
            _report(f"{name} {version}", described(error))
            continue
        taken.update(brought)
        usable.append(Plugin(name, version, extension, entry.module.partition(".")[0]))
    return tuple(usable)


def _entries() -> Iterator[tuple[str, str, "EntryPoint"]]:
    """The entry points of the group, with the name and the version of their package; the first of two of one name."""
    # Importing importlib.metadata takes four times as long as looking into the folders for any plugin.
    from importlib.metadata import Distribution

    seen: set[str] = set()
    for folder in _folders():
        title = os.path.basename(folder).rpartition(".")[0].replace("-", " ")
        try:
            package = Distribution.at(folder)
            name, version, entries = package.name, package.version, package.entry_points.select(group=GROUP)
            for entry in entries if isinstance(name, str) and isinstance(version, str) else ():
                if not re.fullmatch(ENTRY, entry.value):
                    raise ValueError(f"{entry.value!r} names no module")
        except Exception as error:  # not UTF-8, or lines of another form
            _report(title, f"{os.path.join(folder, ENTRY_POINTS)} cannot be read ({described(error)})")
            continue
        if not isinstance(name, str) or not isinstance(version, str):
            _report(title, f"{folder} has no name and version")
        elif (normal := re.sub(r"[-_.]+", "-", name).lower()) not in seen:
            seen.add(normal)
            yield from ((name, version, entry) for entry in entries)


def _declaration(entry: "EntryPoint") -> Extension:
    """Import what an entry point names. Errors: Unfit."""
    try:
        named = entry.load()
        if isinstance(named, ModuleType):
            named = getattr(named, "EXTENSION", None) or getattr(named, "WING", None)
    except (KeyboardInterrupt, EndedBySignal):
        raise
    except BaseException as error:  # its code may raise anything
        raise Unfit(described(error)) from None
    if not isinstance(named, Extension):
        raise Unfit(f"its entry point names {entry.value}, which has no EXTENSION that is an Extension")
    return named


def _check(extension: Extension) -> None:
    """Raise Unfit for a field of another type, a page that is missing, or a wing that it needs."""
    for field, kind in TUPLES.items():
        value = getattr(extension, field)
        if not isinstance(value, tuple) or not all(isinstance(entry, kind) for entry in value):
            raise Unfit(f"{field} is no tuple of {kind.__name__}")
    for field in MAPPINGS:
        value = getattr(extension, field)
        if not isinstance(value, Mapping) or not all(isinstance(word, str) for word in (*value, *value.values())):
            raise Unfit(f"{field} is no mapping of names to modules")
    for field in MODULES:
        if not isinstance(getattr(extension, field), str | None):
            raise Unfit(f"{field} is not the name of a module")
    for topic in extension.topics:
        if not topic.file.is_file():
            raise Unfit(f"there is no {topic.file}")
    if extension.kind_folders:
        raise Unfit("kind_folders are for wings: a plugin reads models by a class in their modules.json (kinds)")
    for wing in set(extension.stands_on) - {wing.name for wing in wings()}:
        raise Unfit(f"it needs the wing {wing}, which is not there")


def names_of(extension: Extension) -> list[tuple[str, str]]:
    """The names that an extension brings, each with what it names. Errors: Unfit for a name that it brings twice."""
    tasks = [name.rpartition(".")[2] for name in extension.tasks]
    commands = [*(command.name for command in extension.commands), *(task.replace("_", "-") for task in tasks)]
    named = [
        *(("command", name) for name in commands),
        *(("method", name) for name in (*extension.methods, *tasks)),
        *(("name", name) for name in extension.names),
        *(("engine", engine.name) for engine in extension.engines),
        *(("page", topic.name) for topic in extension.topics),
        *(("module", name) for name in extension.kinds),
    ]
    for (kind, word), count in Counter(named).items():
        if count > 1:
            raise Unfit(f"the {kind} {word!r} is taken")
    return named


@cache
def own_names() -> frozenset[tuple[str, str]]:
    """The names of the core and its wings, each with what it names."""
    tasks = [file.stem for file in (HOME / "tasks").glob("*.py")]
    names = {("method", task) for task in tasks} | {("command", task.replace("_", "-")) for task in tasks}
    names.add(("engine", "numpy"))
    for command in COMMANDS:
        names |= {("command", command.name), ("method", command.name)}
    names |= {("name", name) for name in NAMES}
    names |= {("page", file.stem) for file in (HOME / "guide").glob("*.md")}
    for wing in wings():
        names.update(names_of(wing))
    return frozenset(names)


def _report(title: str, problem: str) -> None:
    """Warn, once, that a plugin cannot be used."""
    if title not in _problems:
        _problems[title] = shortened(" ".join(problem.split()), LONGEST_PROBLEM)
        logger.warning("The plugin %s cannot be used: %s.", title, _problems[title].rstrip("."))
