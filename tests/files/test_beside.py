"""What a result replaces or removes beside itself is of an earlier result; anything else is refused, and stays."""

import json
import os
from pathlib import Path

import pytest
from conftest import Made
from helpers.crashes import full_disk
from helpers.terminal import bertcli

from bertcli.files.files_beside import check_output
from bertcli.files.formats import TABLES

MINE = b'{"mine": 1}\n'
ERROR = b'{"index": 0, "text": "tea", "error": "too long"}\n'


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "beside",
    [
        "v.npy.errors.jsonl",
        "v.npz.errors.jsonl",
        "v.safetensors.errors.jsonl",
        "v.npy.settings.json",
        ".v.npy.parts/notes.txt",
        ".v.jsonl.parts/7.npz",
    ],
)
def test_what_is_not_of_an_earlier_result_is_not_touched(beside: str, model: Path, tmp_path: Path) -> None:
    place = tmp_path / beside
    place.parent.mkdir(exist_ok=True)
    output = tmp_path / next(name for name in ("v.npy", "v.npz", "v.safetensors", "v.jsonl") if name in beside)
    for content in (MINE, b"", b"no JSON", b"[1]", ERROR.replace(b"index", b"line"), b'{"model": 1}'):
        place.write_bytes(content)
        before = contents(tmp_path)
        result = bertcli("encode", "-m", model, "a cup of tea", "-o", output)
        assert result.status == 1
        assert f"Cannot write {output}: {beside} beside it would be replaced or removed" in result.err
        assert result.err.endswith("move it, or choose another --output.\n")
        assert contents(tmp_path) == before


@pytest.mark.parametrize("ending", [*TABLES, ".html", ".onnx"])
def test_nothing_is_removed_beside_a_file_that_has_room(ending: str, tmp_path: Path) -> None:
    for name in ("errors.jsonl", "settings.json"):
        (tmp_path / f"v{ending}.{name}").write_bytes(MINE)
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    check_output(str(tmp_path / f"v{ending}"), (ending,))
    if ending in (".csv", ".json"):
        assert bertcli("similarity", "tea", "hot tea", "-o", tmp_path / f"v{ending}").status == 0
    assert {path.read_bytes() for path in tmp_path.glob("*.*.*")} == {MINE}


def test_those_of_an_earlier_result_go_with_it(model: Path, tmp_path: Path) -> None:
    texts, output = tmp_path / "t.jsonl", tmp_path / "v.npy"
    texts.write_text('{"text": "tea"}\n{"no": "text"}\n')
    assert bertcli("encode", "-m", model, "-i", texts, "-o", output, "--keep-going").status == 1
    (listed,) = (tmp_path / "v.npy.errors.jsonl").read_text().splitlines()
    assert json.loads(listed)["index"] == 1
    assert bertcli("encode", "-m", model, "tea", "-o", output).status == 0
    assert sorted(contents(tmp_path)) == ["t.jsonl", "v.npy", "v.npy.settings.json"]
    # Cosines are no vectors of these settings.
    assert bertcli("similarity", "-m", model, "tea", "hot tea", "-o", output).status == 0
    assert sorted(contents(tmp_path)) == ["t.jsonl", "v.npy"]


@pytest.mark.parametrize("given", ["file", "link", "pattern"])
def test_a_file_that_is_read_is_not_removed(given: str, model: Path, tmp_path: Path) -> None:
    """The list of texts that an earlier run could not use looks as if it were of this one: it is."""
    listed, output = tmp_path / "v.npy.errors.jsonl", tmp_path / "v.npy"
    listed.write_bytes(ERROR)
    (tmp_path / "link.jsonl").symlink_to(listed)
    name = {"file": listed, "link": tmp_path / "link.jsonl", "pattern": tmp_path / "*.errors.jsonl"}[given]
    for command in ("encode", "similarity"):
        result = bertcli(command, "-m", model, "-i", name, "-o", output)
        assert result.status == 1
        assert f"Cannot write {output}: the texts are read from {listed} beside it; choose" in result.err
        assert listed.read_bytes() == ERROR


def test_a_file_that_another_option_names_is_not_removed(tmp_path: Path) -> None:
    settings = tmp_path / "v.npy.settings.json"
    settings.write_text('{"model": "x", "settings": {}}')
    result = bertcli("params", "--config", settings, "-o", tmp_path / "v.npy")
    assert result.status == 1
    assert settings.read_text() == '{"model": "x", "settings": {}}'
    result = bertcli("encode", str(settings), "-o", tmp_path / "v.npy")
    assert f"an argument names {settings} beside it, too; choose another --output." in result.err
    assert settings.exists()


def test_a_full_disk_leaves_all_as_it_was(model: Path, tmp_path: Path) -> None:
    """It is full while the process, the settings, the result or the errors are written."""
    texts, output = tmp_path / "t.jsonl", tmp_path / "v.npy"
    texts.write_text('{"no": "text"}\n{"text": "hot tea"}\n{"text": "tea"}\n')
    arguments: list[str | Path] = ["encode", "-m", model, "-i", texts, "-o", output, "--keep-going"]
    bertcli(*arguments, "--normalize")
    after = contents(tmp_path)
    needed = [len(str(os.getpid())), *(len(after[f"v.npy{end}"]) for end in (".settings.json", "", ".errors.jsonl"))]
    texts.write_text('{"no": "text"}\n{"text": "tea"}\n')
    bertcli(*arguments)
    texts.write_bytes(after["t.jsonl"])
    before = contents(tmp_path)
    for written in range(1, len(needed) + 1):
        with full_disk(sum(needed[:written]) - 1):
            result = bertcli(*arguments, "--normalize")
        assert result.error == f"Error: Cannot write {output}: No space left on device; nothing there was changed."
        assert contents(tmp_path) == before
        assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    with full_disk(sum(needed)):
        bertcli(*arguments, "--normalize")
    assert contents(tmp_path) == after
