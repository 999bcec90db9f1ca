"""Tables piped into another program, and tables of numbers that are wider than the terminal."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from helpers.terminal import bertcli

TRACE = [sys.executable, "-m", "bertcli", "trace", "--variant", "tiny", "--seq-len", "8"]


def in_terminal(columns: int, out: int) -> None:
    """Run TRACE with standard error in a terminal of so many columns."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    subprocess.run(TRACE, stdout=out, stderr=terminal, env=environment, check=True)
    os.close(terminal)
    os.close(controller)


def test_a_table_in_a_pipe_fits_into_the_terminal_beside_it(tmp_path: Path) -> None:
    whole = bertcli(*TRACE[3:]).out
    reader, writer = os.pipe()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=writer) as cat, open(reader, encoding="utf-8") as pipe:
        assert cat.stdin is not None
        in_terminal(80, cat.stdin.fileno())
        cat.stdin.close()
        os.close(writer)
        folded = pipe.read()
    assert max(map(len, whole.splitlines())) > 150
    assert max(map(len, folded.splitlines())) <= 80
    cells = "\n".join(whole.splitlines()[2:]).split()
    assert [word for word in cells if word not in folded] == []
    with (tmp_path / "trace.txt").open("wb") as file:
        in_terminal(80, file.fileno())
    assert (tmp_path / "trace.txt").read_text(encoding="utf-8") == whole


def numbers_by_row(table: str) -> dict[str, list[str]]:
    """The numbers beside each text, in the order of the lines."""
    found: dict[str, list[str]] = {}
    for name, numbers in re.findall(r"^ +\d+  +([A-Z][a-z]+ [a-z]+)((?: +-?\d\.\d{4})+)$", table, re.MULTILINE):
        found.setdefault(name, []).extend(numbers.split())
    return found


@pytest.mark.parametrize("width", [80, 50])
def test_a_matrix_goes_on_below_with_its_first_columns_again(width: int) -> None:
    texts = [f"{first} {second}" for first in ("Hot", "Cold", "Warm", "Fresh") for second in ("tea", "milk", "water")]
    whole = bertcli("similarity", *texts).out
    narrow = bertcli("similarity", *texts, environment={"COLUMNS": str(width)}).out
    assert max(map(len, whole.splitlines())) > 100
    assert max(map(len, narrow.splitlines())) <= width
    assert [len(numbers) for numbers in numbers_by_row(whole).values()] == [12] * 12
    assert numbers_by_row(narrow) == numbers_by_row(whole)


@pytest.mark.parametrize(
    ("arguments", "width"),
    [
        (("classify", "I loved every minute of this wonderful film."), 24),
        (("params", "--variant", "tiny"), 44),
        (("fill-mask", "A cup of hot [MASK]."), 28),
    ],
)
def test_words_of_up_to_eight_letters_stay_whole(arguments: tuple[str, ...], width: int) -> None:
    """Where there is no room for them beside each other, cells stand below one another."""
    words = {word for word in bertcli(*arguments).out.split() if len(word) <= 8 and "─" not in word}
    narrow = bertcli(*arguments, environment={"COLUMNS": str(width)}).out
    assert max(map(len, narrow.splitlines())) <= width
    assert words - {*narrow.split()} == set()


def test_smaller_gaps_come_before_folded_words() -> None:
    lines = bertcli("lens", "She poured a cup of hot [MASK].", environment={"COLUMNS": "80"}).out.splitlines()
    assert [name for name in lines[2].split("  ") if name.startswith("Pred")] == [f"Prediction {n}" for n in (1, 2, 3)]
    assert max(map(len, lines)) <= 80


def test_a_table_of_folded_words_comes_before_a_list() -> None:
    text = "The cat sat on the mat by the old house."
    lines = bertcli("lens", text, "--all", environment={"COLUMNS": "80"}).out.splitlines()
    assert max(map(len, lines)) <= 80
    heading = next(line for line in lines if "Rank" in line)
    assert heading.split()[-3:] == ["Rank", "Score", "KL"]
