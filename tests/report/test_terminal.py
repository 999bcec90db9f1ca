"""What a terminal shows: progress, and nothing that a terminal would obey."""

import json
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from pathlib import Path

import pytest
from conftest import Made
from helpers.terminal import bertcli

from bertcli.report.progress import progress
from bertcli.report.terminal import as_json, folded, visible

BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
OBEYED = [
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(character) in ("Cc", "Zl", "Zp")
    or unicodedata.bidirectional(character) in BIDI
    or character in "\u061c\u200e\u200f"  # marks of direction, which have that of letters
]


def test_a_folded_line_has_as_many_words_as_fit() -> None:
    """As in the standard library's textwrap: also a word that ends where the line does."""
    text = "Rank and score are those of the last layer's best prediction; KL is in nats."
    for width in range(11, 1 + len(text)):  # the longest word is "prediction;"
        assert folded(text, width).split("\n") == textwrap.wrap(text, width)


def test_report_shows_no_character_that_a_terminal_obeys() -> None:
    text = "".join(OBEYED)
    assert not set(visible(text)) & set(OBEYED)
    assert set(as_json({text: [text]}).decode()) & set(OBEYED) == set()
    assert json.loads(as_json({text: [text]})) == {text: [text]}
    kept = "漢 é 😀 \u200d\ufe0f ­-"
    assert visible(kept) == kept
    assert as_json(kept) == f'"{kept}"'.encode()


@pytest.mark.parametrize(
    "command",
    [
        ["params"],
        ["params", "--tensors"],
        ["params", "--format", "markdown"],
        ["params", "--format", "json"],
        ["trace", "tea"],
        ["heads", "tea", "--layer", "1"],
        ["encode", "tea"],
        ["fill-mask", "[MASK]"],
        ["tokenize", "tea"],
        ["neighbors", "tea"],
        ["classify", "tea"],  # an error that names the model
    ],
    ids=" ".join,
)
def test_report_shows_no_escape_in_the_name_of_a_model(command: list[str], made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[31mred\u061c\x9b"
    shutil.copytree(made(head="pretraining"), folder)
    result = bertcli(*command, "-m", folder)
    assert not set(result.out + result.err) & (set(OBEYED) - {"\n"})


def test_progress_says_rate_share_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("bertcli.report.progress.MOMENT", 0.0)
    for _ in progress([100, 201, 300], "encode", lambda done: (done, (done // 100) / 10)):
        time.sleep(0.25)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err)
    assert "encode" in shown
    assert re.search(r"300 texts  \d+/s  30% 0:\d\d:\d\d 0:\d\d:\d\d", shown)
