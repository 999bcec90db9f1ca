"""Which files a client may name; without the protocol's packages, which these do not need."""

import gzip
import os
from pathlib import Path

import pytest
from helpers.roots import write_root

from bertcli.errors import BertcliError
from bertcli.tasks.limits import DoorLimits
from bertcli.wings.agents import roots
from bertcli.wings.agents.roots import Roots


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_root(tmp_path)


def test_roots_names_of_files_may_look_like_patterns(root: Path) -> None:
    (root / "a[1].txt").write_text("A cat.\n")
    (root / "b[1]").mkdir()
    (root / "b[1]" / "c.txt").write_text("A dog.\n")
    known = Roots([str(root)])
    for name, file in (("a[1].txt", "a[1].txt"), ("b[1]", "b[1]/c.txt"), ("n[o]tes.txt", "notes.txt")):
        assert [known.shown(found) for found in known.files([name])] == [str(Path(file))]


def test_roots_bounds_the_files_of_a_search(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = Roots([str(root)])
    (root / "prices.csv").write_text("price\n2\n")
    assert [known.shown(file) for file in known.files(["**/*"])] == [os.path.join("deep", "more.md"), "notes.txt"]
    monkeypatch.setattr(roots, "MOST_FILES", 1)
    with pytest.raises(BertcliError, match="names more than 1 files"):
        known.files(["**/*"])
    monkeypatch.setattr(roots, "MOST_FILES", 3)
    with pytest.raises(BertcliError, match="more than 50 bytes, unpacked: name fewer"):
        known.files(["**/*"], DoorLimits(files=50))


def test_roots_counts_what_a_gzip_unpacks_to(root: Path) -> None:
    packed = root / "packed.txt.gz"
    packed.write_bytes(gzip.compress(b"Tea.\n" * 100_000) + gzip.compress(b"Tea.\n" * 100_000))
    assert packed.stat().st_size < 10_000
    known = Roots([str(root)])
    assert known.files(["packed.txt.gz"], DoorLimits(files=1_000_000)) == [str(packed)]
    with pytest.raises(BertcliError, match="more than 900,000 bytes, unpacked"):
        known.files(["packed.txt.gz"], DoorLimits(files=900_000))


def test_roots_passes_over_hidden_names_unless_they_are_named(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "log.txt").write_text("A commit.\n")
    known = Roots([str(root)])
    assert [known.shown(file) for file in known.files(["."])] == [os.path.join("deep", "more.md"), "notes.txt"]
    for name in (".git", ".git/*.txt", ".git/log.txt"):
        assert [known.shown(file) for file in known.files([name])] == [os.path.join(".git", "log.txt")]


def test_roots_bounds_the_names_that_a_pattern_looks_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roots, "MOST_NAMES", 3)
    with pytest.raises(BertcliError, match="names more than 3 files and folders"):
        Roots([str(root)]).files(["**/*"])


def test_roots_reads_a_folder_of_the_second_root(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other" / "deep").mkdir(parents=True)
    (tmp_path / "other" / "deep" / "b.txt").write_text("Tea.\n")
    both = Roots([str(root), str(tmp_path / "other")])
    named = both.files([str(tmp_path / "other")])
    assert named == [str(tmp_path / "other" / "deep" / "b.txt")]
    assert both.shown(named[0]) == os.path.join("deep", "b.txt")
