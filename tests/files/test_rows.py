"""Fields of JSON lines and of tables are found by name; a row that cannot be used is named, or kept in its place."""

import csv
import gzip
import io
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.json_files import write_json, write_json_lines
from helpers.reading import from_files, refusal, refusal_of, rows_of, texts_of
from helpers.terminal import bertcli, wrong_usage
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bertcli.errors import BertcliError
from bertcli.files.read import rows
from bertcli.files.read.inputs import rows_in
from bertcli.files.read.line_reader import LONGEST_LINE
from bertcli.files.read.row_columns import RowColumns

reuse = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
characters = st.characters(codec="utf-8")


def test_rows_of_json_lines(tmp_path: Path) -> None:
    data = '{"text": "a", "other": [1, NaN]}\r\n{"id": 7, "text": ""}\n{"text": "\\u2028\\n\\ud83d\\ude00"}'
    assert texts_of(tmp_path, "t.jsonl", data) == ["a", "", "\u2028\n😀"]
    found = rows_of(tmp_path, "t.jsonl", '{"a": "x", "b": "y"}\n', column="a", pair_column="b")
    assert [(text.text, text.pair) for text in found] == [("x", "y")]
    assert found[0].location is not None
    assert found[0].location.endswith("t.jsonl, line 1")


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
def test_rows_of_bad_json_are_named(line: str, message: str, tmp_path: Path) -> None:
    found = refusal_of(tmp_path, "t.jsonl", '{"text": "fine"}\n' + line + "\n")
    assert found.startswith("t.jsonl, line 2: ")
    assert message in found
    assert len(found) < 300


@given(values=st.lists(st.tuples(st.text(characters), st.text(characters)), max_size=8), tabs=st.booleans())
@reuse
def test_rows_written_by_csv_come_back(values: list[tuple[str, str]], tabs: bool, tmp_path: Path) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter="\t" if tabs else ",")
    writer.writerows([("first", "text"), *values])
    kept = [pair for pair in values if not tabs or "\n" not in "".join(pair)]
    if kept == values:
        found = rows_of(tmp_path, "t.tsv" if tabs else "t.csv", stream.getvalue(), pair_column="first")
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
def test_rows_separated_by_commas(data: str, expected: list[str], tmp_path: Path) -> None:
    assert texts_of(tmp_path, "t.csv", data) == expected


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
def test_rows_separated_by_tabs(line: str, expected: str, tmp_path: Path) -> None:
    assert texts_of(tmp_path, "t.tsv", "label\ttext\n" + line + "\n") == [expected]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a,b\n1,2\n", "t.csv, line 1: there is no field 'text'; fields are 'a', 'b' (choose one with --column)"),
        ("text,text\n1,2\n", "t.csv, line 1: there is more than one field 'text'"),
        ("id,text\n1,2\n3\n", "t.csv, line 3: 1 field where the header has 2"),
        ("id,text\n1,2,3\n", "t.csv, line 2: 3 fields where the header has 2"),
        ('id,text\n1,"a\nb"\n2\n', "t.csv, line 4: 1 field"),
        ('text\nfine\n"open\nand on\n', "t.csv, line 3: not fields separated by ','"),
        ('text\n"a" b\n', "t.csv, line 2: not fields separated by ','"),
    ],
)
def test_rows_that_do_not_fit_the_header_are_named(data: str, message: str, tmp_path: Path) -> None:
    assert refusal_of(tmp_path, "t.csv", data).startswith(message)


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t")])
def test_rows_are_no_empty_lines_where_they_have_several_fields(ending: str, mark: str, tmp_path: Path) -> None:
    assert texts_of(tmp_path, f"t.{ending}", f"text{mark}id\na{mark}1\n\n{mark}2\n\n") == ["a", ""]
    assert texts_of(tmp_path, f"t.{ending}", f'text{mark}id\n""\n') == [""]
    assert texts_of(tmp_path, f"t.{ending}", "text\na\n\nb\n") == ["a", "", "b"]


@pytest.mark.large
def test_rows_whose_quotation_mark_never_closes_do_not_fill_the_memory(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(
        gzip.compress(b'text\nfine\n"open\n' + (b"x" * 99 + b"\n") * (LONGEST_LINE // 90), 1)
    )
    assert refusal(tmp_path / "t.csv.gz").startswith("t.csv.gz, line 3: a quotation mark opens here and does not close")


def test_rows_whose_quotation_mark_never_closes_end_among_empty_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LONGEST_LINE", 1000)
    message = refusal_of(tmp_path, "t.csv", 'text\n"open\n' + "\n" * 2000 + '"\n')
    assert message.startswith("t.csv, line 2: a quotation mark opens here and does not close")


def test_rows_have_a_text_or_a_whole_number_as_id(tmp_path: Path) -> None:
    values: tuple[Any, ...] = (1.5, True, None, [])
    for value in values:
        write_json(tmp_path / "t.jsonl", {"text": "a", "id": value})
        assert "which is not a text or whole number" in refusal(tmp_path / "t.jsonl", id_column="id")


def test_rows_may_be_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    values: list[Any] = ["good", 1, None, ["a", 2], {"b": True}]
    write_json_lines(file, ({"is": value} for value in values))
    assert [row.label for row in rows_in([str(file)], RowColumns(whole=True))] == [{"is": value} for value in values]
    file = tmp_path / "t.csv"
    file.write_text("a,b\n1,2\n3\n", encoding="utf-8")
    first, second = rows_in([str(file)], RowColumns(whole=True), keep_going=True)
    assert (first.label, second.label) == ({"a": "1", "b": "2"}, None)
    assert second.error == f"{file}, line 3: 1 field where the header has 2."


@pytest.mark.parametrize("options", [{}, {"id_column": "other"}])
def test_rows_may_hold_a_number_beyond_every_float(options: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": ' + "9" * 400 + ', "other": 1}', encoding="utf-8")
    with pytest.raises(BertcliError, match=r"line 1: the field 'text' is 9999.*, which is not a text"):
        list(from_files([str(tmp_path / "t.jsonl")], None, None, None, **options))  # type: ignore[arg-type]
    (tmp_path / "t.jsonl").write_text('{"text": "a", "other": ' + "9" * 400 + "}", encoding="utf-8")
    (row,) = from_files([str(tmp_path / "t.jsonl")], **options)  # type: ignore[arg-type]
    assert row.id in (None, int("9" * 400))


BAD = {
    "txt": (b"one\n\xff\nthree\n", ["one", None, "three"]),
    "jsonl": (b'{"text": "one"}\n{"text": 2}\n\xff\n{\n7\n{}\n{"text": "x"}\n', ["one", *[None] * 5, "x"]),
    "csv": (b'id,text\n1,one\n2\n3,"a" b\n4,\xff\n5,five\n', ["one", None, None, None, "five"]),
    "tsv": (b"id\ttext\n1\tone\n2\n3\t\xff\n4\tfour\n", ["one", None, None, "four"]),
}


@pytest.mark.parametrize("ending", BAD)
def test_rows_that_are_bad_keep_their_place_when_asked(ending: str, tmp_path: Path) -> None:
    data, expected = BAD[ending]
    file = tmp_path / f"t.{ending}"
    file.write_bytes(data)
    rows = list(from_files([str(file)], keep_going=True))
    assert [None if row.error else row.text for row in rows] == expected
    assert all(row.error is None or row.error.startswith(f"{row.location}: ") for row in rows)
    first = next(row.error for row in rows if row.error)
    assert refusal(file) == first.replace(str(tmp_path) + os.sep, "")


# ------------------------------------------------------------------------------------------------------------ sequences


def test_rows_of_fasta_are_sequences_with_ids(tmp_path: Path) -> None:
    content = b">sp|P1 first protein\r\nMKT\r\nAYI \r\n\r\n>P2\n>\nGG\n>P3\nAC"
    for name in ("p.fasta", "p.fa", "p.FA", "p.fa.gz"):
        file = tmp_path / name
        file.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        found = list(from_files([str(file)]))
        assert [(row.text, row.id) for row in found] == [("MKTAYI", "sp|P1"), ("", "P2"), ("GG", ""), ("AC", "P3")]
        assert found[2].location == f"{file}, line 6"
    file.write_bytes(b"")
    assert next(iter(from_files([str(tmp_path / "p.fasta")], pair="x"))).pair == "x"


def test_rows_of_fasta_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.files.read.rows.LONGEST_LINE", 9)
    file = tmp_path / "p.fasta"
    file.write_bytes(b"\nMK\n>a\nM\xff\nK\n>b\nMKMKMK\nMKMKMK\nM\n>c\nMK\n")
    found = list(from_files([str(file)], keep_going=True))
    assert [row.error for row in found] == [
        f"{file}, line 2: a header (>) must come before a sequence.",
        f"{file}, line 4: not UTF-8 (byte 2 is 0xff): save the file as UTF-8.",
        f"{file}, line 6: a sequence of more than 9 letters.",
        None,
    ]
    assert [(row.text, row.id) for row in found[1:]] == [("", "a"), ("", "b"), ("MK", "c")]


def test_rows_of_json_with_a_key_twice_cannot_be_used(tmp_path: Path) -> None:
    lines = '{"text": "a", "text": "b"}\n{"text": "c", "more": {"x": 1, "x": 2}}\n{"text": "d", "more": {"text": 1}}\n'
    message = "t.jsonl, line 1: not usable JSON (the key 'text' occurs twice)."
    assert refusal_of(tmp_path, "t.jsonl", lines) == message
    rows = rows_of(tmp_path, "t.jsonl", lines, keep_going=True)
    assert [row.text for row in rows] == ["", "", "d"]
    assert "the key 'x' occurs twice" in (rows[1].error or "")


# ---------------------------------------------------------------------------- files without a header, other delimiters


def test_rows_of_a_file_without_a_header_are_called_by_numbers(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("5,hot tea\n1,a cat\n", encoding="utf-8")
    arguments: list[str | Path] = ["encode", "-m", made(), "-i", file, "--format", "jsonl"]
    found = bertcli(*arguments, "--no-header", "--column", "2").records
    assert [record["text"] for record in found] == ["hot tea", "a cat"]
    assert [record["text"] for record in bertcli(*arguments, "--no-header").records] == ["5", "1"]
    assert "there is no field '3'; fields are '1', '2'" in bertcli(*arguments, "--no-header", "--column", "3").error
    error = bertcli(*arguments).error
    assert error.endswith("fields are '5', 'hot tea' (choose one with --column). "
        "If this row is data: --no-header, and --column 2 for the second column.")  # fmt: skip


def test_rows_of_a_file_with_another_delimiter(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('id;text\n1;"hot; tea"\n2;a cat\n', encoding="utf-8")
    arguments: list[str | Path] = ["encode", "-m", made(), "-i", file, "--format", "jsonl"]
    for option in ([], ["--delimiter", ";"]):
        found = bertcli(*arguments, *option)
        assert [one["text"] for one in found.records] == ["hot; tea", "a cat"]
        assert (f"Note: {file}: its columns are separated by ';'." in found.err) == (not option)
    file.write_text("id;Body\n1;hot tea\n", encoding="utf-8")
    assert "there is no field 'text'; fields are 'id', 'Body' (choose one with --column)" in bertcli(*arguments).error
    assert bertcli(*arguments, "--column", "id;Body").status == 0, "a name that holds it is the column's"
    file.write_text("id\ttext\n1\thot tea\n", encoding="utf-8")
    assert "its columns are separated by a tab." in bertcli(*arguments).err
    assert [one["text"] for one in bertcli(*arguments, "--delimiter", "tab").records] == ["hot tea"]
    assert "give one character" in bertcli(*arguments, "--delimiter", ";;").err
    file = file.rename(tmp_path / "t.tsv")
    file.write_text("id|text\n1|hot tea\n", encoding="utf-8")
    arguments[4] = file
    assert [one["text"] for one in bertcli(*arguments, "--delimiter", "|").records] == ["hot tea"]
    for content, said in (
        ("id|text\n1|hot tea\n", "its columns are separated by '|'."),
        ("id,text\n1,hot tea\n", "its columns are separated by ','."),
        ('{"text": "hot tea"}\n', "holds JSON lines, and is read so."),
    ):
        for ending in ("tsv", "csv"):
            arguments[4] = shown = tmp_path / f"shown.{ending}"
            shown.write_text(content, encoding="utf-8")
            found = bertcli(*arguments)
            assert [one["text"] for one in found.records] == ["hot tea"], found.err
            assert (said in found.err) == ((content[2], ending) != (",", "csv")), (content, ending)


def test_rows_have_no_columns_in_arguments_and_lines(made: Made, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("tea\n")
    for texts in (["tea"], ["-i", str(tmp_path / "t.txt")]):
        for option in (["--no-header"], ["--delimiter", ";"]):
            wrong_usage("encode", "-m", made(), *texts, *option, why="give a .csv or .tsv file")


def test_rows_without_a_header_are_suggested_only_where_no_name_was_given(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("ID,Review Text\n5,hot tea\n", encoding="utf-8")
    arguments: list[str | Path] = ["encode", "-m", made(), "-i", file]
    assert "--no-header" in bertcli(*arguments).error
    assert "--no-header" in bertcli(*arguments, "--column", "2").error
    # Not where a command has no such option.
    for command in ("tokenize", "similarity"):
        assert bertcli(command, "-m", made(), "-i", file).error.endswith(
            "(choose one with --column). If this row is data: write a line of names above it."
        )
    slip = bertcli(*arguments, "--column", "review text").error
    assert slip.endswith("there is no field 'review text'; fields are 'ID', 'Review Text' (choose one with --column).")


def test_rows_with_too_many_fields_say_what_to_do(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("id,text\n1,hot, tea\n", encoding="utf-8")
    assert "put quotes around a text that holds the delimiter" in bertcli("tokenize", "-m", made(), "-i", file).error
    file.write_text("text,text\n1,hot\n", encoding="utf-8")
    error = bertcli("tokenize", "-m", made(), "-i", file).error
    assert error.endswith("there is more than one field 'text': rename one of them.")


def test_wide_rows_take_no_quadratic_time(tmp_path: Path) -> None:
    """60,000 names, of which the last stands twice, were compared with one another."""
    names = [f"n{i}" for i in range(60_000)]
    (tmp_path / "a.jsonl").write_text(json.dumps(dict.fromkeys(names, 1))[:-1] + ', "n59999": 2}\n')
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(names) + "\n")
    begun = time.process_time()
    (row,) = rows_in([str(tmp_path / "a.jsonl")], RowColumns(), keep_going=True)
    assert "the key 'n59999' occurs twice" in str(row.error)
    (row,) = rows_in([str(tmp_path / "a.csv")], RowColumns(whole=True), keep_going=True)
    assert row.label["n59999"] == "n59999"
    assert time.process_time() - begun < 5
