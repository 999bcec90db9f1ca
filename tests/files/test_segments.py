"""Segments on their way to a file, the rename at the end, and the lock."""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from bertcli.errors import BertcliError
from bertcli.files.write import resumable_output
from bertcli.files.write.resumable_output import ResumableOutput
from bertcli.files.write.save import save


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block goes to the disk."""
    monkeypatch.setattr(resumable_output, "SHORTEST_SEGMENT", 0.0)
    monkeypatch.setattr(resumable_output, "LONGEST_SEGMENT", 0.0)


def unfinished(file: Path, resume: bool = True) -> ResumableOutput:
    return ResumableOutput(str(file), lambda: {"input": "tea"}, resume)


def interrupt(file: Path, after: int = 2) -> None:
    """So many blocks before Ctrl-C."""
    with suppress(KeyboardInterrupt), unfinished(file) as begun:
        for texts in range(1, after + 1):
            begun.add({"lines": b"tea", "rows": np.full((texts, 2), texts)}, {"texts": texts})
        raise KeyboardInterrupt


def left(folder: Path) -> list[Path]:
    """What lies in a folder."""
    return list(folder.iterdir())


@pytest.mark.usefixtures("eager")
def test_segments_without_a_fingerprint_are_removed(tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    interrupt(file)
    (tmp_path / ".v.json.parts" / "fingerprint.json").unlink()
    with unfinished(file) as resumed:
        assert resumed.state is None
        assert resumed.row_count("lines") == 0
        with resumed.result() as stream:
            stream.write(b"new")
    assert left(tmp_path) == [file]


def test_segments_are_as_large_as_stated_even_of_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumable_output, "LARGEST_SEGMENT", 100)
    with ResumableOutput(str(tmp_path / "v.npy")) as written:
        for _ in range(7):
            written.add({"rows": np.zeros(5)}, {})
        sizes = [len(rows) for rows in written.rows("rows")]
    assert sizes == [15, 15, 5]
    assert left(tmp_path) == []


@pytest.mark.usefixtures("eager")
def test_segment_that_did_not_reach_the_disk_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync, failures = os.fsync, [OSError(errno.EIO, "Input/output error")]

    def once(file: int) -> None:
        if failures and os.path.samestat(os.fstat(file), os.stat(tmp_path / ".v.npy.parts" / "new")):
            raise failures.pop()
        fsync(file)

    monkeypatch.setattr(os, "fsync", once)
    with pytest.raises(BertcliError, match=r"Cannot write .*v\.npy: Input/output error; nothing there was changed"):
        interrupt(tmp_path / "v.npy")
    with unfinished(tmp_path / "v.npy") as resumed:
        assert resumed.state == {"texts": 1}
        assert b"".join(resumed.byte_blocks("lines")) == b"tea"


# ---------------------------------------------------------------------------------------------------------------- locks


def gone(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()


def made_anew(path: Path) -> None:
    path.unlink()
    path.touch()


@pytest.mark.parametrize("meanwhile", [gone, made_anew])
def test_lock_that_is_deleted_before_it_is_held_is_none(
    meanwhile: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".v.npy.parts" / "lock"
    lock, late = fcntl.flock, [meanwhile]

    def flock(file: int, how: int) -> None:
        lock(file, how)
        if late:
            late.pop()(path)

    monkeypatch.setattr("fcntl.flock", flock)
    with ResumableOutput(str(tmp_path / "v.npy")):
        assert path.with_name("process").read_text() == str(os.getpid())
        with (
            pytest.raises(BertcliError, match=f"Process {os.getpid()} is writing .*v.npy right now"),
            ResumableOutput(str(tmp_path / "v.npy")),
        ):
            pass
    assert left(tmp_path) == []


@pytest.mark.parametrize(("number", "ours"), [(errno.EWOULDBLOCK, False), (errno.ENOSYS, True), (errno.ENOLCK, True)])
def test_lock_on_a_file_system_without_locks(
    number: int, ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("fcntl.flock", flock)
    if ours:
        save(str(tmp_path / "v.json"), b"new")
        assert (tmp_path / "v.json").read_bytes() == b"new"
    else:
        with pytest.raises(BertcliError, match="Another process is writing"):
            save(str(tmp_path / "v.json"), b"new")


def test_a_signal_while_the_lock_is_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, signals = fcntl.flock, [KeyboardInterrupt]

    def flock(file: int, how: int) -> None:
        if signals:
            raise signals.pop()
        lock(file, how)

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(KeyboardInterrupt), ResumableOutput(str(tmp_path / "v.npy")):
        pass
    assert left(tmp_path) == []
