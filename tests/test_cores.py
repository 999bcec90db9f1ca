"""How many cores there are to use: those the system shows, or what a container is allowed of their time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bertcli import blas, cores

HERE = cores.cores()


def first_version(folder: str, microseconds: int) -> dict[str, str]:
    """The files of the first version of control groups."""
    return {f"{folder}/cpu.cfs_quota_us": f"{microseconds}\n", f"{folder}/cpu.cfs_period_us": "100000\n"}


def limited(monkeypatch: pytest.MonkeyPatch, folder: Path, groups: str, files: dict[str, str]) -> float | None:
    """The limit of a process in these control groups, with these files."""
    (folder / "groups").write_text(groups)
    for name, text in files.items():
        file = folder / "mount" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(cores, "GROUPS", str(folder / "groups"))
    monkeypatch.setattr(cores, "MOUNT", str(folder / "mount"))
    return cores.cpu_quota()


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5),
        ("0::/a/b\n", {"a/b/cpu.max": "300000 100000\n", "a/cpu.max": "400000 100000\n"}, 3.0),
        ("0::/../b\n", {"cpu.max": "200000 100000\n"}, 2.0),
        ("5:memory:/m\n4:cpu,cpuacct:/d/x\n0::/\n", first_version("cpu", 250_000), 2.5),
        ("4:cpu:/d\n", first_version("cpu/d", 50_000), 0.5),
        ("2:cpu:/d\n", first_version("cpu/d", -1), None),
        ("3:cpuset:/\n2:cpuacct:/\n", first_version("cpu", 100_000), None),
        ("0::/\n", {"cpu.max": "100000 0\n"}, None),
        ("0::/\n", {"cpu.max": ""}, None),
        ("nonsense\n", {"cpu.max": "100000 100000\n"}, None),
    ],
)  # fmt: skip
def test_the_limit_of_a_container(
    groups: str, files: dict[str, str], limit: float | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert limited(monkeypatch, tmp_path, groups, files) == limit


@pytest.mark.parametrize(
    ("time", "usable"), [("10000", 1), ("100000", 1), ("110000", min(2, HERE)), ("99900000", HERE)]
)
def test_a_part_of_a_core_is_one_more(time: str, usable: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    limited(monkeypatch, tmp_path, "0::/\n", {"cpu.max": f"{time} 100000\n"})
    assert cores.usable_cores() == usable


def test_without_control_groups_all_cores_are_usable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cores, "GROUPS", str(tmp_path / "none"))
    assert cores.cpu_quota() is None
    assert cores.usable_cores() == HERE


PROGRAM = """
import json, os, sys
from bertcli import blas, cores
cores.GROUPS, cores.MOUNT = sys.argv[1:]
chosen = blas.choose_threads()
import bertcli.kernels
from bertcli import team
names = [name for name in blas.THREAD_VARIABLES if name in os.environ]
json.dump([chosen, blas.threads(), team.core_count(), names], sys.stdout)
"""


@pytest.mark.skipif(HERE < 2, reason="this machine has one core")
@pytest.mark.parametrize(
    ("said", "found"),
    [({}, [True, 1, 1, []]), ({"OMP_NUM_THREADS": "2"}, [False, 2, 1, ["OMP_NUM_THREADS"]])],
)
def test_a_limit_is_kept_from_the_first_product(said: dict[str, str], found: list[object], tmp_path: Path) -> None:
    (tmp_path / "groups").write_text("0::/\n")
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    environment = {name: value for name, value in os.environ.items() if name not in blas.THREAD_VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "groups"), str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=60, env=environment | said,
    )  # fmt: skip
    threads = json.loads(done.stdout)
    if threads[1] is None:
        pytest.skip("this NumPy's library does not say how many threads it uses")
    assert threads == found


def test_once_numpy_is_loaded_it_is_too_late() -> None:
    assert "numpy" in sys.modules
    assert not blas.choose_threads()
