"""What commands do not do unasked: read a pipe, need a mask token, take a word for a mask."""

import os
from pathlib import Path

import pytest
from helpers.family_checkpoints import make_family
from helpers.forked import run as forked
from helpers.lines import write_lines
from helpers.terminal import bertcli
from helpers.tokenizer_kinds import write_qwen

import bertcli as library


@pytest.mark.parametrize(
    "line",
    [
        "diff bert-mini-sentence --versus bert-mini-sentence --check all",
        "params --variant tiny",
        "trace --variant tiny",
        "info bert-mini-sentence",
    ],
)
def test_commands_whose_texts_are_optional_leave_a_pipe_alone(line: str) -> None:
    """A pipe that stays open does not stop them, and a shell's loop keeps its lines."""
    reader, writer = os.pipe()
    os.write(writer, b"a line of the shell's\n")
    done = forked(*line.split(), stdin=reader)
    assert done.returncode == 0, done.stderr
    os.close(writer)
    with os.fdopen(reader) as rest:
        assert rest.read() == "a line of the shell's\n"


def test_diff_reads_a_pipe_where_it_is_asked_to() -> None:
    arguments = ("diff", "bert-mini-sentence", "--versus", "bert-mini-sentence")
    with_text = bertcli(*arguments, "-i", "-", stdin="A dog ran home.\n")
    assert with_text.out == bertcli(*arguments, "A dog ran home.").out
    assert with_text.out != bertcli(*arguments, stdin="A dog ran home.\n").out == bertcli(*arguments).out


def test_rollout_needs_no_mask_token(tmp_path: Path) -> None:
    folder = tmp_path / "qwen2"
    folder.mkdir()
    make_family(folder, "qwen2", sizes={"V": write_qwen(folder), "P": 64})
    for token in ("0", "1"):
        result = bertcli("heads", "the tea", "-m", folder, "--rollout", token, "--format", "json")
        assert (result.status, "mask" in result.err) == (0, False), result.err


def test_another_models_mask_is_named() -> None:
    said = "has <mask>, and the mask token of bert-mini-mlm is [MASK]: write [MASK]."
    commands = (
        ["explain", "hot <mask>."],
        ["patch", "a hot <mask>.", "a cold <mask>."],
        ["fill-mask", "hot <mask>."],
        ["score", "hot <mask>.", "--target", "hot tea."],
        ["lens", "hot <mask>."],
    )
    for command in commands:
        result = bertcli(*command, "-m", "bert-mini-mlm")
        assert result.status == 1
        assert said in " ".join(result.err.split())
    result = bertcli("patch", "a hot [MASK].", "a cold [MASK].", "-m", "bert-mini-sentence", "--word", "tea")
    assert "The log-probability of a word at a mask needs a masked-language-model" in " ".join(result.err.split())


@pytest.mark.parametrize("command", ["fill-mask", "score"])
def test_another_models_mask_beside_its_own_is_named_once(command: str) -> None:
    err = bertcli(command, "hot [MASK] and <mask>.", "cold [MASK] and <mask>.").err
    assert err.count("Warning: <mask> is read as text: the mask token of bert-mini-mlm is [MASK].") == 1
    assert "is read as text" not in bertcli(command, "hot [MASK].").err


def test_score_leaves_a_mask_out_and_says_so() -> None:
    result = bertcli("score", "The cat [MASK].", "--format", "json")
    (record,) = result.json
    assert [token["token"] for token in record["tokens"]] == ["the", "cat", "."]
    assert record["loss"] == pytest.approx(-sum(token["log_prob"] for token in record["tokens"]) / 3)
    assert "no word is named for it, so it is left out of the loss" in result.err
    assert "left out" not in bertcli("score", "The cat sat.").err
    assert library.load().score("[MASK]")["loss"] is None


def test_a_file_is_for_fill_mask_only_where_most_rows_have_a_mask(tmp_path: Path) -> None:
    file = tmp_path / "reviews.csv"
    reviews = ["I loved it.", "Awful.", "She hides behind a mask.", "The Mask is a damask.", "He typed [MASK]."]
    rows = [f"{text},{'negative' if text == 'Awful.' else 'positive'}" for text in reviews]
    write_lines(file, ["text,label", *rows])
    result = bertcli("evaluate", file, "-m", "bert-mini-sentiment")
    assert (result.status, "accuracy" in result.out) == (0, True), result.err
    masked = tmp_path / "masked.csv"
    masked.write_text("text,label\nhot [MASK].,tea\ncold [MASK].,water\nNothing.,x\n", encoding="utf-8")
    assert "fill-mask" in bertcli("evaluate", masked, "-m", "bert-mini-mlm").err
