"""Records: the same in every form, on standard output or in a file; nothing is printed or left after an error."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertcli.errors import BertcliError
from bertcli.files.write.record_writer import TableForm, write_records
from bertcli.files.write.resumable_output import ResumableOutput
from bertcli.report.tables import OWN_ID, Table
from bertcli.report.terminal import Column, PrintFormat, as_json

RECORDS: list[dict[str, Any]] = [{"text": "é\n"}, {"text": "b", "score": 1e-7}, {"text": None}]


def table() -> Table:
    return Table((Column("text"),), lambda record: [(record["text"],)])


def write(format: PrintFormat, file: Path | None, records: list[dict[str, Any]]) -> None:
    write_records(records, format, None if file is None else str(file), table())


@pytest.mark.parametrize("count", [0, 1, 3])
def test_records_are_the_same_in_every_form(count: int, tmp_path: Path, capsysbinary: Any) -> None:
    for format in ("json", "jsonl"):
        write(format, None, RECORDS[:count])
        printed = capsysbinary.readouterr().out
        write("table", tmp_path / f"v.{format}", RECORDS[:count])
        assert (tmp_path / f"v.{format}").read_bytes() == printed
        assert capsysbinary.readouterr().out == b""
        found = json.loads(printed) if format == "json" else [json.loads(line) for line in printed.splitlines()]
        assert found == RECORDS[:count]


def save_rows(file: Path, table: Table, own_ids: bool, *blocks: list[dict[str, Any]]) -> None:
    """Write records to a .csv or .parquet file, some at a time."""
    form = TableForm(str(file), table, own_ids, errors=True)
    with ResumableOutput(str(file)) as segments:
        for block in blocks:
            segments.add(form.arrays(block), {})
        with segments.result() as stream:
            form.write(stream, segments)


def flat(file: Path) -> list[dict[str, Any]]:
    """The rows of a .csv or .parquet file; in .csv all values are texts, and nothing is empty."""
    if file.suffix == ".csv":
        with file.open(encoding="utf-8", newline="") as lines:
            return [{name: value or None for name, value in row.items()} for row in csv.DictReader(lines)]
    rows = pytest.importorskip("pyarrow.parquet").read_table(file).to_pylist()
    return [{name: None if value in (None, "") else str(value) for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_records_in_a_flat_file_are_the_rows_of_their_table(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"v.{ending}"
    columns = (Column("index"), OWN_ID, Column("text pair"), Column("score"))
    table = Table(
        columns, lambda record: [(record["index"], record["id"], record["pair"], score) for score in record["scores"]]
    )
    records: list[dict[str, Any]] = [
        {"index": 0, "id": 7, "pair": 'a "b",\nc', "scores": [0.1, 1 / 3]},
        {"index": 1, "id": "x", "text_pair": "d", "error": "no"},
        {"index": 2, "id": 1 << 70, "pair": "", "scores": []},
        {"index": 3, "id": None, "pair": None, "scores": [1e-9]},
    ]
    save_rows(file, table, True, records[:1], records[1:])
    found = flat(file)
    assert [list(row) for row in found] == [["index", "id", "text_pair", "score", "error"]] * 4
    assert [tuple(row.values()) for row in found] == [
        ("0", "7", 'a "b",\nc', "0.1", None),
        ("0", "7", 'a "b",\nc', str(1 / 3), None),
        ("1", "x", "d", None, "no"),
        ("3", None, None, "1e-09", None),
    ]
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("rows", [[], [{"index": 3, "error": "no"}], [{"index": 3, "score": 0.5}]])
def test_records_in_a_parquet_file_have_numbers_of_the_same_types(rows: list[Any], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = (Column("index", number=int), Column("text"), Column("score", number=float))
    table = Table(columns, lambda record: [(record["index"], None, record["score"])])
    save_rows(tmp_path / "v.parquet", table, False, rows)
    schema = parquet.read_schema(tmp_path / "v.parquet")
    assert [str(kind) for kind in schema.types] == ["int64", "string", "double", "string"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_records_in_a_flat_file_may_have_half_a_surrogate_pair(ending: str, tmp_path: Path) -> None:
    save_rows(tmp_path / f"v.{ending}", table(), False, [{"text": "good\ud800"}, {"text": "\udfff"}])
    assert flat(tmp_path / f"v.{ending}") == [
        {"text": "good\\ud800", "error": None},
        {"text": "\\udfff", "error": None},
    ]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_records_in_a_flat_file_may_be_none(ending: str, tmp_path: Path) -> None:
    save_rows(tmp_path / f"v.{ending}", table(), False)
    assert flat(tmp_path / f"v.{ending}") == []


def test_records_in_a_csv_file_keep_returns_in_their_cells(tmp_path: Path) -> None:
    file, texts = tmp_path / "v.csv", ["a\rb", "\r", "a\r\nb", "\n", "=1"]
    save_rows(file, table(), False, [{"text": text} for text in texts])
    assert [row["text"] for row in flat(file)] == texts
    assert file.read_bytes().startswith(b'text,error\n"a\rb",\n')


@pytest.mark.parametrize("format", ["json", "table"])
def test_records_before_an_error_are_not_shown(format: PrintFormat, tmp_path: Path, capsysbinary: Any) -> None:
    for file in (None, tmp_path / "v.json", tmp_path / "v.jsonl"):
        with pytest.raises(ZeroDivisionError):
            write_records(_failing(), format, None if file is None else str(file), table())
        assert capsysbinary.readouterr().out == b""
        assert list(tmp_path.iterdir()) == []


def _failing() -> Iterator[dict[str, Any]]:
    yield RECORDS[0]
    raise ZeroDivisionError


def test_records_of_lines_come_at_once(capsysbinary: Any) -> None:
    def records() -> Iterator[dict[str, Any]]:
        yield RECORDS[0]
        assert capsysbinary.readouterr().out == '{"text": "é\\n"}\n'.encode()

    write_records(records(), "jsonl", None, table())


def test_records_hold_no_number_that_json_lacks() -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(BertcliError, match="the weights are damaged"):
            as_json({"score": number})
    assert as_json({"label": "\ud800"}) == b'{"label": "\\ud800"}'
