"""bertcli export: files, folders, what it says and what it refuses."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from checkpoints import Sentence
from conftest import Made
from terminal import bertcli

from bertcli.engine.onnx import file as onnx_file


def test_export_command_writes_a_file(tmp_path: Path) -> None:
    done = bertcli("export", tmp_path / "m.onnx")
    assert (done.status, done.out) == (0, "")
    note, what = done.err.splitlines()
    assert note == "Note: no model given (-m); using the bundled bert-mini-mlm."
    assert what.startswith(
        f"Note: {tmp_path}/m.onnx (21.6 MB) gives logits; its numbers differ from NumPy's by at most "
    )
    assert [one.name for one in onnx.load(tmp_path / "m.onnx").graph.output] == ["logits"]


@pytest.mark.parametrize(
    ("options", "outputs", "megabytes"),
    [
        (["--head", "none"], ["last_hidden_state", "pooler_output"], 21.6),
        (["--pooling", "mean", "--normalize"], ["last_hidden_state", "sentence_embedding"], 21.3),
        (["--head", "nsp", "--dtype", "float16"], ["logits"], 10.8),
        (["--int8", "--head", "none", "--opset", "19"], ["last_hidden_state", "pooler_output"], 5.7),
    ],
)
def test_export_command_gives_what_is_asked_for(
    tmp_path: Path, options: list[str], outputs: list[str], megabytes: float
) -> None:
    done = bertcli("export", tmp_path / "m.onnx", *options, "--no-check")
    assert done.err.endswith(f"m.onnx ({megabytes} MB) gives {', '.join(outputs)}.\n")
    assert [one.name for one in onnx.load(tmp_path / "m.onnx").graph.output] == outputs


def test_export_command_writes_a_folder(made: Made, tmp_path: Path) -> None:
    folder = made(sentence=Sentence(("cls",), normalize=True))
    done = bertcli("export", "-m", folder, "-o", tmp_path / "out", "--no-check")
    assert done.err == f"Note: {tmp_path}/out/onnx/model.onnx (0.1 MB) gives last_hidden_state, sentence_embedding.\n"
    assert {"onnx", "config.json", "modules.json", "1_Pooling"} <= {one.name for one in (tmp_path / "out").iterdir()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "give the name of a file, or a folder with -o"),
        (["m.onnx", "-o", "folder"], "give the name of a file, or a folder with -o"),
        (["m.onnx", "--int8", "--dtype", "float16"], "--int8 and --dtype float16"),
    ],
)
def test_export_command_used_wrongly(options: list[str], message: str) -> None:
    done = bertcli("export", *options)
    assert (done.status, done.out) == (2, "")
    assert message in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["m.bin"], "Cannot write m.bin: the ending must be one of .onnx."),
        (["nowhere/m.onnx"], "Cannot write nowhere/m.onnx: there is no folder"),
        (["m.onnx", "--head", "qa"], "bert-mini-mlm has no head 'qa'; its heads: pooler, mlm, nsp."),
        (["m.onnx", "--head", "mlm", "--pooling", "cls"], "leave out --head or --pooling."),
        (["m.onnx", "--opset", "3"], "There is no opset 3 here: choose from 18 to"),
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


def test_export_command_on_a_full_disk_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.onnx").write_bytes(b"before")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(onnx_file, "write", full)
    error = bertcli("export", tmp_path / "m.onnx").error
    assert error == f"Error: Cannot write {tmp_path}/m.onnx: No space left on device; nothing there was changed."
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("m.onnx", b"before")]


def test_export_command_without_the_extra_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.engine.onnx.session.installed", lambda package: False)
    error = bertcli("export", tmp_path / "m.onnx", "--no-check").error
    assert error == "Error: This needs onnx: pip install 'bertcli[onnx]'."
    assert bertcli("export", tmp_path / "m.onnx", "--int8", "--no-check").error == (
        "Error: This needs onnx and onnxruntime: pip install 'bertcli[onnx]'."
    )
