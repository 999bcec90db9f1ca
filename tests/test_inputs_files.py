"""Compressed files, Parquet, several files and patterns: the same texts, in order, or one line that says where."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from terminal import bertcli

from bertcli.errors import BertcliError
from bertcli.inputs import Text, from_files
from bertcli.lines import LONGEST

WORDS = ["one", "", "dr–é 😀", "four"]
CONTENT = {
    "txt": "".join(f"{word}\n" for word in WORDS),
    "jsonl": "".join(json.dumps({"text": word, "id": i}) + "\n" for i, word in enumerate(WORDS)),
    "csv": "id,text\n" + "".join(f"{i},{word}\n" for i, word in enumerate(WORDS)),
    "tsv": "id\ttext\n" + "".join(f"{i}\t{word}\n" for i, word in enumerate(WORDS)),
}


def refusal(*files: Path | str, **options: Any) -> str:
    """What is said of these files, without the names of folders."""
    with pytest.raises(BertcliError) as caught:
        list(from_files([str(file) for file in files], **options))
    message = str(caught.value)
    for file in files:
        message = message.replace(str(Path(file).parent) + os.sep, "")
    return message


def texts(*files: Path | str, **options: Any) -> list[str]:
    return [text.text for text in from_files([str(file) for file in files], **options)]


# ------------------------------------------------------------------------------------------------------------- gzip


@pytest.mark.parametrize("ending", CONTENT)
def test_a_gzip_holds_the_same_texts(ending: str, tmp_path: Path) -> None:
    data = CONTENT[ending].encode()
    for name, packed in (("one", gzip.compress(data)), ("two", gzip.compress(data[:30]) + gzip.compress(data[30:]))):
        file = tmp_path / f"{name}.{ending}.gz"
        file.write_bytes(packed)
        assert texts(file) == WORDS
    (tmp_path / "upper").with_suffix(f".{ending.upper()}.GZ").write_bytes(gzip.compress(data))
    assert texts(tmp_path / f"upper.{ending.upper()}.GZ") == WORDS


def test_a_gzip_cut_short_gives_what_came_and_names_the_line(tmp_path: Path) -> None:
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
        (gzip.compress(b"one\n") + b"rubbish", "Not a gzipped file"),
        (gzip.compress(b"one\n")[:-8] + b"12345678", "CRC check failed"),
        (gzip.compress(b"one\n")[:10] + b"\x07" * 30, "Error -3 while decompressing"),
    ],
)
def test_a_damaged_gzip_is_named(packed: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "t.txt.gz").write_bytes(packed)
    message = refusal(tmp_path / "t.txt.gz")
    assert message.startswith("t.txt.gz, line ")
    assert why in message


@pytest.mark.parametrize(
    ("name", "start"), [("t.txt.gz", b""), ("t.jsonl.gz", b'{"text": "'), ("t.csv.gz", b'text\n"\n')]
)
def test_what_never_ends_a_line_does_not_fill_the_memory(name: str, start: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(start + b"x" * (LONGEST + (1 << 20)), 1))
    assert f"more than {LONGEST:,} bytes without a line end" in refusal(tmp_path / name)


def test_a_quotation_mark_that_never_closes_does_not_fill_the_memory(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(
        gzip.compress(b'text\nfine\n"open\n' + (b"x" * 99 + b"\n") * (LONGEST // 90), 1)
    )
    assert refusal(tmp_path / "t.csv.gz").startswith("t.csv.gz, line 3: a quotation mark opens here and does not close")


# --------------------------------------------------------------------------------------------- several files, patterns


def test_several_files_are_one_input(tmp_path: Path) -> None:
    files = []
    for ending, content in CONTENT.items():
        files.append(tmp_path / f"part.{ending}")
        files[-1].write_text(content, encoding="utf-8")
    assert texts(*files) == 4 * WORDS
    assert texts(files[0], files[0]) == 2 * WORDS
    rows = list(from_files([str(file) for file in files]))
    assert [row.place for row in rows[3:6]] == [f"{files[0]}, line 4", f"{files[1]}, line 1", f"{files[1]}, line 2"]


def test_a_pattern_stands_for_its_files_in_order(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "folder.txt").mkdir()
    for name in ("b.txt", "a.txt", "c10.txt", "c9.txt", "x.csv", "deep/z.txt"):
        (tmp_path / name).write_text(f"{name}\n", encoding="utf-8")
    found = from_files([f"{tmp_path}/*.txt"])
    assert [Path(file).name for file in found.files or ()] == ["a.txt", "b.txt", "c10.txt", "c9.txt"]
    assert [row.text for row in found] == ["a.txt", "b.txt", "c10.txt", "c9.txt"]
    assert texts(f"{tmp_path}/**/[az].txt") == ["a.txt", "deep/z.txt"]
    assert refusal(f"{tmp_path}/*.jsonl") == "No file matches *.jsonl."


def test_a_name_that_looks_like_a_pattern_is_a_name_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "[a].txt").write_text("itself\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("other\n", encoding="utf-8")
    assert texts(tmp_path / "[a].txt") == ["itself"]


def test_every_file_is_looked_for_before_any_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(BertcliError, match=r"Cannot read .*gone\.txt: No such file"):
        from_files([str(tmp_path / "a.txt"), str(tmp_path / "gone.txt")])


def test_files_are_known_where_they_can_be_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n", encoding="utf-8")
    assert from_files([str(tmp_path / "a.txt")]).files == (str(tmp_path / "a.txt"),)
    assert from_files([str(tmp_path / "a.txt"), "-"]).files is None
    os.mkfifo(tmp_path / "pipe.txt")
    assert from_files([str(tmp_path / "pipe.txt")]).files is None


def test_the_share_that_has_been_read_grows_to_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(1000)), encoding="utf-8")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"".join(b'{"text": "%d"}\n' % i for i in range(100_000))))
    rows = from_files([str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl.gz")])
    shares = [rows.share() for _ in rows]
    known = [share for share in shares if share is not None]
    assert known == sorted(shares, key=lambda share: share or 0)
    assert 0 < known[0] < 0.01
    assert known[-1] == 1
    assert from_files(["-"]).share() is None


@pytest.mark.parametrize("count", [1, 7])
def test_groups_do_not_depend_on_how_the_texts_are_stored(count: int, tmp_path: Path) -> None:
    lines = [f"{i} " * (i % 40) for i in range(700)]
    files = []
    for i in range(count):
        files.append(tmp_path / f"{i}.txt.gz")
        part = lines[i * 700 // count : (i + 1) * 700 // count]
        files[-1].write_bytes(gzip.compress("".join(f"{line}\n" for line in part).encode()))
    (tmp_path / "all.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    expected = [[text.text for text in group] for group in from_files([str(tmp_path / "all.txt")]).grouped(50, 4)]
    found = [[text.text for text in group] for group in from_files([str(file) for file in files]).grouped(50, 4)]
    assert found == expected


def test_commands_take_several_files(made: Made, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps({"said": name}) + "\n", encoding="utf-8")
    last = tmp_path / "c.txt.gz"
    last.write_bytes(gzip.compress(b"c\n"))
    result = bertcli(
        "encode", "-m", made(), "-i", f"{tmp_path}/?.jsonl", "-i", last, "--column", "said", "--format", "jsonl"
    )
    assert [(record["index"], record["text"]) for record in result.records] == [
        (0, "a.jsonl"),
        (1, "b.jsonl"),
        (2, "c"),
    ]
    shorter = bertcli("encode", "-m", made(), "-i", f"{tmp_path}/?.json*", "--column", "said", "--format", "jsonl")
    assert len(shorter.records) == 2
    assert "No file matches" in bertcli("encode", "-m", made(), "-i", f"{tmp_path}/*.csv").error
    assert bertcli("encode", "-i", last, "--column", "said").status == 2


# --------------------------------------------------------------------------------------------------- ids, bad rows


@pytest.mark.parametrize(("ending", "kind"), [("jsonl", int), ("csv", str), ("tsv", str)])
def test_rows_may_have_an_id(ending: str, kind: type, tmp_path: Path) -> None:
    file = tmp_path / f"t.{ending}"
    file.write_text(CONTENT[ending], encoding="utf-8")
    assert [row.id for row in from_files([str(file)], id_column="id")] == [kind(i) for i in range(4)]


def test_an_id_is_a_text_or_a_whole_number(tmp_path: Path) -> None:
    values: tuple[Any, ...] = (1.5, True, None, [])
    for value in values:
        (tmp_path / "t.jsonl").write_text(json.dumps({"text": "a", "id": value}), encoding="utf-8")
        assert "which is not a text or whole number" in refusal(tmp_path / "t.jsonl", id_column="id")


def test_rows_may_have_a_label(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    values = ["good", 1, 0.5, True]
    file.write_text("".join(json.dumps({"text": "a", "is": value}) + "\n" for value in values), encoding="utf-8")
    assert [row.label for row in from_files([str(file)], label_column="is")] == ["good", "1", "0.5", "true"]
    file.write_text('{"text": "a", "is": null}', encoding="utf-8")
    assert "the field 'is' is null, which is not a text or number" in refusal(file, label_column="is")
    file.write_text('{"text": 5}', encoding="utf-8")
    assert "which is not a text." in refusal(file, label_column="text")


BAD = {
    "txt": (b"one\n\xff\nthree\n", ["one", None, "three"]),
    "jsonl": (b'{"text": "one"}\n{"text": 2}\n\xff\n{\n7\n{}\n{"text": "x"}\n', ["one", *[None] * 5, "x"]),
    "csv": (b'id,text\n1,one\n2\n3,"a" b\n4,\xff\n5,five\n', ["one", None, None, None, "five"]),
    "tsv": (b"id\ttext\n1\tone\n2\n3\t\xff\n4\tfour\n", ["one", None, None, "four"]),
}


@pytest.mark.parametrize("ending", BAD)
def test_bad_rows_keep_their_place_when_asked(ending: str, tmp_path: Path) -> None:
    data, expected = BAD[ending]
    file = tmp_path / f"t.{ending}"
    file.write_bytes(data)
    rows = list(from_files([str(file)], keep_going=True))
    assert [None if row.error else row.text for row in rows] == expected
    assert all(row.error is None or row.error.startswith(f"{row.place}: ") for row in rows)
    first = next(row.error for row in rows if row.error)
    assert refusal(file) == first.replace(str(tmp_path) + os.sep, "")


# ----------------------------------------------------------------------------------------------------------- Parquet


def parquet_file(folder: Path, columns: dict[str, Any], name: str = "t.parquet", **options: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")
    writer = pytest.importorskip("pyarrow.parquet")
    writer.write_table(arrow.table(columns), folder / name, **options)
    return folder / name


def test_parquet_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert refusal(tmp_path / "t.parquet") == "t.parquet: Parquet needs pyarrow: pip install 'bertcli[parquet]'."


def test_columns_of_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    for kind in (arrow.string(), arrow.large_string(), arrow.dictionary(arrow.int8(), arrow.string())):
        file = parquet_file(tmp_path, {"n": [1, 2, 3, 4], "text": arrow.array(WORDS).cast(kind), "b": ["x"] * 4})
        rows = list(from_files([str(file)], pair_column="b", id_column="n"))
        assert rows[3] == Text("four", "x", f"{file}, row 4", 4)
        assert [row.text for row in rows] == WORDS
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert texts(packed) == WORDS


def test_parquet_in_many_groups_is_read_in_order(tmp_path: Path) -> None:
    lines = [f"line {i}" for i in range(5000)]
    assert texts(parquet_file(tmp_path, {"text": lines}, row_group_size=700)) == lines
    assert texts(parquet_file(tmp_path, {"text": ["x"]}), column="text", pair="p") == ["x"]


def test_what_is_wrong_with_a_parquet_file(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, {"text": ["a", None, "c"], "n": [1, 2, 3], "a.b": ["x"] * 3})
    assert refusal(file) == "t.parquet, row 2: the field 'text' is null, which is not a text."
    assert [row.error is None for row in from_files([str(file)], keep_going=True)] == [True, False, True]
    assert "no column 'body'; columns are 'text', 'n', 'a.b'" in refusal(file, column="body")
    assert "the column 'n' is of type int64, which is not a text" in refusal(file, column="n")
    assert texts(file, column="a.b") == ["x"] * 3
    whole = file.read_bytes()
    for damaged in (b"", b"PAR1", whole[:-6], whole[:40] + bytes(20) + whole[60:]):
        file.write_bytes(damaged)
        assert refusal(file).startswith("t.parquet cannot be read as Parquet: ")


def test_a_text_in_parquet_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    broken = arrow.array([b"fine", b"\xff\xfe"], arrow.binary()).view(arrow.string())
    assert refusal(parquet_file(tmp_path, {"text": broken})).startswith(
        "t.parquet, row 2: the field 'text' is b'\\xff\\xfe'"
    )
