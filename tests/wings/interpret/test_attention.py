"""`heads TEXT --layer 3.2`: one head's attention weights in a terminal, and as a matrix."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.near import assert_near
from helpers.terminal import Result, bertcli

import bertcli as library
from bertcli.analysis.trace.recorder import inputs_of_text
from bertcli.tracing.dispatch import Array

TEXT = "The king </script><b> 中国"


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="model", seed=3)


def look(model: Path, *arguments: str | Path, **settings: Any) -> Result:
    done = bertcli("heads", "-m", model, TEXT, "--layer", *arguments, **settings)
    assert done.status == 0, done.err
    return done


def weights_of(model: Path, layer: int, head: int | None = None) -> tuple[list[str], Array]:
    """The tokens, and the weights that a trace finds at the path of this layer (from 1): of a head, or the mean."""
    opened = library.load(model)
    given = inputs_of_text(opened, TEXT)
    path = f"encoder.layers.{layer - 1}.attention.softmax"
    with library.trace(opened, keep=lambda one: one == path) as found:
        opened.outputs(given.ids, given.segments)
    weights = found.arrays[path]
    return given.pieces, weights.mean(axis=0) if head is None else weights[head - 1]


@pytest.mark.parametrize(
    ("choice", "title"),
    [
        ("1", "attention weights of layer 1, mean of 2 heads (encoder.layers.0.attention.softmax)"),
        ("2.2", "attention weights of layer 2, head 2 (encoder.layers.1.attention.softmax)"),
        ("-1.2", "attention weights of layer 2, head 2 (encoder.layers.1.attention.softmax)"),
    ],
)
def test_attention_a_terminal_shows_tokens_on_both_axes_and_percentages(choice: str, title: str, model: Path) -> None:
    done = look(model, choice)
    lines = done.out.splitlines()
    head = int(choice.partition(".")[2]) if "." in choice else None
    pieces, weights = weights_of(model, 1 if choice == "1" else 2, head)
    assert lines[0] == f"{model}: {title}"
    assert lines[1].split() == pieces
    for line, piece, row in zip(lines[2:], pieces, weights, strict=True):
        assert line.split()[0] == piece
        assert [int(number) for number in re.findall(r"\d+(?=[ ]|$)", line.removeprefix(piece))] == [
            round(100 * float(weight)) for weight in row
        ]
    assert "\x1b" not in done.out
    assert set("░▒▓█") <= set(done.out)


def test_attention_narrow_terminals_have_several_tables(model: Path) -> None:
    done = look(model, "1.1", terminal=True, environment={"COLUMNS": "30", "NO_COLOR": "1"})
    assert max(map(len, done.out.splitlines())) <= 30
    weights = weights_of(model, 1, 1)[1]
    numbers = [
        int(number)
        for number in re.findall(r"(?<=[ ░▒▓█])\d+\b", "\n".join(done.out.split("softmax)\n", 1)[1:]) or done.out)
    ]
    assert sorted(numbers) == sorted(round(100 * float(one)) for one in weights.reshape(-1))


def test_attention_color_where_it_is_allowed(model: Path) -> None:
    colors = {"COLUMNS": "200", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    assert "\x1b[37;48;2;8;48;107m" in look(model, "1.1", terminal=True, environment=colors).out
    plain = look(model, "1.1", terminal=True, environment={**colors, "NO_COLOR": "1"}).out
    assert "48;2" not in plain
    assert "█" in plain
    assert "48;2" not in look(model, "1.1", environment=colors).out


def test_attention_json_holds_the_weights_beside_the_heads(model: Path) -> None:
    whole = look(model, "2", "--format", "json").json
    assert list(whole) == ["heads", "attention"]
    assert len(whole["heads"]) == 4
    assert (whole["attention"]["layer"], whole["attention"]["head"]) == (2, None)
    assert whole["attention"]["tokens"] == weights_of(model, 2)[0]
    of_heads = np.array(whole["attention"]["weights"], dtype=np.float32)
    one = look(model, "2.1", "--format", "json").json
    for head in (1, 2):
        assert_near(of_heads[head - 1], weights_of(model, 2, head)[1], 1e-7)
    np.testing.assert_array_equal(np.array(one["attention"]["weights"], dtype=np.float32), of_heads[0])


def test_attention_csv_and_markdown_are_the_matrix(model: Path) -> None:
    pieces, weights = weights_of(model, 1, 2)
    heading, *lines = look(model, "1.2", "--format", "csv").out.splitlines()
    assert heading.startswith("token,0 [CLS],1 the,2 king,")
    numbers = np.array([[float(cell) for cell in line.split(",")[-len(pieces) :]] for line in lines])
    assert_near(numbers, weights, 1e-7)
    lines = look(model, "1.2", "--format", "markdown").out.splitlines()
    assert lines[0].startswith("| Token | [CLS] | the | king |")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--layer", "3"], 1, "There is no layer 3: this model has layers 1 to 2."),
        (["--layer", "0"], 1, "There is no layer 0: this model has layers 1 to 2."),
        (["--layer", "1.3"], 1, "There is no head 3: a layer of this model has heads 1 to 2."),
        (["--layer", "1.0"], 1, "There is no head 0: a layer of this model has heads 1 to 2."),
        (["--layer", "first"], 1, "'first' is no LAYER or LAYER.HEAD: give a layer, as in 1, or a head of it"),
        (["--layer", "9" * 5000], 1, "is no LAYER or LAYER.HEAD"),
        (["--layer", "1", "another text"], 1, "Attention weights are shown for one text (--layer): give only one."),
        (["--layer", "1", "--rollout", "0"], 2, "One head's weights (--layer) are shown alone"),
    ],
)
def test_attention_refusals(arguments: list[str], status: int, message: str, model: Path) -> None:
    done = bertcli("heads", "-m", model, TEXT, *arguments)
    assert done.status == status
    assert message in " ".join(re.sub("[│╭╮╰╯─]", " ", done.err).split())
