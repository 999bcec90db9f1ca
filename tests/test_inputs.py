"""Texts come out of files and pipes as they were put in: one a line, nothing more, nothing less."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertcli.errors import BertcliError
from bertcli.inputs import Text, from_arguments, from_files, from_values

reuse = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
characters = st.characters(codec="utf-8")
lines = st.text(characters.filter(lambda character: character != "\n")).filter(lambda line: not line.endswith("\r"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def texts(folder: Path, name: str, data: bytes | str, **options: Any) -> list[str]:
    """The texts that a file of this name and content holds."""
    return [text.text for text in rows(folder, name, data, **options)]


def rows(folder: Path, name: str, data: bytes | str, **options: Any) -> list[Text]:
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return list(from_files([str(path)], **options))


def error(folder: Path, name: str, data: bytes | str, **options: Any) -> str:
    """What is said of it, without the folder's name."""
    with pytest.raises(BertcliError) as caught:
        texts(folder, name, data, **options)
    return str(caught.value).replace(str(folder) + os.sep, "")


# ------------------------------------------------------------------------------------------------------------ lines


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", []),
        ("\n", [""]),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\n\n", ["a", ""]),
        ("\n\na", ["", "", "a"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("\r\n", [""]),
        ("a\rb\n", ["a\rb"]),
        ("a\r", ["a\r"]),
        ("a\r\r\n", ["a\r"]),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\n", ["a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"]),
        ("\ufeffa\n\ufeffb", ["a", "\ufeffb"]),
        ("\ufeff", []),
        ("\ufeff\n", [""]),
        ("\x00\n", ["\x00"]),
    ],
)
def test_lines_end_at_newlines_only(data: str, expected: list[str], folder: Path) -> None:
    assert texts(folder, "t.txt", data) == expected


@given(texts_in=st.lists(lines), ends=st.sampled_from(["\n", "\r\n"]))
@reuse
def test_every_line_comes_back(texts_in: list[str], ends: str, folder: Path) -> None:
    data = "".join(text + ends for text in texts_in)
    if not data.startswith("\ufeff"):
        assert texts(folder, "t.txt", data) == texts_in


@pytest.mark.parametrize("length", [1 << 18, (1 << 18) - 1, 3 << 18])
def test_a_line_may_be_longer_than_what_is_read_at_a_time(length: int, folder: Path) -> None:
    assert texts(folder, "t.txt", "x" * length + "\ny\n") == ["x" * length, "y"]


@pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t.csv", "t.tsv"])
@pytest.mark.parametrize("broken", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_bad_utf8_names_file_and_line(name: str, broken: bytes, folder: Path) -> None:
    first = {"t.txt": b"fine\n", "t.jsonl": b'{"text": "fine"}\n'}.get(name, b"text\n")
    assert error(folder, name, first + b"a" + broken).startswith(f"{name}, line 2: not UTF-8 (byte 2 is 0x")


def test_a_file_that_is_not_there_is_noticed_at_once(folder: Path) -> None:
    with pytest.raises(BertcliError, match=r"Cannot read .*gone\.txt: No such file"):
        from_files([str(folder / "gone.txt")])
    (folder / "d.txt").mkdir()
    with pytest.raises(BertcliError, match="it is a folder"):
        from_files([str(folder / "d.txt")])
    with pytest.raises(BertcliError, match="Cannot read"):
        from_files(["nul\0.txt"])


@pytest.mark.parametrize("name", ["t.md", "t.json", "t.gz", "t.md.gz", "t.txt.bz2"])
def test_other_endings_are_refused(name: str) -> None:
    with pytest.raises(BertcliError, match=r"must be \.txt, \.jsonl, \.csv, \.tsv or \.parquet"):
        from_files([name])


def test_endings_may_be_upper_case(folder: Path) -> None:
    assert texts(folder, "T.TXT", "a\n") == ["a"]


# ------------------------------------------------------------------------------------------------------- JSON lines


def test_fields_of_json_lines(folder: Path) -> None:
    data = '{"text": "a", "other": [1, NaN]}\r\n{"id": 7, "text": ""}\n{"text": "\\u2028\\n\\ud83d\\ude00"}'
    assert texts(folder, "t.jsonl", data) == ["a", "", "\u2028\n😀"]
    found = rows(folder, "t.jsonl", '{"a": "x", "b": "y"}\n', column="a", pair_column="b")
    assert [(text.text, text.pair) for text in found] == [("x", "y")]
    assert found[0].place is not None
    assert found[0].place.endswith("t.jsonl, line 1")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"text": "a"} x', "not valid JSON (Extra data at column 15)"),
        ("7", "not a JSON object but 7"),
        ('["a"]', "not a JSON object"),
        ('{"txt": "a"}', "there is no field 'text'; fields are 'txt'"),
        ('{"text": 7}', "the field 'text' is 7, which is not a text"),
        ('{"text": null}', "the field 'text' is null"),
        ('{"text": "\\ud800"}', "which is not a text"),
        ("[" * 100_000, "not usable JSON"),
        ('{"text": ' + "9" * 5000 + "}", "not usable JSON"),
    ],
)
def test_a_bad_json_line_is_named(line: str, message: str, folder: Path) -> None:
    found = error(folder, "t.jsonl", '{"text": "fine"}\n' + line + "\n")
    assert found.startswith("t.jsonl, line 2: ")
    assert message in found
    assert len(found) < 300


def test_a_pair_field_has_to_be_there_too(folder: Path) -> None:
    assert "no field 'b'" in error(folder, "t.jsonl", '{"text": "a"}\n', pair_column="b")


# ------------------------------------------------------------------------------------------ separated by commas, tabs


@given(values=st.lists(st.tuples(st.text(characters), st.text(characters)), max_size=8), tabs=st.booleans())
@reuse
def test_what_the_csv_module_writes_comes_back(values: list[tuple[str, str]], tabs: bool, folder: Path) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t" if tabs else ",")
    writer.writerows([("first", "text"), *values])
    kept = [pair for pair in values if not tabs or "\n" not in "".join(pair)]
    if kept == values:
        found = rows(folder, "t.tsv" if tabs else "t.csv", stream.getvalue(), pair_column="first")
        assert [(text.pair, text.text) for text in found] == values


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("", []),
        ("text\n", []),
        ("\ufefftext\r\na\r\n", ["a"]),
        ("text\na\n\nb\n", ["a", "", "b"]),
        ('id,text\n1,"a, ""b""\nc"\n2,d\n', ['a, "b"\nc', "d"]),
        ("id,text\n1,a\rb\n", ["a\rb"]),
        ('text\n"' + "x" * 200_000 + '"\n', ["x" * 200_000]),
        ('text\n5" nail\n', ['5" nail']),
    ],
)
def test_comma_separated(data: str, expected: list[str], folder: Path) -> None:
    assert texts(folder, "t.csv", data) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1\ta, b", "a, b"),
        ('1\t" catch me " is fun', '" catch me " is fun'),
        ('1\t"open', '"open'),
        ('1\t"a ""b"" c"', 'a "b" c'),
        ('1\t5" nail', '5" nail'),
        ("1\ta\rb", "a\rb"),
    ],
)
def test_tab_separated_with_quotation_marks(line: str, expected: str, folder: Path) -> None:
    assert texts(folder, "t.tsv", "label\ttext\n" + line + "\n") == [expected]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a,b\n1,2\n", "t.csv, line 1: there is no column 'text'; the header has 'a', 'b'"),
        ("text,text\n1,2\n", "t.csv, line 1: there is more than one column 'text'"),
        ("id,text\n1,2\n3\n", "t.csv, line 3: 1 field(s) where the header has 2"),
        ("id,text\n1,2,3\n", "t.csv, line 2: 3 field(s) where the header has 2"),
        ('id,text\n1,"a\nb"\n2\n', "t.csv, line 4: 1 field(s)"),
        ('text\nfine\n"open\nand on\n', "t.csv, line 3: not comma-separated values"),
        ('text\n"a" b\n', "t.csv, line 2: not comma-separated values"),
    ],
)
def test_a_bad_row_is_named(data: str, message: str, folder: Path) -> None:
    assert error(folder, "t.csv", data).startswith(message)


# ------------------------------------------------------------------------------------------ pipes, arguments, Python


def finish(pipe: IO[bytes]) -> None:
    pipe.write(b"ee\n")
    pipe.close()


def test_a_pipe_that_pauses_gives_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with open(read, encoding="utf-8") as stdin, open(write, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        groups = from_files(["-"]).grouped(tokens=1000, span=4)
        pipe.write(b"one\ntwo\nthr")
        assert [text.text for text in next(groups)] == ["one", "two"]
        threading.Timer(0.05, finish, [pipe]).start()
        assert [text.text for text in next(groups)] == ["three"]
        assert next(groups, None) is None


def test_groups_grow_and_depend_on_the_texts_alone(folder: Path) -> None:
    path = folder / "t.txt"
    path.write_text("x\n" * 2000, encoding="utf-8")
    sizes = [len(group) for group in from_files([str(path)]).grouped(tokens=30, span=8)]
    assert sizes[:5] == [10, 20, 40, 80, 80]
    assert sum(sizes) == 2000


def test_standard_input_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BertcliError, match="closed"):
        list(from_files(["-"]))


def test_arguments() -> None:
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
def test_values(given_texts: Any, pairs: Any, expected: list[tuple[str, str | None]]) -> None:
    assert [(text.text, text.pair) for text in from_values(given_texts, pairs)] == expected


@pytest.mark.parametrize(("pairs", "word"), [(["p"], "fewer"), (["p", "q", "r"], "more")])
def test_as_many_pairs_as_texts(pairs: Sequence[str], word: str) -> None:
    with pytest.raises(BertcliError, match=f"{word} pairs than texts"):
        list(from_values(["a", "b"], pairs))


def test_json_lines_written_by_json_come_back(folder: Path) -> None:
    values = ["", "a\nb", "\u2028", "😀", '"']
    for ascii_only in (True, False):
        data = "".join(json.dumps({"text": value}, ensure_ascii=ascii_only) + "\n" for value in values)
        assert texts(folder, "t.jsonl", data) == values
