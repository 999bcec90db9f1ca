"""Whatever happens between any two writes, `--resume` makes of it what an unbroken run gives, byte for byte."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from crashes import crashing
from deadlines import started
from terminal import Result, bertcli

from bertcli.output import draft
from bertcli.output.draft import Draft, State

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "drank", "hot", "tea", "with", "[MASK]", "while", "rain"]
FORMS = {
    "npy": ["encode"],
    "npz": ["encode", "--pooling", "none", "--dtype", "int8"],
    "safetensors": ["encode", "--pooling", "none"],
    "parquet": ["encode", "--id-column", "id", "--dtype", "int8"],
    "json": ["encode", "--keep-going"],
    "jsonl": ["fill-mask", "--keep-going", "--top-k", "2"],
}


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every window goes to the disk and to the journal."""
    monkeypatch.setattr(draft, "SHORTEST", 0.0)
    monkeypatch.setattr(draft, "LONGEST", 0.0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    choose = random.Random(0)
    path = tmp_path / "in.jsonl"
    rows = ({"id": i, "text": " ".join(choose.choices(WORDS, k=choose.randint(0, 30)))} for i in range(24))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def command(form: str, model: Path, source: Path, target: Path, *more: str) -> list[str | Path]:
    if form == "parquet":
        pytest.importorskip("pyarrow")
    return [*FORMS[form], "-m", model, "-i", source, "-o", target, "--batch-tokens", "20", "--resume", *more]


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_there_is_something_to_crash(model: Path, source: Path, tmp_path: Path) -> None:
    for form in FORMS:
        with crashing(None) as disk:
            bertcli(*command(form, model, source, tmp_path / f"v.{form}"))
        assert disk.calls > 25, form
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("power_cut", [False, True], ids=["kill", "power cut"])
@pytest.mark.parametrize("form", FORMS)
def test_a_crash_between_any_two_writes(form: str, power_cut: bool, model: Path, source: Path, tmp_path: Path) -> None:
    whole, target = tmp_path / f"whole.{form}", tmp_path / f"v.{form}"
    arguments = command(form, model, source, target)
    with crashing(None) as disk:
        first = bertcli(*command(form, model, source, whole))
    expected = whole.read_bytes()
    step = 1 if form == "npy" and not power_cut else 11
    for last in [*range(len(form), disk.calls - 8, step), *range(disk.calls - 8, disk.calls)]:
        target.write_bytes(b"old")
        with crashing(last, power_cut):
            bertcli(*arguments)
        assert target.read_bytes() in (b"old", expected), last
        assert bertcli(*arguments).status == first.status, last
        assert target.read_bytes() == expected, last
        assert leftovers(tmp_path) == []


def test_crash_after_crash(model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.safetensors"
    arguments = command("safetensors", model, source, target)
    bertcli(*arguments)
    expected = target.read_bytes()
    choose = random.Random(1)
    for _ in range(3):
        target.unlink()
        for _ in range(5):
            with crashing(choose.randint(5, 20), power_cut=choose.random() < 0.5):
                bertcli(*arguments)
        bertcli(*arguments)
        assert target.read_bytes() == expected


def unfinished(arguments: list[str | Path]) -> None:
    with crashing(20):
        bertcli(*arguments)


def test_it_goes_on_and_does_not_begin_again(
    model: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "v.npy"
    arguments = command("npy", model, source, target)
    with crashing(28):
        bertcli(*arguments)
    seen: list[int] = []
    step = Draft.step

    def watched(self: Draft, state: State) -> None:
        seen.append(state["texts"])
        step(self, state)

    monkeypatch.setattr(Draft, "step", watched)
    assert bertcli(*arguments).status == 0
    assert seen[0] > 5
    assert len(np.load(target)) == 24


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--pooling", "cls"], "--pooling was auto and is now cls"),
        (["--max-length", "9"], "--max-length was not given and is now 9"),
        (["--text-pair", "x"], "--text-pair was not given and is now x"),
        (["--batch-tokens", "30"], "--batch-tokens was 20 and is now 30"),
        (["--column", "id"], "--column was not given and is now id"),
    ],
)
def test_other_options_are_refused(change: list[str], message: str, model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    arguments = command("npy", model, source, target)
    unfinished(arguments)
    before = {name: (tmp_path / name).read_bytes() for name in leftovers(tmp_path)}
    assert f"Cannot resume {target}: {message}; restore that" in bertcli(*arguments, *change).error
    assert {name: (tmp_path / name).read_bytes() for name in leftovers(tmp_path)} == before != {}
    assert not target.exists()
    assert bertcli(*arguments).status == 0


def test_another_input_is_refused(model: Path, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    unfinished(arguments)
    text = source.read_text(encoding="utf-8")
    for changed in (text + text[:40], text[:-9], text.replace("23", "32")):
        source.write_text(changed, encoding="utf-8")
        assert "the input has changed" in bertcli(*arguments).error
    source.write_text(text, encoding="utf-8")
    assert bertcli(*arguments).status == 0


def test_another_model_is_refused(model: Path, made: Made, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    unfinished(arguments)
    assert "the model has changed" in bertcli(*arguments, "-m", made(head="pretraining", seed=8)).error


def test_without_resume_what_was_there_is_replaced(model: Path, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    unfinished(arguments)
    arguments.remove("--resume")
    assert "Note: replacing what an unfinished run left of" in bertcli(*arguments).err
    assert leftovers(tmp_path) == []
    assert "Note: replacing" not in bertcli(*arguments).err


def test_with_nothing_to_go_on_with_it_says_so(model: Path, source: Path, tmp_path: Path) -> None:
    arguments = command("npy", model, source, tmp_path / "v.npy")
    assert "starts over" not in bertcli(*arguments).err
    assert "v.npy to resume, so this one starts over." in bertcli(*arguments).err


@pytest.mark.parametrize("resume", [True, False])
def test_a_second_process_is_told(resume: bool, model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    arguments = command("npy", model, source, target)
    if not resume:
        arguments.remove("--resume")
    with Draft(str(target), None, resume=False):
        message = bertcli(*arguments).error
        link = tmp_path / "link.npy"
        link.symlink_to(target)
        assert "is writing" in bertcli(*arguments, "-o", link).error
    assert f"Process {os.getpid()} is writing {target} right now" in message
    assert leftovers(tmp_path) == []
    assert bertcli(*arguments).status == 0


def test_what_cannot_be_resumed(model: Path, tmp_path: Path) -> None:
    arguments = ["encode", "-m", str(model), "--resume"]
    assert "A pipe cannot be read a second time" in bertcli(*arguments, "-o", tmp_path / "v.npy", stdin="tea\n").error
    assert bertcli(*arguments, "tea").status == 2
    assert bertcli(*arguments, "tea", "-o", tmp_path / "v.npy").status == 0
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("damage", ["part", "gone", "journal", "nothing"])
def test_a_damaged_leftover_is_not_trusted(damage: str, model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npy"
    arguments = command("npy", model, source, target)
    bertcli(*arguments)
    expected = target.read_bytes()
    target.unlink()
    unfinished(arguments)
    part, journal = tmp_path / ".v.npy.part", tmp_path / ".v.npy.journal"
    if damage == "part":
        part.write_bytes(part.read_bytes()[:200])
    elif damage == "gone":
        part.unlink()
    elif damage == "journal":
        journal.write_bytes(journal.read_bytes()[:-30].replace(b"windows", b"windowz", 2))
    result = bertcli(*arguments)
    assert ("is damaged, so this one starts over" in result.err) == (damage in ("part", "gone"))
    assert target.read_bytes() == expected


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A disk with room for some bytes."""
    original, room = os.write, 4000

    def write(file: int, data: memoryview) -> int:
        nonlocal room
        if not room:
            raise OSError(28, "No space left on device")
        count = original(file, data[:room])
        room -= count
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", write)
        yield patch


def test_a_full_disk(full: pytest.MonkeyPatch, model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.jsonl"
    arguments = ["encode", *command("jsonl", model, source, target)[4:]]
    result = bertcli(*arguments)
    assert "No space left on device" in result.error
    assert "texts are done and kept: repeat the command with --resume to continue" in result.err
    assert not target.exists()
    full.undo()
    assert bertcli(*arguments).status == 0
    again = target.read_bytes()
    bertcli(*arguments)
    assert target.read_bytes() == again
    assert len(again.splitlines()) == 24


def test_accuracy_is_gone_on_with(made: Made, tmp_path: Path) -> None:
    model = made(head="classifier", id2label={0: "bad", 1: "good"})
    source, target = tmp_path / "in.csv", tmp_path / "v.jsonl"
    rows = "".join(f"{' '.join(WORDS[i % 7 :])},{i % 2}\n" for i in range(30))
    source.write_text(f"text,label\n{rows}", encoding="utf-8")
    arguments: list[str | Path] = [
        "classify", "-m", model, "-i", source, "-o", target, "--label-column", "label",
        "--batch-tokens", "20", "--resume",
    ]  # fmt: skip

    def run() -> Result:
        return bertcli(*arguments)

    expected = run()
    whole = target.read_bytes()
    for last in (16, 19, 26):
        with crashing(last):
            run()
        assert run() == expected
        assert target.read_bytes() == whole


def test_ctrl_c_keeps_what_is_done(model: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "v.npy"
    source.write_text("She drank hot tea with milk.\n" * 20_000, encoding="utf-8")
    code = "import bertcli.output.draft as d; d.SHORTEST = d.LONGEST = 0.0; from bertcli.cli import main; main()"
    arguments = [sys.executable, "-c", code, "encode", "-m", model, "-i", source, "-o", target, "--resume"]
    with started([*map(str, arguments)], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        journal = tmp_path / ".v.npy.journal"
        deadline = time.monotonic() + 60
        while not (journal.exists() and b"sizes" in journal.read_bytes()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert f"Process {process.pid} is writing {target} right now" in bertcli(*map(str, arguments[3:])).error
        process.send_signal(signal.SIGINT)
        err = process.stderr.read().decode()
    assert process.returncode == 130
    assert "texts are done and kept: repeat the command with --resume to continue" in err
    assert not target.exists()
    assert bertcli(*map(str, arguments[3:])).status == 0
    assert len(np.load(target)) == 20_000


def test_progress_says_rate_share_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    from bertcli.report import Pace, duration

    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    pace = Pace()
    assert pace.state(1.0, 100, 0.1) == "100 texts  10%"  # 90 of them may have been there before
    assert pace.state(2.0, 1100, 0.2) == "1,100 texts  1,000/s  20%  0:08 left"
    assert pace.state(3.0, 2100, None) == "2,100 texts  1,000/s"
    assert [duration(seconds) for seconds in (0, 61, 3661)] == ["0:00", "1:01", "1:01:01"]
