"""Arguments that stand in the wrong place, and commands without any: each is answered with the right form."""

import shlex
from pathlib import Path

import pytest
from helpers.json_files import write_json
from helpers.terminal import bertcli, wrong_usage

SAMPLE = "bert-mini-mlm"


def message(*arguments: str | Path) -> str:
    """The message of a command that ends with status 2, as one line."""
    return wrong_usage(*arguments, why="Invalid value").said


def test_without_a_command_the_help_is_printed() -> None:
    result = bertcli()
    assert result.status == 2
    assert result.out.rstrip() == bertcli("--help").out.rstrip()
    assert result.err == ""


@pytest.mark.parametrize("command", ["params", "serve", "probe"])
def test_a_model_as_an_argument_is_answered_with_m(command: str) -> None:
    told = message(command, SAMPLE)
    assert f"bertcli {command} -m {SAMPLE}" in told
    assert "text" not in told


@pytest.mark.parametrize("command", ["trace", "tokenize", "encode", "similarity", "neighbors", "lens", "explain"])
def test_a_model_in_place_of_a_text_is_answered_with_m(command: str) -> None:
    told = message(command, SAMPLE)
    assert f"bertcli {command} -m {SAMPLE}" in told
    assert "pipe it in" in told


def test_a_folder_with_a_configuration_is_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    folder.mkdir()
    assert bertcli("tokenize", folder).status == 0
    write_json(folder / "config.json", {"model_type": "bert"})
    assert "tokenize -m" in message("tokenize", folder)


def test_a_model_that_is_meant_as_a_text_is_piped_in_or_follows_m() -> None:
    assert bertcli("tokenize", "--format", "json", stdin=SAMPLE).status == 0
    assert bertcli("tokenize", "-m", SAMPLE, SAMPLE, "--format", "json").status == 0
    assert bertcli("info", SAMPLE).status == 0


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("params base", "bertcli params --variant base?"),
        ("params my-model", "bertcli params -m my-model?"),
        ("trace 'A cup' 'of tea'", "pair two with --text-pair"),
        ("lens 'A [MASK]' --layers all", "every layer is shown"),
        ("diff one two --text tea", "texts stand behind the models: bertcli diff MODEL OTHER TEXT"),
        ("probe labels.csv", "bertcli probe -i labels.csv?"),
        ("export my-model", "give a file (-o model.onnx) or a folder (-o my-folder)"),
        ("export one two three", "give a model and a file, as in MODEL model.onnx"),
        ("export -m one two -o m.onnx", "'two' is one too many"),
    ],
)
def test_an_argument_too_many_is_answered_with_its_option(line: str, answer: str) -> None:
    assert answer in message(*shlex.split(line))


@pytest.mark.parametrize("command", ["diff", "export", "trace"])
def test_usage_is_the_same_in_a_message_and_in_help(command: str) -> None:
    usage = bertcli(command, "--help").out.splitlines()[0]
    assert bertcli(command, "--no-such-option").err.splitlines()[0] == usage


@pytest.mark.parametrize("text", ["-model", "-m", "--layer", "--no-such-option"])
def test_what_follows_two_dashes_is_a_text(text: str) -> None:
    done = bertcli("tokenize", "--format", "json", "--", text)
    assert done.status == 0, done.err
    assert done.out == bertcli("tokenize", "--format", "json", stdin=text).out


def test_a_missing_classifier_says_what_to_do(tmp_path: Path) -> None:
    error = bertcli("classify", "-m", f"{SAMPLE}+{tmp_path}/no.safetensors", "x").error
    assert "There is no classifier" in error
    assert "probe -o" in error


def test_a_text_longer_than_any_path_is_a_text() -> None:
    done = bertcli("tokenize", "word " * 2000)
    assert (done.status, len(done.out.splitlines())) == (0, 2004)


def test_a_folder_given_as_a_text_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letters").mkdir()
    told = bertcli("tokenize", "letters").err
    assert "Note: 'letters' is taken as a text; to read the folder of that name: -i letters" in told
