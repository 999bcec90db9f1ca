"""What a terminal shows: progress, and nothing that a terminal would obey."""

import json
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from conftest import Made
from helpers.terminal import bertcli

from bertcli.report.progress import progress
from bertcli.report.terminal import Column, as_json, folded, table_lines, visible

BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


@cache
def obeyed() -> list[str]:
    """Every character that a terminal does not show, but obeys."""
    return [
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


FOLDED = """\
                  mean
 text         distance  n
──────────────────────────
 a dog ran      1.2500  2
 home
 x              3.0000  4"""

IN_BLOCKS = """\
 text                 0       1
────────────────────────────────
 a dog ran home  0.1234  1.1234
 x               0.5000  0.5000

 text                 2       3
────────────────────────────────
 a dog ran home  2.1234  3.1234
 x               0.5000  0.5000

 text                  4
─────────────────────────
 a dog ran home   4.1234
 x                0.5000"""

BELOW_ONE_ANOTHER = """\
 text    label one
 first   aaaaaaaaaaaaaaaaa bbbbbbbb
 second  cccccccccccccccccccccc
 third   dddddddddddd dddddddd
 fourth  eeeeeeeeeeeee

 text    x
 first   3
 second  4
 third   5
 fourth  6"""


@pytest.mark.parametrize(
    ("width", "columns", "rows", "expected"),
    [
        (
            "26", [Column("text"), Column("mean distance", float), Column("n", int)],
            [["a dog ran home", "1.2500", "2"], ["x", "3.0000", "4"]], FOLDED,
        ),
        (
            "34", [Column("text"), *(Column(str(number), float) for number in range(5))],
            [["a dog ran home", *(f"{n}.1234" for n in range(5))], ["x", *["0.5000"] * 5]], IN_BLOCKS,
        ),
        (
            "40", [*map(Column, ("text", "first", "second", "third", "fourth"))],
            [["label one", "a" * 17 + " " + "b" * 8, "c" * 22, "d" * 12 + " " + "d" * 8, "e" * 13], [*"x3456"]],
            BELOW_ONE_ANOTHER,
        ),
    ],
    ids=["folded", "in blocks", "below one another"],
)  # fmt: skip
def test_a_table_fits_a_narrow_terminal(
    width: str, columns: list[Column], rows: list[list[str]], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    heading, body = table_lines(columns, rows)
    assert "\n".join([*heading, *body]) == expected


def test_report_shows_no_character_that_a_terminal_obeys() -> None:
    text = "".join(obeyed())
    assert not set(visible(text)) & set(obeyed())
    assert set(as_json({text: [text]}).decode()) & set(obeyed()) == set()
    assert json.loads(as_json({text: [text]})) == {text: [text]}
    kept = "漢 é 😀 \u200d\ufe0f ­-"
    assert visible(kept) == kept
    assert as_json(kept) == f'"{kept}"'.encode()


@pytest.mark.parametrize(
    "command",
    [
        ["params"],
        ["params", "--format", "markdown"],
        ["params", "--format", "json"],
        ["trace", "tea"],
        ["heads", "tea", "--layer", "1"],
        ["encode", "tea"],
        ["fill-mask", "[MASK]"],
        ["tokenize", "tea"],
        ["neighbors", "tea"],
        ["info"],
        ["heads", "hot tea"],
        ["params", "--versus", "bert-mini-mlm"],
        ["diff", "bert-mini-mlm", "--versus"],
        ["classify", "tea"],  # an error that names the model
    ],
    ids=" ".join,
)
def test_report_shows_no_escape_in_the_name_of_a_model(command: list[str], made: Made, tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[31mred\u061c\x9b"
    shutil.copytree(made(head="pretraining"), folder)
    result = bertcli(*command, *([] if command[0] == "diff" else ["-m"]), folder)
    assert not set(result.out + result.err) & (set(obeyed()) - {"\n"})


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
    assert re.search(r"300 texts  \d+/s  30% 0:\d\d:\d\d gone, \d\d:\d\d left", shown)
