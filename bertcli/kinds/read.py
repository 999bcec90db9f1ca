"""Read what a model gives from its folder: ask wings' kinds and each of KINDS; the first that knows the folder is it.

A plugin's kind is asked first if the folder lists a class that only it reads.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from bertcli import extensions
from bertcli.errors import BertcliError, EndedBySignal, described, quoted
from bertcli.extensions.of_kinds import brought_kinds
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MODULES_FILE
from bertcli.kinds import KINDS
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, read_modules


def read_kind(layout: Layout) -> Kind:
    """Read the sentence-transformers files of a folder; without them it is a dense encoder that specifies no pooling.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    modules = read_modules(layout)
    for module in layout.modules:
        if module.is_brought:
            return _read_by_plugin(module.type, layout, modules)
    for name in _modules():
        known: Any = import_module(name)
        kind: Kind | None = known.read(layout, modules)
        if kind is not None:
            return kind
    raise AssertionError("a dense encoder takes every folder")


def _modules() -> list[str]:
    """The modules of all kinds, in the order in which they are asked."""
    return [*brought_kinds(), *(f"{__package__}.{name}" for name in KINDS)]


def _read_by_plugin(module_class: str, layout: Layout, modules: Modules) -> Kind:
    """Read a folder that lists a class which a plugin's kind reads. Errors: BertcliError, also if the plugin fails."""
    read = extensions.reads_kind(module_class)
    listed = f"{layout.folder.file(MODULES_FILE)} lists the module {quoted(module_class)}"
    try:
        kind = None if read is None else read(layout, modules)
    except (BertcliError, KeyboardInterrupt, EndedBySignal):
        raise
    except BaseException as error:  # its code may raise anything
        why = f"{listed}, and the plugin for it failed ({described(error)}): use another version of it."
        raise BertcliError(why) from error
    if not isinstance(kind, Kind):
        raise BertcliError(f"{listed}, and the plugin for it does not read this folder: use another model.")
    return kind


def lines_of_kinds(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of the table of `info` for what the record says of one kind alone (`Kind.facts`)."""
    for name in _modules():
        lines = getattr(import_module(name), "lines", None)
        if lines is not None:
            yield from lines(record)
