"""The wheel that users install: it is built once, unpacked, and run away from the sources."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import bertcli

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel was unpacked into."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=ROOT, check=True)
    (wheel,) = folder.glob("*.whl")
    assert wheel.name == f"bertcli-{bertcli.__version__}-py3-none-any.whl"
    ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def run(installed: Path, *arguments: str) -> str:
    """What `python ARGUMENTS` prints where only the wheel's package can be imported."""
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(
        command, cwd=installed.parent, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_the_wheel_runs_with_the_models_and_the_style_sheet_in_it(installed: Path) -> None:
    assert Path(run(installed, "-c", "import bertcli; print(bertcli.__file__)").strip()).is_relative_to(installed)
    assert run(installed, "-m", "bertcli", "--version") == f"bertcli {bertcli.__version__}\n"
    found = json.loads(run(installed, "-m", "bertcli", "classify", "I loved it.", "--format", "json"))
    assert found == bertcli.load("bert-mini-sentiment").classify(["I loved it."])
    run(installed, "-m", "bertcli", "explain", "I loved it.", "-o", "page.html")
    assert "<style>" in (installed.parent / "page.html").read_text(encoding="utf-8")


def test_the_wheel_holds_the_package_and_nothing_else(installed: Path) -> None:
    written = (path for path in (ROOT / "bertcli").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    sources = {str(path.relative_to(ROOT)) for path in written}
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert sources <= files
    assert {Path(file).parts[0] for file in files} == {"bertcli", f"bertcli-{bertcli.__version__}.dist-info"}
    assert not any("tests" in Path(file).parts for file in files)


def test_the_readme_says_how_large_the_wheel_is(installed: Path) -> None:
    (wheel,) = installed.parent.glob("*.whl")
    said = re.search(r"of\s+the wheel's (\d+) MB (\d+) is code\.", (ROOT / "README.md").read_text("utf-8"))
    assert said is not None
    with ZipFile(wheel) as files:
        code = sum(file.compress_size for file in files.infolist() if "sample_weights" not in file.filename)
    assert said.groups() == (f"{wheel.stat().st_size / 1e6:.0f}", f"{code / 1e6:.0f}")
