"""The names that are promised to stay are there: `bertcli guide stability`."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module

from helpers.public import public_names
from helpers.recorded import recorded
from readme import ROOT

from bertcli.cli.plugin import files

PROMISED = recorded("public.json")


def test_every_name_that_is_promised_is_there() -> None:
    present = public_names()
    for kind, names in PROMISED.items():
        missing = {*names} - {*present[kind]}
        assert not missing, f"{kind} that are promised to stay, or that a short help has had: {sorted(missing)}"


def test_every_name_is_promised() -> None:
    for kind, names in public_names().items():
        new = {*names} - {*PROMISED[kind]}
        assert not new, f"record these {kind} with tests/reference/record_public.py: {sorted(new)}"


# Of a family and of what a kind computes: a plugin that imports them names a minor version.
MAY_CHANGE = ("bertcli.network", "bertcli.models", "bertcli.engine", "bertcli.tracing")


def for_plugins() -> dict[str, set[str]]:
    """The names that a plugin may import, by module, as the guide lists them."""
    page = (ROOT / "bertcli" / "guide" / "stability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(bertcli\.[\w.]+)` \| (.+?) \|", page, re.MULTILINE)
    return {module: set(re.findall(r"`(\w+)`", names)) for module, names in rows}


def imported(code: str) -> Iterator[tuple[str, str]]:
    """The names that a module imports from modules of bertcli."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("bertcli."):
            yield from ((str(node.module), alias.name) for alias in node.names)


def test_what_a_plugin_may_import_is_there() -> None:
    promised = for_plugins()
    assert len(promised) > 10
    assert [(module, name) for module in promised for name in promised[module]
            if not hasattr(import_module(module), name)] == []  # fmt: skip


def test_a_plugin_needs_no_other_names() -> None:
    promised = {(module, name) for module, names in for_plugins().items() for name in names}
    begun = [name for path, code in files("shout").items() if path.endswith(".py") for name in imported(code)]
    examples = (ROOT / "tests" / "examples").glob("bertcli-*/*/*.py")
    others = [name for file in examples for name in imported(file.read_text(encoding="utf-8"))]
    assert {*begun} - promised == set()
    assert {name for name in {*others} - promised if not name[0].startswith(MAY_CHANGE)} == set()
    assert len(begun) > 10
    assert len(others) > 10
