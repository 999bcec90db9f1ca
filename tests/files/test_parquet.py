"""Parquet: the texts of a column, in order, or one line that says what is wrong with the file."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from helpers.reading import from_files, refusal, texts

from bertcli.files.read.line_reader import LONGEST_LINE
from bertcli.files.texts import Text

WORDS = ["one", "", "dr–é 😀", "four"]


def parquet_file(folder: Path, columns: dict[str, Any], name: str = "t.parquet", **options: Any) -> Path:
    arrow = pytest.importorskip("pyarrow")
    writer = pytest.importorskip("pyarrow.parquet")
    writer.write_table(arrow.table(columns), folder / name, **options)
    return folder / name


def test_parquet_needs_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert refusal(tmp_path / "t.parquet") == "t.parquet: Parquet needs pyarrow: pip install 'bertcli[parquet]'."


def test_parquet_columns_of_any_kind_of_string(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    for kind in (arrow.string(), arrow.large_string(), arrow.dictionary(arrow.int8(), arrow.string())):
        file = parquet_file(tmp_path, {"n": [1, 2, 3, 4], "text": arrow.array(WORDS).cast(kind), "b": ["x"] * 4})
        rows = list(from_files([str(file)], pair_column="b", id_column="n"))
        assert rows[3] == Text("four", "x", f"{file}, row 4", 4)
        assert [row.text for row in rows] == WORDS
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert "(perhaps with .gz) or .parquet;" in refusal(packed)


def test_parquet_in_many_groups_is_read_in_order(tmp_path: Path) -> None:
    lines = [f"line {i}" for i in range(5000)]
    assert texts(parquet_file(tmp_path, {"text": lines}, row_group_size=700)) == lines
    assert texts(parquet_file(tmp_path, {"text": ["x"]}), column="text", pair="p") == ["x"]


def test_parquet_that_is_damaged_or_has_no_texts_is_refused(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, {"text": ["a", None, "c"], "n": [1, 2, 3], "a.b": ["x"] * 3})
    assert refusal(file) == "t.parquet, row 2: the field 'text' is null, which is not a text."
    assert [row.error is None for row in from_files([str(file)], keep_going=True)] == [True, False, True]
    assert "no field 'body'; fields are 'text', 'n', 'a.b'" in refusal(file, column="body")
    assert "the column 'n' is of type int64, which is not a text" in refusal(file, column="n")
    assert texts(file, column="a.b") == ["x"] * 3
    whole = file.read_bytes()
    for damaged in (b"", b"PAR1", whole[:-6], whole[:40] + bytes(20) + whole[60:]):
        file.write_bytes(damaged)
        assert refusal(file).startswith("t.parquet cannot be read as Parquet: ")


def test_parquet_text_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    broken = arrow.array([b"fine", b"\xff\xfe"], arrow.binary()).view(arrow.string())
    assert refusal(parquet_file(tmp_path, {"text": broken})).startswith(
        "t.parquet, row 2: the field 'text' is b'\\xff\\xfe'"
    )


def test_parquet_text_that_is_referred_to_often_is_held_once(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    long = "x" * 1_000_000
    often = arrow.DictionaryArray.from_arrays(arrow.array([0] * 5000, arrow.int32()), arrow.array([long]))
    file = parquet_file(tmp_path, {"text": often}, compression="zstd")
    assert file.stat().st_size < 2000
    rows = from_files([str(file)])
    before = arrow.total_allocated_bytes()
    for number, row in enumerate(rows):
        assert row.text == long
        if number == 50:
            assert arrow.total_allocated_bytes() - before < 20 * len(long)
            break


def test_parquet_text_that_shares_its_beginning_is_read_a_few_at_a_time(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    long = "x" * 1_000_000
    texts_in = [f"{long}{i}" for i in range(300)]
    how: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
    file = parquet_file(tmp_path, {"text": texts_in, "b": ["x"] * 300}, data_page_size=1 << 30, **how)
    assert file.stat().st_size < 2_000_000
    before = arrow.total_allocated_bytes()
    for number, row in enumerate(from_files([str(file)], pair_column="b")):
        assert (row.text, row.pair) == (texts_in[number], "x")
        assert arrow.total_allocated_bytes() - before < 150 * len(long)
    assert number == 299


def test_parquet_text_beyond_every_limit_is_named(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, {"text": ["a", "x" * (LONGEST_LINE + 1), "b"]})
    why = f"{LONGEST_LINE + 1:,} letters in a field, more than the {LONGEST_LINE:,}"
    assert refusal(file).startswith(f"t.parquet, row 2: {why}")
    assert [row.error is None for row in from_files([str(file)], keep_going=True)] == [True, False, True]
