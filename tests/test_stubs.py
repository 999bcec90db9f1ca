"""The stub for type checkers and editors has every public name, as the declarations say."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from helpers.stubs import FILE, stub

import bertcli


def test_the_stub_is_what_the_declarations_say() -> None:
    assert FILE.read_text(encoding="utf-8") == stub(), "python tests/helpers/stubs.py writes it anew"


def test_the_stub_has_every_name_of_the_package() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert {*re.findall(r'^    "(\w+)",$', text, re.MULTILINE)} == {*bertcli.__all__, *dir(bertcli)}


def test_an_editor_sees_the_options_of_tasks_and_of_views() -> None:
    text = FILE.read_text(encoding="utf-8")
    for name, option in (("encode", "pooling"), ("keywords", "ngrams"), ("export", "opset"), ("explain", "contrast")):
        signatures = re.findall(rf"^ *def {name}\((.*?)\) ->", text, re.DOTALL | re.MULTILINE)
        assert all(f"{option}: " in parameters for parameters in signatures)
        assert len(signatures) == (2 if name in ("keywords", "explain") else 1)


def test_the_stub_without_wings_has_the_names_of_the_rest(tmp_path: Path) -> None:
    shutil.copytree(FILE.parent, tmp_path / "bertcli", ignore=shutil.ignore_patterns("__pycache__", "sample_weights"))
    for wing in (tmp_path / "bertcli" / "wings").iterdir():
        if wing.is_dir():
            shutil.rmtree(wing)
    helpers = Path(__file__).parent
    environment = {"PYTHONPATH": f"{tmp_path}:{helpers}", "PATH": ""}
    command = [sys.executable, "-c", "from helpers.stubs import stub; print(stub())"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "def encode(" in done.stdout
    assert "wings" not in done.stdout.replace("test_wings", "")
