"""Options of earlier versions are answered with what to write instead, status 2."""

import pytest
from helpers.doors import commands_with
from helpers.terminal import bertcli

from bertcli.cli.renamed import OLD_OPTIONS

# What a user of 0.7 may still type, and words of the answer; said here anew, so that no entry of the table can be lost.
TYPED = [
    (["explain", "a", "--by", "delete"], "--method"),
    (["explain", "a", "--with", "b"], "--versus"),
    (["patch", "a", "b", "--with", "c"], "--versus"),
    (["heads", "a", "--top", "3"], "--top-k"),
    (["trace", "a", "--attention", "0.1"], "bertcli heads TEXT --layer 3.2"),
    (["trace", "a", "--head", "1"], "--layer"),
    (["trace", "a", "--full"], "bertcli serve"),
    (["evaluate", "a.csv", "--labels", "a=b"], "--rename-label"),
    (["evaluate", "-i", "a.csv"], "bertcli evaluate FILE"),
    (["encode", "--query", "a"], "bertcli search"),
    (["encode", "--against", "v.npy"], "bertcli search"),
    (["encode", "a", "--similarity"], "bertcli similarity"),
    (["classify", "--label-column", "label"], "bertcli evaluate"),
]


@pytest.mark.parametrize(("arguments", "answer"), TYPED, ids=lambda value: str(value))
def test_an_old_option_is_answered_with_the_new_one(arguments: list[str], answer: str) -> None:
    result = bertcli(*arguments)
    assert (result.status, result.out) == (2, "")
    assert answer in " ".join(result.err.replace("│", " ").split())


@pytest.mark.parametrize(("command", "option"), OLD_OPTIONS)
def test_an_old_option_is_none_that_its_command_offers(command: str, option: str) -> None:
    assert command in commands_with("--debug")
    assert command not in commands_with(option)
