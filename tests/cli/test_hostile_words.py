"""Whatever stands on a command line, no terminal obeys it: names are escaped, and a message has an end."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import Made
from helpers.terminal import bertcli

from bertcli.extensions import own_commands
from bertcli.tasks.registry import specs

EVIL = "e\x1b[31mvil\u202ename"
RAW = re.compile("\x1b\\[31m|\u202e")
COMMANDS = sorted({spec.name for spec in specs()} | {*own_commands()} - {"serve", "mcp"})


@pytest.fixture(scope="module")
def evil(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model in a folder whose name would color the terminal and change the direction of writing."""
    folder = tmp_path_factory.mktemp("evil") / EVIL
    shutil.copytree(made(head="pretraining", seed=7), folder)
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_no_word_controls_the_terminal(command: str, evil: Path) -> None:
    for words in ([evil], ["-m", evil, "a cup of tea"], [evil, evil], [f"--{EVIL}"], ["-o", f"{evil}.x", "tea"],
                  ["--format", EVIL], ["-i", f"{evil}.txt"], ["--layer", EVIL], ["-m", f"{evil}x", "tea"]):  # fmt: skip
        result = bertcli(command, *words, stdin="")
        assert not RAW.search(result.err), (words, result.err)
        assert not RAW.search(result.out), (words, result.out)
        assert "Unexpected error" not in result.err


def test_an_unknown_command_controls_nothing_and_has_an_end() -> None:
    assert not RAW.search(bertcli(EVIL).err)
    for words in (["x" * 1_000_000], ["encode", f"--{'x' * 1_000_000}"], ["encode", "tea", "-m", "x" * 1_000_000]):
        assert len(bertcli(*words).err) < 10_000
