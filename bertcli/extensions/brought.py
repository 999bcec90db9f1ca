"""What wings and plugins bring, by name. A plugin is asked only for what neither the core nor a wing has."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from bertcli.extensions.core import COMMANDS
from bertcli.extensions.declared import Command, Engine, Topic
from bertcli.extensions.plugin import Misfit, Plugin, blamed, names_of, own_names, part, plugins
from bertcli.extensions.wing import wings

T = TypeVar("T")


def commands() -> dict[str, Command]:
    """The commands of all wings by their names."""
    return {command.name: command for wing in wings() for command in wing.commands}


def own_commands() -> dict[str, Command]:
    """The commands that are no task's, of the core and of wings, by their names."""
    return {command.name: command for command in COMMANDS} | commands()


def plugin_commands() -> dict[str, Command]:
    """The commands of all plugins by their names, without those of their tasks."""
    return {command.name: command for plugin in plugins() for command in plugin.extension.commands}


def command(name: str) -> Command | None:
    """The command of a wing or a plugin by its name; None if none brings it."""
    return commands().get(name) or plugin_commands().get(name)


def blamed_for(name: str) -> AbstractContextManager[None]:
    """Of a plugin's command or task of this name, what its code raises is a warning; of any other it is raised."""
    if ("command", name) in own_names():
        return nullcontext()
    for plugin in plugins():
        if ("command", name) in names_of(plugin.extension):
            return blamed(plugin)
    return nullcontext()


def exported(name: str) -> Any:
    """The object that a wing or a plugin brings to the package `bertcli`. Errors: KeyError if none brings the name."""
    return getattr(import_module(_home("names", name)), name)


def method(name: str) -> Callable[..., Any]:
    """The function that is brought as a method of `bertcli.Model`. Errors: KeyError if none brings the name."""
    function: Callable[..., Any] = getattr(import_module(_home("methods", name)), name)
    return function


def engines() -> list[Engine]:
    """The engines of all wings."""
    return [engine for wing in wings() for engine in wing.engines]


def plugin_engines() -> list[Engine]:
    """The engines of all plugins."""
    return [engine for plugin in plugins() for engine in plugin.extension.engines]


def engine(name: object) -> Engine | None:
    """The engine of a wing or a plugin by its name; None if none brings it."""
    return next((engine for brought in (engines, plugin_engines) for engine in brought() if engine.name == name), None)


def opens_engine(name: str) -> Callable[..., Any] | None:
    """The function `open_engine` of an engine's module; None if none brings it, or, with a warning, cannot be used."""
    declared = engine(name)
    if declared is None:
        return None
    if declared in engines():
        opens: Callable[..., Any] = import_module(declared.module).open_engine
        return opens
    plugin = next(plugin for plugin in plugins() if declared in plugin.extension.engines)
    return part(plugin, declared.module, "open_engine", FunctionType, lambda *_: None)


def engine_names() -> list[str]:
    """The names of all engines: NumPy's, the wings', the plugins'."""
    return ["numpy", *(engine.name for engine in (*engines(), *plugin_engines()))]


def exported_names() -> list[str]:
    """The names that wings and plugins bring to the package `bertcli`."""
    brought = [*wings(), *(plugin.extension for plugin in plugins())]
    return [name for extension in brought for name in extension.names]


def topics() -> list[Topic]:
    """The pages of the guide that wings and plugins bring."""
    brought = [*wings(), *(plugin.extension for plugin in plugins())]
    return [topic for extension in brought for topic in extension.topics]


def answers(kind: str, function: str, *arguments: Any) -> Iterator[Any]:
    """Call the function of each module that wings and plugins name for `kind`: "examples", "doctor".

    Of a plugin, which may lack the function, an error is a warning.
    """
    for wing in wings():
        module = getattr(wing, kind)
        if module is not None:
            yield getattr(import_module(module), function)(*arguments)
    for plugin in plugins():
        module = getattr(plugin.extension, kind)
        if module is None:
            continue
        answer = None
        with blamed(plugin):
            asked = getattr(import_module(module), function, None)
            answer = None if asked is None else asked(*arguments)
            # An iterator's code runs while it is read.
            answer = list(answer) if isinstance(answer, Iterator) else answer
        if answer is not None:
            yield answer


def plugin_parts(field: str, attribute: str, kind: type[T], unfit: Misfit[T], name: str | None = None) -> Iterator[T]:
    """What the modules that plugins name in a field of `Extension` have by this name: FAMILY, SPEC.

    unfit: says why it cannot be used, if it cannot.
    name: only of modules whose own name, without the package's, is this.
    """
    for plugin, module in _plugin_modules(field):
        if name is None or module.rpartition(".")[2] == name:
            brought = part(plugin, module, attribute, kind, unfit)
            if brought is not None:
                yield brought


def reads_kind(module_class: str) -> Callable[..., Any] | None:
    """The function `read` of a plugin's kind, for folders that list this class in modules.json; None if none has it."""
    for plugin in plugins():
        module = plugin.extension.kinds.get(module_class)
        if module is not None:
            return part(plugin, module, "read", FunctionType, lambda *_: None)
    return None


def misplaced(module: str, spec: Any) -> str | None:
    """Why the spec of a task is unfit: its name and its work are known by the module of its options."""
    home = spec.options.__module__
    return None if home == module else f"the options of {module} are not in it, but in {home}"


def work_of(module: str) -> str:
    """The module of the work of a task that is brought, by the module of its spec."""
    brought = [*wings(), *(plugin.extension for plugin in plugins())]
    return next(str(extension.tasks[module]) for extension in brought if module in extension.tasks)


def _plugin_modules(field: str) -> Iterator[tuple[Plugin, str]]:
    """Each plugin with each module that it names in a field."""
    for plugin in plugins():
        for module in getattr(plugin.extension, field):
            yield plugin, module


def _home(kind: str, name: str) -> str:
    """The module in which a wing, or else a plugin, has `name`, an entry of its mapping `kind`."""
    for wing in wings():
        if name in getattr(wing, kind):
            return str(getattr(wing, kind)[name])
    for plugin in plugins():
        if name in getattr(plugin.extension, kind):
            return str(getattr(plugin.extension, kind)[name])
    raise KeyError(name)
