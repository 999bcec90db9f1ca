"""Attention weights for people to look at: in a terminal, and as a matrix."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.terminal import Result, bertcli

import bertcli as library
from bertcli.analysis.trace.recorder import inputs_of_text
from bertcli.report.shades import Shaded
from bertcli.views.attention import (
    Attention,
    Choice,
    attention_of,
    keeps_attention,
    shaded_lines,
)

TEXT = "The king </script><b> 中国"
NASTY = [
    "[CLS]",
    "</script><script>alert(1)</script>",
    "<!--",
    "&amp;\"'",
    "{{data}}",
    "\x1b[31m\x07",
    "\u2028",
    "東",
    "[SEP]",
]


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="model", seed=3)


def look(model: Path, *arguments: str | Path, **settings: Any) -> Result:
    done = bertcli("trace", "-m", model, TEXT, "--attention", *arguments, **settings)
    assert done.status == 0, done.err
    return done


def weights_of(model: Path, choice: Choice) -> Attention:
    opened = library.load(model)
    given = inputs_of_text(opened, TEXT)
    with library.trace(opened, keep=keeps_attention) as found:
        opened.outputs(given.ids, given.segments)
    return attention_of(found, given.pieces, choice)


def nasty() -> Attention:
    random = np.random.default_rng(0).random((3, len(NASTY), len(NASTY)), dtype=np.float32)
    return Attention("a <model>", Choice(0, 0), NASTY, random / random.sum(axis=-1, keepdims=True))


def test_attention_weights_are_those_of_the_pass(model: Path) -> None:
    heads = [weights_of(model, Choice(1, head)) for head in (0, 1)]
    for found in heads:
        assert found.weights.shape == (len(found.pieces), len(found.pieces))
        np.testing.assert_allclose(found.weights.sum(axis=-1), 1, atol=1e-6)
    mean = weights_of(model, Choice(1, None)).weights
    np.testing.assert_allclose(mean, (heads[0].weights + heads[1].weights) / 2, atol=1e-7)
    assert not np.allclose(heads[0].weights, heads[1].weights)


@pytest.mark.parametrize("choice", ["0", "1.1"])
def test_attention_a_terminal_shows_tokens_on_both_axes_and_percentages(choice: str, model: Path) -> None:
    done = look(model, choice)
    lines = done.out.splitlines()
    layer, _, head = choice.partition(".")
    found = weights_of(model, Choice(int(layer), int(head) if head else None))
    assert lines[0] == found.title
    assert lines[1].split() == found.pieces
    for line, piece, weights in zip(lines[2:], found.pieces, found.weights, strict=True):
        assert line.split()[0] == piece
        assert [int(number) for number in re.findall(r"\d+(?=[ ]|$)", line.removeprefix(piece))] == [
            round(100 * float(weight)) for weight in weights
        ]
    assert "\x1b" not in done.out
    assert set("░▒▓█") <= set(done.out)


def test_attention_narrow_terminals_have_several_tables(model: Path) -> None:
    done = look(model, "0.0", terminal=True, environment={"COLUMNS": "30", "NO_COLOR": "1"})
    assert max(map(len, done.out.splitlines())) <= 30
    found = weights_of(model, Choice(0, 0))
    numbers = [int(number) for number in re.findall(r"(?<=[ ░▒▓█])\d+\b", done.out.split("softmax)\n", 1)[1])]
    assert sorted(numbers) == sorted(round(100 * float(one)) for one in found.weights.reshape(-1))


def test_attention_color_where_it_is_allowed(model: Path) -> None:
    colors = {"COLUMNS": "200", "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    assert "\x1b[37;48;2;8;48;107m" in look(model, "0.0", terminal=True, environment=colors).out
    plain = look(model, "0.0", terminal=True, environment={**colors, "NO_COLOR": "1"}).out
    assert "48;2" not in plain
    assert "█" in plain
    assert "48;2" not in look(model, "0.0", environment=colors).out


def test_attention_no_cell_is_lost_at_any_width() -> None:
    found = nasty()
    for room in (None, 200, 80, 60, 20):
        cells = [cell.shade for line in shaded_lines(found, room) for cell in line if isinstance(cell, Shaded)]
        assert len(cells) == len(NASTY) ** 2
        assert max(cells) == pytest.approx(1)


def test_attention_json_holds_the_weights_beside_the_trace(model: Path) -> None:
    whole = json.loads(look(model, "1", "--format", "json").out)
    found = weights_of(model, Choice(1, None))
    assert list(whole) == ["model", "batch", "sequence", "steps", "totals", "attention"]
    assert (whole["attention"]["layer"], whole["attention"]["head"]) == (1, None)
    assert whole["attention"]["tokens"] == found.pieces
    np.testing.assert_array_equal(np.array(whole["attention"]["weights"], dtype=np.float32), found.layer)
    one = json.loads(look(model, "1.0", "--format", "json").out)
    np.testing.assert_array_equal(np.array(one["attention"]["weights"], dtype=np.float32), found.layer[0])


def test_attention_csv_and_markdown_are_the_matrix(model: Path) -> None:
    pieces = weights_of(model, Choice(0, 1)).pieces
    lines = look(model, "0.1", "--format", "csv").out.splitlines()
    assert len(lines) == len(pieces) + 1
    assert lines[0].startswith("token,0 [CLS],1 the,2 king,")
    lines = look(model, "0.1", "--format", "markdown").out.splitlines()
    assert lines[0].startswith("| Token | [CLS] | the | king |")
