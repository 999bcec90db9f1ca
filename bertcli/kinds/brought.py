"""What a kind of a wing or a plugin gives: a plugin's, of a folder that lists a class which only the plugin reads."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from bertcli import extensions
from bertcli.errors import BertcliError, EndedBySignal, described, quoted
from bertcli.extensions.of_kinds import brought_kinds
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MODULES_FILE
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules


def read(layout: Layout, modules: Modules) -> Kind | None:
    """Ask plugins and wings for the settings of a folder; None for a folder that they do not read.

    Errors: BertcliError, also if a plugin fails.
    """
    for module in layout.modules:
        if module.is_brought:
            return _read_by_plugin(module.type, layout, modules)
    for brought in _modules():
        kind: Kind | None = brought.read(layout, modules)
        if kind is not None:
            return kind
    return None


def lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of the table of `info` that kinds of wings have."""
    for brought in _modules():
        yield from brought.lines(record) if hasattr(brought, "lines") else ()


def _modules() -> Iterator[Any]:
    return map(import_module, brought_kinds())


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
