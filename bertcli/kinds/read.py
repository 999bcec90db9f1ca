"""Read what a model gives from its folder: ask each of KINDS; the first that knows the folder is the model's.

A plugin's kind is asked first if the folder lists a class that only it reads.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from bertcli import extensions
from bertcli.folder.files import unusable
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MODULES_FILE
from bertcli.kinds import KINDS
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import read_modules


def read_kind(layout: Layout) -> Kind:
    """Read the sentence-transformers files of a folder; without them it is a dense encoder that specifies no pooling.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    modules = read_modules(layout)
    for read in _readers(layout):
        kind: Kind | None = read(layout, modules)
        if kind is not None:
            return kind
    raise unusable(layout.folder.file(MODULES_FILE), "lists a module that its plugin does not read")


def _readers(layout: Layout) -> Iterator[Callable[..., Any]]:
    """Yield what reads a kind: that of a plugin alone if the folder lists a class for it, else those of KINDS."""
    brought = [extensions.reads_kind(module.type) for module in layout.modules if module.is_brought]
    own = (import_module(f"{__package__}.{name}").read for name in KINDS)
    yield from filter(None, brought) if brought else own


def lines_of_kinds(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of the table of `info` for what the record says of one kind alone (`Kind.facts`)."""
    for name in KINDS:
        lines = getattr(import_module(f"{__package__}.{name}"), "lines", None)
        if lines is not None:
            yield from lines(record)
