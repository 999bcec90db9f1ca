"""Records: the same in every form, on standard output or in a file; nothing is printed or left after an error."""

import csv
from pathlib import Path
from typing import Any

import pytest

from bertcli.errors import BertcliError
from bertcli.files.write.record_writer import TableForm
from bertcli.files.write.resumable_output import ResumableOutput
from bertcli.report.tables import Table
from bertcli.report.terminal import Column, as_json


def table() -> Table:
    return Table((Column("text"),), lambda record: [(record["text"],)])


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


def test_records_in_a_csv_file_keep_returns_in_their_cells(tmp_path: Path) -> None:
    file, texts = tmp_path / "v.csv", ["a\rb", "\r", "a\r\nb", "\n", "=1"]
    save_rows(file, table(), False, [{"text": text} for text in texts])
    assert [row["text"] for row in flat(file)] == texts
    assert file.read_bytes().startswith(b'text,error\n"a\rb",\n')


def test_records_hold_no_number_that_json_lacks() -> None:
    for number in (float("nan"), float("inf")):
        with pytest.raises(BertcliError, match="the weights are damaged"):
            as_json({"score": number})
    assert as_json({"label": "\ud800"}) == b'{"label": "\\ud800"}'
