"""Each wing can be removed: the core and the other wings then run as before, and nothing mentions it.

Without each of them by itself the commands are listed and a model is described, which ask all others for their parts;
without all of them every command of the core runs.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from inspect import cleandoc
from pathlib import Path

import pytest
from helpers.little_doctor import MEASURE_LITTLE
from helpers.options_of_commands import command_of, options_of
from helpers.package_copy import copy_package
from helpers.printed import program_of
from helpers.terminal import bertcli

import bertcli as library
from bertcli import extensions
from bertcli.extensions import WINGS, Extension, wings

HOME = Path(library.__file__).parent
NAMES = [wing.name for wing in wings()]
CORE = (
    ("fill-mask", "She poured a cup of hot [MASK].", "--format", "jsonl"),
    ("encode", "tea", "--format", "jsonl"),
    ("classify", "I loved it.", "--format", "jsonl"),
    ("score", "A cup of tea.", "--format", "jsonl"),
    ("similarity", "tea", "coffee", "--format", "json"),
    ("tokenize", "tea", "--format", "jsonl"),
    ("neighbors", "tea", "--format", "jsonl"),
    ("params", "--variant", "tiny"),
    ("trace", "tea"),
    ("info", "bert-mini-mlm"),
    ("doctor",),
    ("guide",),
    ("plugin", "shout"),
)
NEED_A_MODEL = {"tag", "answer", "rank"}  # that is not bundled; they are tasks as classify is


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, from which a test takes wings away and puts them back."""
    return copy_package(tmp_path_factory.mktemp("package"))


@pytest.mark.parametrize("name", NAMES)
def test_a_wing_can_be_deleted(name: str, package: Path) -> None:
    folder, kept = package / "bertcli" / "wings" / name, package / name
    folder.rename(kept)
    try:
        said = _said(package, [("--help",), ("info", "bert-mini-mlm")])
    finally:
        kept.rename(folder)
    gone = {wing.name for wing in wings() if name in (wing.name, *wing.stands_on)}
    for wing in wings():
        for command in _commands_of(wing):
            assert (f"\n  {command} " in said["--help"]) == (wing.name not in gone)
            assert wing.name not in gone or f"bertcli {command} " not in said["info"]
    assert "\n  bertcli fill-mask " in said["info"]


def test_every_command_of_the_core_runs_without_wings(package: Path) -> None:
    folder, kept = package / "bertcli" / "wings", package / "wings"
    folder.rename(kept)
    folder.mkdir()
    shutil.copy(kept / "__init__.py", folder)
    try:
        said = _said(package, [("--help",), *CORE])
    finally:
        shutil.rmtree(folder)
        kept.rename(folder)
    of_wings = {command for wing in wings() for command in _commands_of(wing)}
    assert {words[0] for words in CORE} | NEED_A_MODEL == options_of().keys() - of_wings
    assert not [command for command in of_wings if f"\n  {command} " in said["--help"]]
    assert '"tea"' in said["fill-mask"]
    assert "4,385,920" in said["params"]
    assert "positive" in said["classify"]


def _commands_of(wing: Extension) -> list[str]:
    """The commands that a wing brings, those of its tasks among them."""
    tasks = [module.rpartition(".")[2].replace("_", "-") for module in wing.tasks]
    return [*(command.name for command in wing.commands), *tasks]


def test_without_its_wing_no_option_offers_an_engine(package: Path) -> None:
    folder, kept = package / "bertcli" / "wings" / "onnx", package / "onnx"
    commands = [("encode", "--help"), ("serve", "--help"), ("doctor", "--help")]
    offered = {words[0]: bertcli(*words, environment={"COLUMNS": "100"}).out for words in commands}
    folder.rename(kept)
    try:
        left = _said(package, commands)
    finally:
        kept.rename(folder)
    assert "numpy (default). onnx: ONNX Runtime (" in " ".join(offered["encode"].split())
    assert "numpy, onnx, or onnx-int8. (default: onnx if ONNX" in " ".join(offered["serve"].split())
    assert "--engine NAME              numpy (default).\n" in left["encode"]
    assert "--engine NAME              numpy. (default: numpy)\n" in left["serve"]
    assert "onnx" not in "".join(left.values()).lower()


def _said(package: Path, commands: Sequence[tuple[str, ...]]) -> dict[str, str]:
    """What commands print where this copy is the package."""
    environment = {**os.environ, "PYTHONPATH": str(package), "COLUMNS": "100"}
    command = [sys.executable, "-P", "-c", MEASURE_LITTLE + program_of(commands)]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert [status for status, _ in answers] == [0] * len(commands), done.stderr
    return {words[0]: out for words, (_, out) in zip(commands, answers, strict=True)}


def test_no_text_of_the_core_names_a_module_of_a_wing() -> None:
    for path in HOME.rglob("*.py"):
        if path.relative_to(HOME).parts[0] == "wings":
            continue
        code = path.read_text(encoding="utf-8")
        named = [line for line in code.splitlines() if f"{WINGS}." in line and not line.startswith("    names  ")]
        assert not named, f"{path}: {named}"


def test_a_wing_imports_only_wings_that_it_stands_on() -> None:
    for wing in wings():
        for path in (HOME / "wings" / wing.name).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                module = node.module if isinstance(node, ast.ImportFrom) else None
                if module is not None and module.startswith(f"{WINGS}."):
                    assert module.split(".")[2] in (wing.name, *wing.stands_on), f"{path} imports {module}"


def test_a_declaration_costs_no_import_but_its_own() -> None:
    code = (
        "import sys; from bertcli.extensions import wings; wings(); "
        "print(*(name for name in sys.modules if name.startswith('bertcli.wings.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == [f"{WINGS}.{name}" for name in sorted(NAMES)]


def test_each_summary_is_the_first_line_of_the_docstring() -> None:
    for name, declared in extensions.own_commands().items():
        first, *_ = cleandoc(command_of(name).help).split("\n\n")
        assert " ".join(first.split()) == declared.summary
