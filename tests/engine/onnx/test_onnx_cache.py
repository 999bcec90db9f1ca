"""The cache of graphs: made once, whole, by whoever comes first; without it, work goes on."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bertcli.engine.onnx import cache
from bertcli.engine.onnx.cache import cache_folder, key_of, open_cached
from bertcli.errors import BertcliError

WEIGHTS = {"a": np.ones((2, 3), np.float32), "b": np.zeros(4, np.float32)}


class Opened:
    """In place of a session: the content of a file, which must be whole."""

    def __init__(self, file: Path, device: str) -> None:
        self.content = file.read_text() if file.exists() else ""
        self.device = device
        if self.content != "whole":
            raise BertcliError("this file is damaged.")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "Session", Opened)
    return tmp_path / "cache" / "onnx"


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
        assert open_cached("key", make, "cpu").__dict__ == {"content": "whole", "device": "cpu"}
    assert make.times == 1
    assert [one.name for one in folder.iterdir()] == ["key"]
    open_cached("other", make, "cpu")
    assert make.times == 2


def test_onnx_cache_makes_a_damaged_graph_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "bertcli")
    make = Made()
    open_cached("key", make, "cpu")
    for damage in (lambda file: file.write_text("who"), lambda file: file.write_text(""), os.remove):
        damage(folder / "key" / cache.NAME)
        assert open_cached("key", make, "cpu").__dict__["content"] == "whole"
    assert make.times == 4
    assert "could not be opened and is made again" in caplog.text
    assert [one.name for one in folder.iterdir()] == ["key"]
    assert [one.name for one in (folder / "key").iterdir()] == [cache.NAME]


def test_onnx_cache_does_not_hide_what_cannot_be_opened_twice(folder: Path) -> None:
    with pytest.raises(BertcliError, match="damaged"):
        open_cached("key", Made("never whole"), "cpu")


def test_onnx_cache_serves_several_at_once(folder: Path) -> None:
    make = Made(seconds=0.05)
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda _: open_cached("key", make, "cpu").__dict__["content"], range(8))]
    assert found == ["whole"] * 8
    assert [one.name for one in folder.iterdir()] == ["key"]


@pytest.mark.parametrize("block", [lambda parent: parent.write_text("a file"), lambda parent: parent.mkdir(mode=0o500)])
def test_onnx_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, block: Callable[[Path], object]
) -> None:
    if os.geteuid() == 0 and block(tmp_path / "cache") is None:
        pytest.skip("root may write anywhere")
    make = Made()
    for _ in range(2):
        assert open_cached("key", make, "cpu").__dict__["content"] == "whole"
    assert make.times == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2
    assert "it is made anew each time; see BERTCLI_CACHE" in caplog.text


def test_onnx_cache_keeps_nothing_half_made(folder: Path) -> None:
    def fail(file: Path) -> None:
        file.write_text("half")
        raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        open_cached("key", fail, "cpu")
    assert not [*folder.iterdir()]


def test_onnx_cache_removes_what_a_killed_process_left(folder: Path) -> None:
    for name, age in ((".old", 2 * cache.ABANDONED), (".new", 60)):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (time.time() - age,) * 2)
    open_cached("key", Made(), "cpu")
    assert sorted(one.name for one in folder.iterdir()) == [".new", "key"]


def test_onnx_cache_keys_differ_with_weights_and_settings() -> None:
    other = {**WEIGHTS, "b": np.array([0, 0, 0, 1], np.float32)}
    turned = {**WEIGHTS, "a": np.ones((3, 2), np.float32)}
    renamed = {"a": WEIGHTS["a"], "c": WEIGHTS["b"]}
    keys = [key_of(weights, "int8", 20) for weights in (WEIGHTS, other, turned, renamed)]
    keys += [key_of(WEIGHTS, "float32", 20), key_of(WEIGHTS, "int8", 21)]
    assert len({*keys}) == 6
    assert key_of({name: array.copy() for name, array in WEIGHTS.items()}, "int8", 20) == keys[0]


def test_onnx_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "bertcli"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "bertcli"
