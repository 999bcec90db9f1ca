"""bertcli export: files, folders, what it says and what it refuses."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import pytest
from conftest import Made
from filelock import FileLock, Timeout
from helpers.checkpoints import Sentence
from helpers.terminal import bertcli, wrong_usage

from bertcli.errors import BertcliError
from bertcli.wings.onnx import export

MAIN = """
import resource, sys
from bertcli.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
sys.exit(main())
"""


def test_export_command_writes_a_file(tmp_path: Path) -> None:
    done = bertcli("export", "-o", tmp_path / "m.onnx")
    assert (done.status, done.out) == (0, "")
    note, wrote, what = done.err.splitlines()
    assert note == "Note: no model given (-m); using the bundled bert-mini-mlm."
    assert wrote == f"Wrote {tmp_path}/m.onnx (21.6 MB)."
    assert what.startswith(f"Note: {tmp_path}/m.onnx gives logits; its numbers differ from NumPy's by at most ")
    assert [one.name for one in onnx.load(tmp_path / "m.onnx").graph.output] == ["logits"]


@pytest.mark.parametrize(
    ("options", "outputs", "megabytes"),
    [
        (["--head", "none"], ["last_hidden_state", "pooler_output"], 21.6),
        (["--pooling", "mean", "--normalize"], ["last_hidden_state", "sentence_embedding"], 21.3),
        (["--head", "nsp", "--dtype", "float16"], ["logits"], 10.8),
        (["--int8", "--head", "none"], ["last_hidden_state", "pooler_output"], 5.7),
    ],
)
def test_export_command_gives_what_is_asked_for(
    tmp_path: Path, options: list[str], outputs: list[str], megabytes: float
) -> None:
    done = bertcli("export", "-o", tmp_path / "m.onnx", *options, "--no-verify")
    assert f"Wrote {tmp_path}/m.onnx ({megabytes} MB).\n" in done.err
    assert done.err.endswith(f"m.onnx gives {' and '.join(outputs)}.\n")
    assert [one.name for one in onnx.load(tmp_path / "m.onnx").graph.output] == outputs


def test_export_command_writes_a_folder(made: Made, tmp_path: Path) -> None:
    folder = made(sentence=Sentence(("cls",), normalize=True))
    done = bertcli("export", "-m", folder, "-o", tmp_path / "out", "--no-verify")
    wrote, what = done.err.splitlines()
    assert wrote.startswith(f"Wrote {tmp_path}/out (")
    assert what == f"Note: {tmp_path}/out/onnx/model.onnx gives last_hidden_state and sentence_embedding."
    assert {"onnx", "config.json", "modules.json", "1_Pooling"} <= {one.name for one in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("options", "warned"),
    [(["--pooling", "cls"], True), (["--pooling", "mean", "--normalize"], True), (["--pooling", "mean"], False)],
)
def test_export_command_warns_of_pooling_that_the_folder_does_not_say(
    options: list[str], warned: bool, made: Made, tmp_path: Path
) -> None:
    done = bertcli("export", "-m", made(), "-o", tmp_path / "out", "--no-verify", *options)
    assert ("sentence-transformers pools as the folder's files say (mean, since" in done.err) == warned


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give a file (-o model.onnx) or a folder (-o my-folder)"),
        (["-o", ""], "give a file (-o model.onnx) or a folder (-o my-folder)"),
        (["bert-mini-mlm"], "give a file (-o model.onnx) or a folder (-o my-folder)"),
        (["-m", "bert-mini-mlm", "m.onnx", "-o", "folder"], "'m.onnx' is one too many"),
        (["-o", "m.onnx", "--int8", "--dtype", "float16"], "--int8 and --dtype float16"),
        (["-o", "m.onnx", "--int8", "--dtype", "int8"], "--int8 and --dtype int8"),
    ],
)
def test_export_command_used_wrongly(options: list[str], message: str) -> None:
    wrong_usage("export", *options, why=message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "m.bin"], "Cannot write m.bin: the ending must be .onnx."),
        (["-o", "nowhere/m.onnx"], "Cannot write nowhere/m.onnx: there is no folder"),
        (["-o", "m.onnx", "--head", "qa"], "bert-mini-mlm has no head 'qa'; its heads: pooler, mlm, nsp."),
        (["-o", "m.onnx", "--head", "mlm", "--pooling", "cls"], "leave out --head or --pooling."),
    ],
)
def test_export_command_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in bertcli("export", *options).error
    assert not [*tmp_path.iterdir()]


def test_export_command_into_a_file_says_that_it_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"before")
    error = bertcli("export", "-o", tmp_path / "there").error
    assert error == (
        f"Error: Cannot write into {tmp_path}/there: it is a file; give a folder, or the name of a new one."
    )
    assert (tmp_path / "there").read_bytes() == b"before"


@pytest.mark.skipif(find_spec("resource") is None, reason="no limits on the size of files on this system")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "-o", "m.onnx"), "Cannot write m.onnx: File too large; nothing there was changed."),
        (("export", "-o", "m.onnx", "--int8"), "Cannot write m.onnx: File too large; nothing there was changed."),
        (("export", "-o", "folder"), "Cannot write folder: File too large; nothing there was changed."),
        (("export", "-o", "new/folder"), "Cannot write new/folder: File too large; nothing there was changed."),
        (
            ("classify", "a fine day", "--engine", "onnx"),
            "(File too large): make room, or name another folder for it (BERTCLI_CACHE).",
        ),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_export_command_without_room_keeps_what_was_there(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    """The system writes no more than a megabyte of a file, as if the disk were full after that."""
    for name in ("m.onnx", "folder/onnx/model.onnx", "folder/config.json", "temporary/mine", "cache/mine"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"before")
    there = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "TMPDIR": "temporary", "BERTCLI_CACHE": "cache"},
    )  # fmt: skip
    *notes, error = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert error.startswith("Error: ")
    assert error.endswith(message)
    assert all(note.startswith("Note: ") for note in notes)
    added = {*tmp_path.rglob("*")} - {*there}
    assert all(one.is_dir() and tmp_path / "cache" in one.parents for one in added), added
    assert all(file.read_bytes() == b"before" for file in there if file.is_file())


def test_export_command_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    left, working = tmp_path / ".bertcli.left", tmp_path / ".bertcli.working"
    for draft in (left, working):
        draft.mkdir()
        (draft / ".lock").touch()
        (draft / "model.onnx").write_bytes(b"half")
    with FileLock(working / ".lock"):  # of an export that runs
        assert bertcli("export", "-m", "bert-mini-mlm", "-o", tmp_path / "model.onnx").status == 0
    assert {path.name for path in tmp_path.iterdir()} == {".bertcli.working", "model.onnx"}


def test_export_command_holds_its_draft_by_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that another one leaves it alone."""
    seen = []

    def noted(*arguments: Any) -> Any:
        (draft,) = tmp_path.glob(".bertcli.*")
        with pytest.raises(Timeout):
            FileLock(draft / ".lock", blocking=False).acquire()
        seen.append(draft)
        raise BertcliError("enough")

    monkeypatch.setattr(export, "_make_graph", noted)
    assert bertcli("export", "-m", "bert-mini-mlm", "-o", tmp_path / "model.onnx").err == "Error: enough\n"
    assert len(seen) == 1
    assert not [*tmp_path.iterdir()]


def test_export_command_without_the_extra_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.wings.onnx.session.installed", lambda package: False)
    error = bertcli("export", "-o", tmp_path / "m.onnx", "--no-verify").error
    assert error == "Error: This needs onnx: pip install 'bertcli[onnx]'."
    assert bertcli("export", "-o", tmp_path / "m.onnx", "--int8", "--no-verify").error == (
        "Error: This needs onnx and onnxruntime: pip install 'bertcli[onnx]'."
    )


def test_export_takes_model_and_file_by_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    quick = ("--no-verify",)
    assert bertcli("export", "bert-mini-sentiment", "a.onnx", *quick).err.startswith("Wrote a.onnx")
    assert bertcli("export", "-m", "bert-mini-sentiment", "-o", "b.onnx", *quick).status == 0
    assert bertcli("export", "-m", "bert-mini-sentiment", "c.onnx", *quick).status == 0
    monkeypatch.setenv("BERTCLI_MODEL", "bert-mini-mlm")
    assert bertcli("export", "bert-mini-sentiment", "-o", "d.onnx", *quick).status == 0
    written = [Path(f"{name}.onnx").read_bytes() for name in "abcd"]
    assert [content == written[0] for content in written] == [True] * 4
    assert bertcli("export", "f.onnx", *quick).status == 0
    assert Path("f.onnx").read_bytes() != written[0]
    assert bertcli("export", "bert-mini-mlm", "folder", *quick).status == 0
    assert (tmp_path / "folder" / "onnx" / "model.onnx").is_file()
