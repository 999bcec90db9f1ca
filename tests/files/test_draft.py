"""A draft's parts, its state and its lock: what is believed of them after a crash, and what is not."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from bertcli.errors import BertcliError
from bertcli.files import draft, part
from bertcli.files.draft import Draft, save
from bertcli.files.part import Lock, Part

ELSEWHERE = {"fingerprint": {}, "sizes": {"../x": 1}, "checksums": {"../x": [0, 0]}, "state": None, "whole": True}
OTHER = json.dumps({**ELSEWHERE, "sum": draft._sum(ELSEWHERE)})


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step goes to the disk."""
    monkeypatch.setattr(draft, "SHORTEST", 0.0)
    monkeypatch.setattr(draft, "LONGEST", 0.0)


def unfinished(file: Path, resume: bool = True) -> Draft:
    return Draft(str(file), lambda: {"input": "tea"}, resume)


def interrupt(file: Path, *, after: int = 2) -> None:
    """So many steps of three bytes each, and something more, before Ctrl-C."""
    with suppress(KeyboardInterrupt), unfinished(file) as begun:
        for texts in range(1, after + 1):
            begun.part().write(b"tea")
            begun.step({"texts": texts})
        begun.part().write(b"lost")
        raise KeyboardInterrupt


@pytest.mark.usefixtures("eager")
def test_draft_goes_on_where_the_state_says(tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    interrupt(file)
    with unfinished(file) as resumed:
        assert resumed.state == {"texts": 2}
        assert resumed.part().size == 6
        resumed.part().write(b"milk")
        resumed.publish()
    assert file.read_bytes() == b"teateamilk"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"state": {"texts": 9}}', "\x00" * 80, "[" * 99_999, OTHER])
def test_draft_believes_no_state_that_is_not_whole(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    interrupt(file)
    state = tmp_path / ".v.json.state"
    assert json.loads(state.read_text())["state"] == {"texts": 2}
    state.write_text(damage)
    with unfinished(file) as resumed:
        assert resumed.state is None
        assert resumed.part().size == 0
        resumed.publish()
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("key", ["fingerprint", "sizes", "checksums", "state", "whole", "sum"])
@pytest.mark.parametrize("value", [None, True, 3, "x", [], {}, [[1]], {"texts": "2"}, {"": -6}])
def test_draft_believes_no_state_that_was_changed(key: str, value: object, tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    interrupt(file)
    state = tmp_path / ".v.json.state"
    state.write_text(json.dumps({**json.loads(state.read_text()), key: value}))
    with unfinished(file) as resumed:
        assert resumed.state is None
        assert resumed.part().size == 0


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("damage", ["part", "errors.jsonl.part"])
def test_draft_believes_no_part_that_is_damaged(damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "v.json"
    with suppress(KeyboardInterrupt), unfinished(file) as begun:
        begun.part(draft.ERRORS).write(b"error")
        begun.part(head=4).write(b"head")
        begun.part().write(b"tea")
        begun.step({"texts": 1})
        begun.part().write_head(b"HEAD")  # as at the end, before the result is whole
        raise KeyboardInterrupt
    with suppress(KeyboardInterrupt), unfinished(file) as resumed:
        assert resumed.state == {"texts": 1}
        raise KeyboardInterrupt
    path = tmp_path / f".v.json.{damage}"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with unfinished(file) as resumed:
        assert resumed.state is None
        assert resumed.part().size == 0
    assert f"what an earlier run left of {file} is damaged, so this one starts over" in caplog.text


@pytest.mark.usefixtures("eager")
@pytest.mark.skipif(os.name == "nt", reason="no pipes with a name")
@pytest.mark.parametrize("beside", ["part", "state"])
@pytest.mark.parametrize("planted", ["hard link", "link", "pipe"])
def test_draft_believes_nothing_that_is_another_file(beside: str, planted: str, tmp_path: Path) -> None:
    file, path, other = tmp_path / "v.json", tmp_path / f".v.json.{beside}", tmp_path / "other"
    interrupt(file)
    path.rename(other)
    content = other.read_bytes()
    match planted:
        case "hard link":
            path.hardlink_to(other)
        case "link":
            path.symlink_to(other)
        case "pipe":
            os.mkfifo(path)
    with unfinished(file) as resumed:
        assert resumed.state is None
        resumed.part().write(b"new")
        resumed.publish()
    assert (file.read_bytes(), other.read_bytes()) == (b"new", content)
    assert sorted(tmp_path.iterdir()) == [other, file]


@pytest.mark.usefixtures("eager")
def test_draft_without_resume_leaves_nothing_of_an_earlier_one(tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    interrupt(file)
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(KeyboardInterrupt), unfinished(file, resume=False):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_draft_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    file.write_bytes(b"old")
    file.chmod(0o640)
    with suppress(ZeroDivisionError), Draft(str(file)) as failing:
        failing.part().write(b"new")
        raise ZeroDivisionError
    assert file.read_bytes() == b"old"
    save(str(file), b"new")
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_draft_replaces_what_a_link_points_to(tmp_path: Path) -> None:
    file, link = tmp_path / "v.json", tmp_path / "link.json"
    link.symlink_to(file)
    save(str(link), b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


def test_draft_lists_beside_it_only_what_there_is(tmp_path: Path) -> None:
    file, listed = tmp_path / "v.npy", tmp_path / "v.npy.errors.jsonl"
    for errors in (b"{}\n", b""):
        with Draft(str(file)) as written:
            written.part().write(b"tea")
            written.part(draft.ERRORS).write(errors)
            written.publish()
        assert listed.exists() == bool(errors)
    assert list(tmp_path.iterdir()) == [file]


# ---------------------------------------------------------------------------------------------------------------- parts


def test_part_grows_at_its_end_and_its_head_is_written_again(tmp_path: Path) -> None:
    written = Part(tmp_path / "v.part", "v", head=3)
    for data in (b"hot", b" tea", b" with milk"):
        written.write(data)
    known = written.checksum
    written.write_head(b"old")
    assert (written.size, written.checksum) == (17, known)
    assert b"".join(written.chunks()) == b"old tea with milk"
    written.close()
    again = Part(tmp_path / "v.part", "v", size=7)
    assert again.path.read_bytes() == b"old tea"
    with again.by_path() as path:
        Path(path).write_bytes(b"coffee")
    assert (again.size, again.checksum) == (6, None)
    again.close()


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails once, and then says that all is well."""
    fsync, failures = os.fsync, [OSError(5, "Input/output error")]

    def once(file: int) -> None:
        if failures:
            raise failures.pop()
        fsync(file)

    monkeypatch.setattr(os, "fsync", once)


@pytest.mark.usefixtures("failing")
def test_part_that_failed_to_reach_the_disk_is_never_whole(tmp_path: Path) -> None:
    doubtful = Part(tmp_path / "v.part", "v")
    doubtful.write(b"tea")
    for attempt in (doubtful.sync, doubtful.sync, doubtful.flush, doubtful.seal):
        with pytest.raises(BertcliError, match="Cannot write v: Input/output error; nothing there was changed"):
            attempt()
    doubtful.close()


@pytest.mark.usefixtures("failing", "eager")
def test_draft_does_not_go_on_with_what_failed_to_reach_the_disk(tmp_path: Path) -> None:
    def run() -> None:
        with unfinished(tmp_path / "v.npy") as begun:
            begun.part().write(b"tea")
            begun.step({"texts": 1})

    with pytest.raises(BertcliError, match="Input/output error"):
        run()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------------- locks


def gone(path: Path) -> None:
    path.unlink()


def made_anew(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.touch()


@pytest.mark.parametrize("meanwhile", [gone, made_anew])
def test_lock_that_is_deleted_before_it_is_held_is_none(
    meanwhile: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.lock"
    lock, late = part.locked, [meanwhile]

    def locked(file: int) -> bool:
        if late:
            late.pop()(path)
        return lock(file)

    monkeypatch.setattr(part, "locked", locked)
    held = Lock(path, "v")
    assert path.read_text() == str(os.getpid())
    with pytest.raises(BertcliError, match=f"Process {os.getpid()} is writing v right now"):
        Lock(path, "v")
    held.release(remove=True)
    assert not path.exists()


@pytest.mark.parametrize("plant", [os.symlink, os.link])
@pytest.mark.parametrize("beside", ["part", "lock", "state", "state.new", "errors.jsonl.part"])
def test_draft_does_not_write_through_a_planted_link(
    beside: str, plant: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    victim, link = tmp_path / "victim", tmp_path / f".out.npz.{beside}"
    victim.write_text("precious")
    plant(victim, link)
    if beside == "lock":
        with pytest.raises(BertcliError, match="Cannot write"):
            save(str(tmp_path / "out.npz"), b"new")
        assert not (tmp_path / "out.npz").exists()
    else:
        save(str(tmp_path / "out.npz"), b"new")
        assert (tmp_path / "out.npz").read_bytes() == b"new"
        assert not link.exists()
    assert victim.read_text() == "precious"


@pytest.mark.skipif(os.name == "nt", reason="another way to lock")
@pytest.mark.parametrize(("number", "ours"), [(errno.EWOULDBLOCK, False), (errno.ENOSYS, True), (errno.ENOLCK, True)])
def test_draft_on_a_file_system_without_locks(number: int, ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(file: int, how: int) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr("fcntl.flock", flock)
    assert part.locked(0) is ours
