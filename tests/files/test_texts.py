"""Texts from arguments and from Python, and how they are grouped for work."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.lines import write_lines
from helpers.reading import from_files

from bertcli.errors import BertcliError
from bertcli.files.texts import Text, from_arguments, from_values


def test_texts_of_arguments() -> None:
    assert list(from_arguments(["a", ""], "b")) == [Text("a", "b"), Text("", "b")]
    for arguments in ((["\udcff"], None), (["a"], "\udcff")):
        with pytest.raises(BertcliError, match="not UTF-8"):
            from_arguments(*arguments)


@pytest.mark.parametrize(
    ("given_texts", "pairs", "expected"),
    [
        (["a", "b"], None, [("a", None), ("b", None)]),
        ("abc", None, [("abc", None)]),
        (iter(["a", "b"]), "p", [("a", "p"), ("b", "p")]),
        (("a", "b"), ["p", None], [("a", "p"), ("b", None)]),
        ([], [], []),
    ],
)
def test_texts_of_values(given_texts: Any, pairs: Any, expected: list[tuple[str, str | None]]) -> None:
    assert [(text.text, text.pair) for text in from_values(given_texts, pairs)] == expected


@pytest.mark.parametrize(("pairs", "word"), [(["p"], "fewer"), (["p", "q", "r"], "more")])
def test_texts_have_as_many_pairs(pairs: Sequence[str], word: str) -> None:
    with pytest.raises(BertcliError, match=f"{word} pairs than texts"):
        list(from_values(["a", "b"], pairs))


def test_texts_are_grouped_by_themselves_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("x\n" * 2000, encoding="utf-8")
    sizes = [len(group) for group in from_files([str(path)]).grouped(tokens=30, span=8)]
    assert sizes[:5] == [10, 20, 40, 80, 80]
    assert sum(sizes) == 2000


@pytest.mark.parametrize("count", [1, 7])
def test_texts_are_grouped_alike_however_they_are_stored(count: int, tmp_path: Path) -> None:
    lines = [f"{i} " * (i % 40) for i in range(700)]
    files = []
    for i in range(count):
        files.append(tmp_path / f"{i}.txt.gz")
        part = lines[i * 700 // count : (i + 1) * 700 // count]
        files[-1].write_bytes(gzip.compress("".join(f"{line}\n" for line in part).encode()))
    write_lines(tmp_path / "all.txt", lines)
    expected = [[text.text for text in group] for group in from_files([str(tmp_path / "all.txt")]).grouped(50, 4)]
    found = [[text.text for text in group] for group in from_files([str(file) for file in files]).grouped(50, 4)]
    assert found == expected
