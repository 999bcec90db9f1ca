"""--engine of the run commands."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.batches import compute_together
from helpers.checkpoints import Sentence, make
from helpers.crashes import crashing
from helpers.json_files import write_json
from helpers.little_doctor import MEASURE_LITTLE
from helpers.terminal import bertcli, continued, wrong_usage
from safetensors.numpy import load_file, save_file

import bertcli as library
from bertcli.errors import BertcliError
from bertcli.files.write import resumable_output

TEXTS = "\n".join(["the cat sat on a mat", "tea", "", "a mat and the cat and hot tea"] * 6) + "\n"


@pytest.fixture(autouse=True)
def graphs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTCLI_CACHE", str(tmp_path_factory.getbasetemp() / "graphs"))


@pytest.mark.parametrize(
    "command",
    [
        ("encode", "a fine day", "night", "--format", "jsonl"),
        ("classify", "a fine day", "a dull one", "--format", "jsonl"),
        ("fill-mask", "a fine [MASK].", "--format", "jsonl"),
        ("score", "a fine day.", "--format", "jsonl"),
    ],
    ids=lambda command: command[0],
)
def test_engine_command_gives_what_numpy_gives(command: tuple[str, ...]) -> None:
    one, other = bertcli(*command), bertcli(*command, "--engine", "onnx")
    assert (other.status, other.err) == (0, one.err)
    assert [near(record) for record in one.records] == other.records


def test_engine_command_says_once_that_numpy_computes_other_layers() -> None:
    done = bertcli("encode", "tea", "--engine", "onnx", "--layer", "1", "--format", "json")
    assert (done.status, done.err.splitlines()) == (
        0,
        [
            "Note: no model given (-m); using the bundled bert-mini-sentence.",
            "Note: NumPy computes these layers: the graph of ONNX Runtime only gives the last.",
            "Note: pooling mean, from 1_Pooling/config.json; vectors of length 1.",
        ],
    )


def near(value: Any) -> Any:
    """A record that equals one whose numbers are within 1e-5."""
    if isinstance(value, dict):
        return {key: near(one) for key, one in value.items()}
    if isinstance(value, list):
        return [near(one) for one in value]
    return pytest.approx(value, abs=1e-5, rel=1e-5) if isinstance(value, float) else value


def test_engine_command_resumes_with_the_same_engine_only(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumable_output, "SHORTEST_SEGMENT", 0.0)
    monkeypatch.setattr(resumable_output, "LONGEST_SEGMENT", 0.0)
    compute_together(20, monkeypatch)
    (tmp_path / "texts.txt").write_text(TEXTS, encoding="utf-8")
    common = ("encode", "-m", made(), "-i", tmp_path / "texts.txt", "--engine", "onnx")
    assert bertcli(*common, "-o", tmp_path / "whole.npy").status == 0
    resumed = (*common, "-o", tmp_path / "v.npy", "--resume")
    with crashing(28):
        bertcli(*resumed)
    error = bertcli(*resumed, "--engine", "onnx-int8").error
    assert "Cannot resume" in error
    assert "--engine was onnx and is now onnx-int8; restore that" in error
    assert continued(*resumed).status == 0
    assert (tmp_path / "v.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_engine_command_refuses_what_no_engine_has() -> None:
    why = "'--engine': 'torch' is not one of 'numpy', 'onnx', 'onnx-int8'."
    wrong_usage("classify", "a", "--engine", "torch", why=why)
    with pytest.raises(BertcliError, match="There is no device 'gpu' in the installed onnxruntime: choose from "):
        library.load(engine="onnx", device="gpu")
    with pytest.raises(BertcliError, match="NumPy computes on the processor"):
        library.load(device="cuda")


def test_engine_command_without_the_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.wings.onnx.session.installed", lambda package: False)
    assert bertcli("classify", "a", "--engine", "onnx").error == (
        "Error: This needs onnx and onnxruntime: pip install 'bertcli[onnx]'."
    )


def test_engine_command_lets_onnx_runtime_report_to_nobody(tmp_path: Path) -> None:
    """Its newer builds begin to when they are imported, unless they are told before: they note a session's number."""
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    program = f"import sys; from bertcli.cli import main\n{MEASURE_LITTLE}\nsys.exit(main())"
    subprocess.run(
        [sys.executable, "-c", program, "doctor"],
        check=True, capture_output=True, timeout=120, env={**environment, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert not [*tmp_path.iterdir()]


def test_engine_command_says_what_was_measured_of_int8(made: Made) -> None:
    found = bertcli("encode", "-m", made(), "a mat", "--engine", "onnx-int8", "--format", "jsonl")
    said = " ".join(found.err.split())
    assert re.search(
        r"int8 of \S+: vectors have cosine [01]\.\d{3} with float32's on average \(\d+ built-in sentences\)", said
    )


def test_engine_command_says_what_was_measured_of_int8_in_an_old_sentence_folder(made: Made, tmp_path: Path) -> None:
    """Its network and its tokenizer lie in a folder of their own."""
    source = tmp_path / "source"
    shutil.copytree(made(sentence=Sentence(("cls",))), source)
    (source / "0_Transformer").mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
        (source / name).rename(source / "0_Transformer" / name)
    modules = json.loads((source / "modules.json").read_bytes())
    modules[0]["path"] = "0_Transformer"
    write_json(source / "modules.json", modules)
    found = bertcli("encode", "-m", source, "a mat", "--engine", "onnx-int8", "--format", "jsonl")
    assert "int8 of" in found.err


def outlying(folder: Path, layers: Sequence[int]) -> Path:
    """A checkpoint in some of whose layers one number of the feed-forward's input dwarfs the others, and has no weight.

    So activations that are rounded with one scale lose the others.
    """
    make(folder, tokenizer="json", sizes={"num_hidden_layers": 4}, pooler=False)
    tensors = {name: array.copy() for name, array in load_file(folder / "model.safetensors").items()}
    for layer in layers:
        stem = f"bert.encoder.layer.{layer}"
        tensors[f"{stem}.intermediate.dense.bias"][5] = 3000
        tensors[f"{stem}.output.dense.weight"] *= 8
        tensors[f"{stem}.output.dense.weight"][:, 5] = 0
    save_file(tensors, folder / "model.safetensors")
    return folder


def test_engine_command_refuses_int8_that_is_far_from_float32(tmp_path: Path) -> None:
    command = ("encode", "-m", outlying(tmp_path / "m", [1, 3]), "a fine day", "--engine")
    assert bertcli(*command, "onnx").status == 0
    refused = bertcli(*command, "onnx-int8")
    assert refused.status == 1
    found = re.search(
        r"vectors have cosine (\S+) with float32's on average .*, which is too far from it", refused.error
    )
    assert found, refused.error
    assert float(found[1]) < 0.95
