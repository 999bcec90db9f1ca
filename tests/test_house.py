"""The layout of the house: imports point one way, and only one room may touch each heavy thing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import bertcli

HOME = Path(bertcli.__file__).parent
FILES = sorted(HOME.rglob("*.py"))

# From the ground up; a room may import rooms of its own floor and below, never above.
FLOORS = [
    {"errors", "parts", "cores", "blas", "team", "memory"},
    {"kernels", "openblas", "products", "tree", "header", "untrusted", "lines", "arrow"},
    {"ops", "packing", "tensors", "config", "config_file", "functional", "quantise"},
    {"encoder", "padded", "inputs", "search"},
    {"heads", "textbook"},
    {"bert"},
    {"names", "checkpoint", "dense", "sentence", "hub", "download", "tokens"},
    {"report", "output", "doctor"},
    {"model", "variants", "tasks"},  # a model's methods are tasks, imported when one is called
    {"tracing", "account", "attention"},
]
ALONE: dict[str, set[str]] = {
    "rich": {"report"},
    "tokenizers": {"tokens"},
    "huggingface_hub": {"download"},
    "safetensors": set(),
    "typer": {"cli"},
}


def room(path: Path) -> str:
    """The first name of a file's place below the package."""
    return path.relative_to(HOME).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module a file names in an import, wherever in the file it stands (not those for type checkers alone)."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_every_room_is_on_the_plan() -> None:
    plan = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8").split("| files |")[1].split("\n\n")[0]
    rooms = {path.relative_to(HOME).parts[0] for path in HOME.rglob("*.py")} - {"__init__.py", "__main__.py"}
    assert {f"`{room}`" if room.endswith(".py") else f"`{room}/`" for room in rooms} <= set(re.findall("`[^`]+`", plan))


def rooms_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(path) if name.startswith("bertcli.")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOME)))
def test_imports_point_one_way(path: Path) -> None:
    assert room(path) in {"__init__", "__main__", "cli"}.union(*FLOORS), f"{path.name} is on no floor"
    above: set[str] = set()
    for floor in reversed(FLOORS):
        if room(path) in floor:
            assert not rooms_imported(path) & above, f"{path.name} imports a room above it"
        above |= floor
    if room(path) != "cli":
        assert "cli" not in rooms_imported(path) or room(path) == "__main__"


@pytest.mark.parametrize("package", sorted(ALONE))
def test_one_room_imports_each_package(package: str) -> None:
    users = {room(path) for path in FILES if any(name.split(".")[0] == package for name in imports(path))}
    assert users == ALONE[package]


@pytest.mark.parametrize("page", ["encoder", "heads", "bert", "textbook"])
def test_the_pages_people_read_know_no_numpy(page: str) -> None:
    assert not any(name.split(".")[0] == "numpy" for name in imports(HOME / f"{page}.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOME)))
def test_rooms_are_small_enough_to_know(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 220
