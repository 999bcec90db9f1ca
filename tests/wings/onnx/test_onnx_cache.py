"""The cache of graphs: made once, whole, by whoever comes first."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bertcli.weights.digest import key_of
from bertcli.wings.onnx import session as kept
from bertcli.wings.onnx.session import cache_folder, cache_size, open_cached

WEIGHTS = {"a": np.ones((2, 3), np.float32), "b": np.zeros(4, np.float32)}


class Opened:
    """In place of a session: the content of a file."""

    def __init__(self, file: Path, device: str) -> None:
        self.content = file.read_text()
        self.device = device


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BERTCLI_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "Session", Opened)
    return tmp_path / "cache" / "onnx" / "model"


class Made:
    """Counts how often a graph is made."""

    def __init__(self, content: str = "whole", seconds: float = 0.0) -> None:
        self.times, self.content, self.seconds = 0, content, seconds

    def __call__(self, file: Path) -> None:
        self.times += 1
        time.sleep(self.seconds)
        file.write_text(self.content)


def test_onnx_cache_makes_a_graph_once(folder: Path) -> None:
    make = Made()
    for _ in range(3):
        assert open_cached("model", "key", make, "cpu").__dict__ == {"content": "whole", "device": "cpu"}
    assert make.times == 1
    assert [one.name for one in folder.iterdir()] == ["key"]
    open_cached("model", "other", make, "cpu")
    assert make.times == 2


def test_onnx_cache_makes_a_damaged_graph_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    def make(file: Path) -> None:
        file.write_text("whole")
        file.with_name(f"{file.name}_data").write_bytes(b"1234")

    def open_it() -> str:
        return str(open_cached("model", "key", make, "cpu").__dict__["content"])

    open_it()
    for name, damage in (("model.onnx", b"who"), ("model.onnx_data", b"1204"), (kept.DIGESTS, b"{")):
        (folder / "key" / name).write_bytes(damage)
        caplog.clear()
        assert open_it() == "whole"
        assert "is damaged: making it again." in caplog.text
        assert (folder / "key" / "model.onnx_data").read_bytes() == b"1234"
        caplog.clear()
        assert open_it() == "whole"
        assert not caplog.text
    (folder / "key" / "model.onnx_data").unlink()
    open_it()
    assert (folder / "key" / "model.onnx_data").read_bytes() == b"1234"


def test_onnx_cache_has_a_graph_on_the_disk_before_it_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    moved: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noted_sync(number: int) -> None:
        synced.add(os.fstat(number).st_ino)
        fsync(number)

    def noted_rename(source: Path, target: Path) -> None:
        moved.extend(path.name for path in source.iterdir() if path.stat().st_ino in synced)
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "rename", noted_rename)
    open_cached("model", "key", Made(), "cpu")
    assert sorted(moved) == ["digests.json", "model.onnx"]


def test_onnx_cache_serves_several_at_once(folder: Path) -> None:
    make = Made(seconds=0.05)
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: open_cached("model", "key", make, "cpu").__dict__["content"], range(8))]
    assert found == ["whole"] * 8
    assert [one.name for one in folder.iterdir()] == ["key"]


def test_onnx_cache_keeps_nothing_half_made(folder: Path) -> None:
    def fail(file: Path) -> None:
        file.write_text("half")
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        open_cached("model", "key", fail, "cpu")
    assert not [*folder.iterdir()]


def test_onnx_cache_removes_old_graphs_of_the_same_model_when_it_makes_one(folder: Path) -> None:
    hour_ago = time.time() - 2 * kept.OLD
    for key in ("earlier", "recent"):
        open_cached("model", key, Made(), "cpu")
        open_cached("another", key, Made(), "cpu")
    (folder / ".killed").mkdir()
    for name in ("earlier", ".killed", "../another/earlier"):
        os.utime(folder / name, (hour_ago, hour_ago))
    size = cache_size()
    open_cached("model", "key", Made(), "cpu")
    assert sorted(one.name for one in folder.iterdir()) == ["key", "recent"]
    assert sorted(one.name for one in (folder.parent / "another").iterdir()) == ["earlier", "recent"]
    assert cache_size() == size > 0


def test_onnx_cache_removes_nothing_elsewhere(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "letters").mkdir(parents=True)
    os.utime(tmp_path / "home" / "letters", (1, 1))
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path / "home")
    open_cached("model", "key", Made(), "cpu")
    assert (tmp_path / "home" / "letters").is_dir()


def test_onnx_cache_keys_differ_with_weights_and_settings() -> None:
    other = {**WEIGHTS, "b": np.array([0, 0, 0, 1], np.float32)}
    turned = {**WEIGHTS, "a": np.ones((3, 2), np.float32)}
    renamed = {"a": WEIGHTS["a"], "c": WEIGHTS["b"]}
    keys = [key_of(weights, "int8", 20) for weights in (WEIGHTS, other, turned, renamed)]
    keys += [key_of(WEIGHTS, "float32", 20), key_of(WEIGHTS, "int8", 21)]
    assert len({*keys}) == 6
    assert key_of({name: array.copy() for name, array in WEIGHTS.items()}, "int8", 20) == keys[0]


def test_onnx_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache" / "onnx"
    monkeypatch.delenv("BERTCLI_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "bertcli" / "onnx"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "bertcli" / "onnx"
