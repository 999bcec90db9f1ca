"""Standard output that cannot encode every sign: nothing is lost, and the columns of a table stay columns."""

import re

import pytest
from helpers.options_of_commands import commands_with
from helpers.terminal import bertcli

ENCODINGS = ["cp1252", "ascii"]
TABLES = [
    ["params", "--variant", "tiny", "--formulas"],
    ["trace", "--variant", "textbook", "--seq-len", "8", "--formulas"],
    ["trace", "Hot tea.", "--stats"],
    ["lens", "Hot [MASK]."],
    ["heads", "Hot tea."],
    ["info"],
    ["similarity", "Heißer Tee ≤ 漢.", "Cold tea."],
    ["tokenize", "Ein Fluß, 漢"],
]


def unescaped(text: str) -> str:
    """A text with the signs that were escaped in it."""
    return re.sub(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4})", lambda found: found[0].encode().decode("unicode_escape"), text)


def table_of(text: str) -> tuple[str, list[str]]:
    """The rule of a table, and the lines of its rows."""
    lines = text.splitlines()
    place = next(number for number, line in enumerate(lines) if line and not line.strip("-─"))
    below = lines[place + 1 :]
    return lines[place], below[: below.index("") if "" in below else None]


def cells(lines: list[str]) -> list[list[str]]:
    """The cells of each row, but for measured numbers."""
    return [[re.sub(r"\d+(\.\d+)?", "", cell) for cell in re.split(" {2,}", line.strip())] for line in lines]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_table_has_the_same_cells_in_columns_of_their_width(words: list[str], encoding: str) -> None:
    _, expected = table_of(bertcli(*words).out)
    rule, rows = table_of(bertcli(*words, encoding=encoding).out)
    assert cells([unescaped(row) for row in rows]) == cells(expected)
    assert {*rule} == {"-"}
    assert max(map(len, rows)) < len(rule)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bars_and_shades_become_ascii(encoding: str) -> None:
    plain = bertcli("heads", "Hot tea.", "--layer", "1.1", encoding=encoding).out
    assert re.search(r"[.+%#] *\d", plain)
    assert plain.translate(str.maketrans(".+%#", "    ")).count("\\") == 0


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_help_of_every_command_is_whole(encoding: str) -> None:
    for command in sorted(commands_with("--debug")):
        assert unescaped(bertcli(command, "--help", encoding=encoding).out) == bertcli(command, "--help").out
    assert "Usage: bertcli " in bertcli("--help", encoding=encoding).out


def test_a_message_escapes_what_it_cannot_encode() -> None:
    assert r"There is no folder '/\u6f22'" in bertcli("info", "/漢", encoding="ascii").error
