"""What every command that writes a file says on standard error."""

from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import typer
from conftest import Made
from helpers.terminal import bertcli

from bertcli.cli.app import application
from bertcli.report.written import say_written

TEXT = "I loved every minute of it."
LABELLED = "text,label\n" + "".join(f"good film {i},yes\nbad film {i},no\n" for i in range(6))


WRITING: list[tuple[list[str], str]] = [
    (["explain", TEXT, "-o"], "out.html"),
    (["explain", TEXT, "-o"], "out.jsonl"),
    (["lens", "A cup of hot [MASK].", "-o"], "out.html"),
    (["heads", TEXT, "-o"], "out.html"),
    (["heads", TEXT, "-o"], "out.json"),
    (["patch", TEXT, "I hated every minute of it.", "-o"], "out.html"),
    (["diff", "bert-mini-mlm", "--versus", "bert-mini-mlm", TEXT, "-o"], "out.html"),
    (["probe", "-i", "labelled.csv", "-o"], "out.html"),
    (["probe", "-i", "labelled.csv", "-o"], "out.safetensors"),
    (["trace", TEXT, "-o"], "out.html"),
    (["trace", TEXT, "-o"], "out.npz"),
    (["params", "--variant", "tiny", "-o"], "out.mmd"),
    (["encode", TEXT, "-o"], "out.npy"),
    (["encode", TEXT, "-o"], "out.jsonl"),
    (["encode", TEXT, "--pooling", "none", "-o"], "out.npz"),
    (["classify", TEXT, "-o"], "out.csv"),
    (["fill-mask", "A cup of hot [MASK].", "-o"], "out.json"),
    (["score", TEXT, "-o"], "out.jsonl"),
    (["tokenize", TEXT, "-o"], "out.json"),
    (["neighbors", "king", "-o"], "out.json"),
    (["similarity", TEXT, "tea", "-o"], "out.json"),
    (["similarity", TEXT, "tea", "-o"], "out.npy"),
    (["search", "tea", "-i", "vectors.npy", "-o"], "out.csv"),
    (["export", "--no-verify", "-o"], "out.onnx"),
    (["evaluate", "labelled.csv", "-m", "CLASSIFIER", "-o"], "out.html"),
    (["rank", "tea", "hot tea", "-m", "RANKER", "-o"], "out.csv"),
    (["tag", TEXT, "-m", "TAGGER", "-o"], "out.jsonl"),
    (["tag", TEXT, "-m", "TAGGER", "-o"], "out.html"),
    (["answer", "Who?", "--context", TEXT, "-m", "READER", "-o"], "out.jsonl"),
    (["keywords", TEXT, "-o"], "out.jsonl"),
]
MODELS: dict[str, dict[str, Any]] = {
    "CLASSIFIER": {"head": "classifier", "id2label": {0: "no", 1: "yes"}},
    "RANKER": {"head": "classifier", "num_labels": 1},
    "TAGGER": {"head": "token_classifier", "id2label": {0: "O", 1: "B-LOC"}},
    "READER": {"head": "qa"},
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts and their vectors."""
    folder = tmp_path_factory.mktemp("inputs")
    texts = folder / "labelled.csv"
    texts.write_text(LABELLED, encoding="utf-8")
    assert bertcli("encode", "-i", texts, "-o", folder / "vectors.npy").status == 0
    return folder


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    ("command", "name"),
    WRITING,
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_a_command_says_what_it_wrote(
    command: list[str], name: str, made: Made, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    command = [str(made(**MODELS[word])) if word in MODELS else word for word in command]
    done = bertcli(*command, name)
    assert done.status == 0, done.err
    size = Path(name).stat().st_size
    shown = f"{size} bytes" if size < 1000 else f"{size / 1e3:.0f} kB" if size < 999_500 else f"{size / 1e6:.1f} MB"
    assert [line for line in done.err.splitlines() if line.startswith("Wrote")] == [f"Wrote {name} ({shown})."]


def test_every_command_that_writes_a_file_is_among_those() -> None:
    group: Any = typer.main.get_command(application())
    written = {(command[0], option) for command, _ in WRITING for option in command if option.startswith("-")}
    for name, command in group.commands.items():
        if any("-o" in parameter.opts for parameter in command.params):
            assert (name, "-o") in written


@pytest.mark.parametrize(
    ("size", "shown"),
    [(1, "1 byte"), (999, "999 bytes"), (1499, "1 kB"), (999_499, "999 kB"), (999_500, "1.0 MB")],
)
def test_sizes_agree_with_their_nouns(
    size: int, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.bin"
    file.write_bytes(bytes(size))
    say_written(file)
    assert capsys.readouterr().err == f"Wrote {file} ({shown}).\n"


def test_a_folder_has_the_size_of_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a").write_bytes(bytes(1500))
    (tmp_path / "deep" / "b").write_bytes(bytes(1500))
    say_written(tmp_path)
    assert capsys.readouterr().err == f"Wrote {tmp_path} (3 kB).\n"
