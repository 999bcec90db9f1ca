"""Lines of files, gzips and pipes come out as they were put in: one a line, nothing more, nothing less."""

import gzip
import json
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pytest
from helpers.reading import from_files, refusal, refusal_of, texts, texts_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertcli.errors import BertcliError
from bertcli.files.read.line_reader import LONGEST_LINE
from bertcli.files.texts import Text

reuse = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
characters = st.characters(codec="utf-8")
lines = st.text(characters.filter(lambda character: character != "\n")).filter(lambda line: not line.endswith("\r"))
WORDS = ["one", "", "dr–é 😀", "four"]
CONTENT = {
    "txt": "".join(f"{word}\n" for word in WORDS),
    "jsonl": "".join(json.dumps({"text": word, "id": i}) + "\n" for i, word in enumerate(WORDS)),
    "csv": "id,text\n" + "".join(f"{i},{word}\n" for i, word in enumerate(WORDS)),
    "tsv": "id\ttext\n" + "".join(f"{i}\t{word}\n" for i, word in enumerate(WORDS)),
}


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
def test_lines_end_at_newlines_only(data: str, expected: list[str], tmp_path: Path) -> None:
    assert texts_of(tmp_path, "t.txt", data) == expected


@given(texts_in=st.lists(lines), ends=st.sampled_from(["\n", "\r\n"]))
@reuse
def test_lines_all_come_back(texts_in: list[str], ends: str, tmp_path: Path) -> None:
    data = "".join(text + ends for text in texts_in)
    if not data.startswith("\ufeff"):
        assert texts_of(tmp_path, "t.txt", data) == texts_in


@pytest.mark.parametrize("length", [1 << 18, (1 << 18) - 1, 3 << 18])
def test_lines_may_be_longer_than_what_is_read_at_a_time(length: int, tmp_path: Path) -> None:
    assert texts_of(tmp_path, "t.txt", "x" * length + "\ny\n") == ["x" * length, "y"]


@pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t.csv", "t.tsv"])
@pytest.mark.parametrize("broken", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_lines_of_bad_utf8_are_named(name: str, broken: bytes, tmp_path: Path) -> None:
    first = {"t.txt": b"fine\n", "t.jsonl": b'{"text": "fine"}\n'}.get(name, b"text\n")
    assert refusal_of(tmp_path, name, first + b"a" + broken).startswith(f"{name}, line 2: not UTF-8 (byte 2 is 0x")


def test_lines_of_a_file_that_is_not_there_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match=r"Cannot read .*gone\.txt: No such file"):
        from_files([str(tmp_path / "gone.txt")])
    (tmp_path / "d.txt").mkdir()
    with pytest.raises(BertcliError, match="There are no files of texts in"):
        from_files([str(tmp_path / "d.txt")])
    with pytest.raises(BertcliError, match="Cannot read"):
        from_files(["nul\0.txt"])


def finish(pipe: IO[bytes]) -> None:
    pipe.write(b"ee\n")
    pipe.close()


def test_lines_of_a_pipe_that_pauses_are_given_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    with open(read, encoding="utf-8") as stdin, open(write, "wb", buffering=0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        groups = from_files(["-"]).grouped(tokens=1000, span=4)
        pipe.write(b"one\ntwo\nthr")
        assert [text.text for text in next(groups)] == ["one", "two"]
        threading.Timer(0.05, finish, [pipe]).start()
        assert [text.text for text in next(groups)] == ["three"]
        assert next(groups, None) is None


def test_lines_of_a_closed_standard_input_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BertcliError, match="closed"):
        list(from_files(["-"]))


@pytest.mark.parametrize("ending", CONTENT)
def test_lines_of_a_gzip_are_the_same(ending: str, tmp_path: Path) -> None:
    data = CONTENT[ending].encode()
    for name, packed in (("one", gzip.compress(data)), ("two", gzip.compress(data[:30]) + gzip.compress(data[30:]))):
        file = tmp_path / f"{name}.{ending}.gz"
        file.write_bytes(packed)
        assert texts(file) == WORDS
    (tmp_path / "upper").with_suffix(f".{ending.upper()}.GZ").write_bytes(gzip.compress(data))
    assert texts(tmp_path / f"upper.{ending.upper()}.GZ") == WORDS


def test_lines_of_a_gzip_cut_short_end_where_it_ends(tmp_path: Path) -> None:
    file = tmp_path / "t.txt.gz"
    lines = [os.urandom(20).hex() for _ in range(20_000)]
    whole = gzip.compress("\n".join(lines).encode())
    for size in (len(whole) // 2, len(whole) - 4):
        file.write_bytes(whole[:size])
        seen: list[str] = []
        with pytest.raises(
            BertcliError, match=r"t\.txt\.gz, line \d+: the gzip is damaged here \(it ends before"
        ) as error:
            seen.extend(text.text for text in _collected(from_files([str(file)]), seen))
        assert seen == lines[: len(seen)]
        assert f"line {len(seen) + 1}:" in str(error.value)
        assert len(seen) > len(lines) * size / len(whole) * 0.8


def _collected(rows: Any, seen: list[str]) -> list[Text]:
    for row in rows:
        seen.append(row.text)
    return []


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (b"", "it is empty"),
        (b"plain text\n", "Not a gzipped file"),
        (gzip.compress(b"one\n", mtime=0) + b"rubbish", "Not a gzipped file"),
        (gzip.compress(b"one\n", mtime=0)[:-8] + b"12345678", "CRC check failed"),
        (gzip.compress(b"one\n", mtime=0)[:10] + b"\x07" * 30, "Error -3 while decompressing"),
    ],
)
def test_lines_of_a_damaged_gzip_are_named(packed: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.txt.gz").write_bytes(packed)
    message = refusal(tmp_path / "t.txt.gz")
    assert message.startswith("t.txt.gz, line ")
    assert why in message


@pytest.mark.large
@pytest.mark.parametrize(
    ("name", "start"), [("t.txt.gz", b""), ("t.jsonl.gz", b'{"text": "'), ("t.csv.gz", b'text\n"\n')]
)
def test_lines_that_never_end_do_not_fill_the_memory(name: str, start: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(start + b"x" * (LONGEST_LINE + (1 << 20)), 1))
    assert f"more than {LONGEST_LINE:,} bytes without a line end" in refusal(tmp_path / name)
