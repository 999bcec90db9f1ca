"""Parquet: the texts of a column, in order, or one line that says what is wrong with the file."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from reading import refusal, texts

from bertcli.errors import BertcliError
from bertcli.files.inputs import from_files
from bertcli.files.lines import LONGEST
from bertcli.files.parquet import _pages
from bertcli.files.search import open_vectors
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
    assert texts(packed) == WORDS


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


@pytest.mark.parametrize(
    ("header", "what"),
    [
        (b"\x15\x00\x15\x02\x15\x02\x16\x02\x15\x02\x00", "a page without a size"),
        (b"\x25\x01\x15\x02\x2c\x15\x02\x00\x00", "a page without a size"),
        (b"\x25\x02\x16\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "a page without a size"),
        (b"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a page that the file does not hold"),
        (b"\x19\x00", "a page with a field of type 9"),
        (b"\x1c" * 20, "a page with a field of type 12"),
    ],
)
def test_parquet_page_that_no_reader_understands_is_refused(header: bytes, what: str, tmp_path: Path) -> None:
    file = parquet_file(tmp_path, {"text": ["a" * 50, "b" * 50]}, use_dictionary=False)
    content = file.read_bytes()
    file.write_bytes(content[:4] + header + content[4 + len(header) :])
    assert refusal(file) == f"t.parquet cannot be read as Parquet: {what}."


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


def test_parquet_list_of_numbers_that_are_not_there_is_refused(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    count = 20_000_000
    lists = arrow.ListArray.from_arrays(arrow.array([0, count], arrow.int32()), arrow.nulls(count, arrow.float32()))
    file = parquet_file(tmp_path, {"embedding": lists.cast(arrow.list_(arrow.float32()))}, compression="zstd")
    assert file.stat().st_size < 2000
    with pytest.raises(BertcliError, match=r"unpacks to [0-9,]+ bytes from [0-9,]+, which is not data but a trap"):
        open_vectors(str(file))


def test_parquet_text_beyond_every_limit_is_named(tmp_path: Path) -> None:
    file = parquet_file(tmp_path, {"text": ["a", "x" * (LONGEST + 1), "b"]})
    assert refusal(file).startswith(f"t.parquet, row 2: {LONGEST + 1:,} letters in a field, more than the {LONGEST:,}")
    assert [row.error is None for row in from_files([str(file)], keep_going=True)] == [True, False, True]


@pytest.mark.parametrize("name", ["text", "embedding"])
def test_parquet_that_unpacks_to_what_no_data_do_is_refused(name: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    values = arrow.array([""] * 20_000_000) if name == "text" else arrow.array([[0.0] * 1000] * 10_000)
    plain: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": False,
        "data_page_size": 1 << 30,
        "row_group_size": 1 << 30,
    }
    file = parquet_file(tmp_path, {name: values}, **plain)
    for size in (None, 1000):
        if size is not None:
            _state_another_size(file, size)
        with pytest.raises(BertcliError, match=r"unpacks to [0-9,]+ bytes from [0-9,]+, which is not data but a trap"):
            next(iter(from_files([str(file)]))) if name == "text" else open_vectors(str(file))


def test_parquet_page_whose_data_is_described_by_a_number_is_refused() -> None:
    header = b"\x25\x10\x15\x10\x25\x02\x00"  # the sizes (fields 2 and 3) and a number as field 5, a structure
    column = SimpleNamespace(data_page_offset=4, has_dictionary_page=False, total_compressed_size=len(header))
    column.dictionary_page_offset = None
    with pytest.raises(ValueError, match="a page without a size"):
        list(_pages(io.BytesIO(b"PAR1" + header), column))


def _state_another_size(file: Path, size: int) -> None:
    """Make the file say of every column that it unpacks to so many bytes, which is not true."""
    metadata = pytest.importorskip("pyarrow.parquet").read_metadata(file)
    content = file.read_bytes()
    begin = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    footer = content[begin:]
    for group in range(metadata.num_row_groups):
        stated = _varint(2 * metadata.row_group(group).column(0).total_uncompressed_size)
        footer = footer.replace(stated, _varint(2 * size, len(stated)))
    file.write_bytes(content[:begin] + footer)
    found = pytest.importorskip("pyarrow.parquet").read_metadata(file)
    assert found.row_group(0).column(0).total_uncompressed_size == size


def _varint(number: int, length: int = 0) -> bytes:
    """A whole number as Thrift writes it, filled up to a length."""
    digits = [number >> 7 * i & 0x7F for i in range(max(length, -(-number.bit_length() // 7)))]
    return bytes([*(digit | 0x80 for digit in digits[:-1]), digits[-1]])
