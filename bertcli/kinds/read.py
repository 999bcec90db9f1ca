"""Read what a model gives from its folder: ask each of KINDS; the first that knows the folder is the model's."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from bertcli.folder.layout import Layout
from bertcli.kinds import KINDS
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, read_modules


def read_kind(layout: Layout) -> Kind:
    """Read the sentence-transformers files of a folder; without them it is a dense encoder that specifies no pooling.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    return kind_of(layout, read_modules(layout))


def kind_of(layout: Layout, modules: Modules) -> Kind:
    """Ask each of KINDS for its settings in a folder with these modules."""
    for name in KINDS:
        known: Any = import_module(f"{__package__}.{name}")
        kind: Kind | None = known.read(layout, modules)
        if kind is not None:
            return kind
    raise AssertionError("a dense encoder takes every folder")


def base_of(file: str) -> str | None:
    """The name of the model that a file alone belongs to, as in BASE+FILE; None if no kind knows the file."""
    for name in KINDS:
        of_kind = getattr(import_module(f"{__package__}.{name}"), "base_of", None)
        base: str | None = None if of_kind is None else of_kind(Path(file))
        if base is not None:
            return base
    return None


def lines_of_kinds(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The lines of the table of `info` for what the record says of one kind alone (`Kind.facts`)."""
    for name in KINDS:
        lines = getattr(import_module(f"{__package__}.{name}"), "lines", None)
        if lines is not None:
            yield from lines(record)
