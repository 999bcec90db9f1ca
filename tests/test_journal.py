"""The journal and the parts of an unfinished result: what is believed of them after a crash, and what is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.errors import BertcliError
from bertcli.output import draft, journal
from bertcli.output.draft import Draft
from bertcli.output.journal import Journal
from bertcli.output.part import Part


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "v.journal"


def entries(path: Path) -> list[journal.Entry]:
    opened = Journal(path, "v")
    opened.close()
    return opened.entries


def write(path: Path, *new: journal.Entry) -> None:
    opened = Journal(path, "v")
    for entry in new:
        opened.append(entry)
    opened.close()


@pytest.mark.parametrize("good", [0, 1, 2])
def test_a_line_counts_by_its_checksum(good: int, path: Path) -> None:
    """The third line is JSON that ends in a newline, but not what was written: a disk may have kept a part of it."""
    write(path, {"texts": 1}, {"texts": 2}, {"texts": 3})
    lines = path.read_bytes().splitlines(keepends=True)
    lines[good] = lines[good].replace(b'"texts": ', b'"texts": 1')
    path.write_bytes(b"".join(lines))
    assert entries(path) == [{"texts": 1}, {"texts": 2}, {"texts": 3}][:good]
    write(path, {"texts": 9})
    assert entries(path) == [*({"texts": 1}, {"texts": 2})[:good], {"texts": 9}]


def gone(path: Path) -> None:
    path.unlink()


def made_anew(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.touch()


@pytest.mark.parametrize("meanwhile", [gone, made_anew])
def test_what_is_deleted_before_it_is_locked_is_not_written_to(
    meanwhile: Callable[[Path], None], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, late = journal._lock, [meanwhile]

    def locked(file: int) -> bool:
        if late:
            late.pop()(path)
        return lock(file)

    monkeypatch.setattr(journal, "_lock", locked)
    write(path, {"texts": 1})
    assert entries(path) == [{"texts": 1}]


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
def test_a_part_that_failed_to_reach_the_disk_is_never_whole(tmp_path: Path) -> None:
    part = Part(tmp_path / "v.part")
    part.write(b"tea")
    for attempt in (part.sync, part.sync, part.flush, part.seal, lambda: part.cut(0)):
        with pytest.raises(OSError, match="Input/output error"):
            attempt()
    part.close()


@pytest.mark.usefixtures("failing")
def test_what_failed_to_reach_the_disk_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "SHORTEST", 0.0)
    monkeypatch.setattr(draft, "LONGEST", 0.0)

    def run() -> None:
        with Draft(str(tmp_path / "v.npy"), lambda: {"input": "tea"}, resume=True) as unfinished:
            unfinished.part().write(b"tea")
            unfinished.step({"texts": 1})

    with pytest.raises(BertcliError, match="Input/output error"):
        run()
    assert list(tmp_path.iterdir()) == []
