"""--id-column, --keep and --limit: what else a row of the input has comes to the output, in every command and form."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import write_json_lines
from helpers.terminal import bertcli
from reference import task_cases as cases

TAGGED = "The king of France visited Paris and the queen sold tea"
ROWS = [
    {"text": TAGGED, "context": "a cat sat", "number": "n7", "place": "Ulm", "tags": ["x", {"y": 1}]},
    {"text": "hot tea", "context": "the queen drank tea", "number": "n8", "place": "Ü", "tags": None},
    {"text": "the river", "context": "a dog walks", "number": "n9", "place": "", "tags": True},
]
# By command: its model, and further words.
COMMANDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "encode": ({"head": "model", "seed": 3}, ()),
    "classify": ({"head": "classifier", "seed": 2}, ()),
    "score": ({"head": "pretraining", "seed": 7}, ()),
    "tag": (cases.TAGGER, ()),
    "answer": (cases.READER, ("--column", "text", "--context-column", "context")),
    "rank": (cases.RANKER, ("tea",)),
    "keywords": ({"head": "model", "seed": 3}, ()),
}
KEPT = ("--id-column", "number", "--keep", "place,tags")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    write_json_lines(file, ROWS)
    return file


def in_table(text: str, delimiter: str) -> list[dict[str, str]]:
    """The rows of separated values."""
    return [*csv.DictReader(io.StringIO(text), delimiter=delimiter)]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_columns_of_a_table_travel(command: str, made: Made, table: Path, tmp_path: Path) -> None:
    keywords, words = COMMANDS[command]
    arguments: list[str | Path] = [command, "-m", made(**keywords), *words, "-i", table, *KEPT]
    records = bertcli(*arguments, "--format", "jsonl").records
    assert sorted((record["id"], record["place"]) for record in records) == [("n7", "Ulm"), ("n8", "Ü"), ("n9", "")]
    by_id = {record["id"]: record["tags"] for record in records}
    assert by_id == {"n7": ["x", {"y": 1}], "n8": None, "n9": True}
    printed = in_table(bertcli(*arguments, "--format", "csv").out, ",")
    of_rows = {("n7", "Ulm", '["x", {"y": 1}]'), ("n8", "Ü", ""), ("n9", "", "true")}
    for ending, delimiter in ((".csv", ","), (".tsv", "\t")):
        file = tmp_path / f"out{ending}"
        assert bertcli(*arguments, "-o", file).status == 0
        rows = in_table(file.read_text(encoding="utf-8"), delimiter)
        # A text without entities or keywords has no row.
        assert of_rows >= {(row["id"], row["place"], row["tags"]) for row in rows} > set()
        assert rows == printed
        assert [*rows[0]].index("id") == 1


@pytest.mark.parametrize("command", ["encode", "tag"])
def test_the_columns_of_a_table_travel_to_parquet(command: str, made: Made, table: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    keywords, words = COMMANDS[command]
    file = tmp_path / "out.parquet"
    assert bertcli(command, "-m", made(**keywords), *words, "-i", table, *KEPT, "-o", file).status == 0
    rows = parquet.read_table(file).to_pylist()
    assert {"n7": "Ulm"}.items() <= {row["id"]: row["place"] for row in rows}.items()
    assert {row["tags"] for row in rows if row["id"] == "n7"} == {'["x", {"y": 1}]'}


def test_arrays_hold_ids_and_no_columns(made: Made, table: Path, tmp_path: Path) -> None:
    arguments: list[str | Path] = ["encode", "-m", made(head="model", seed=3), "-i", table]
    assert bertcli(*arguments, "--id-column", "number", "-o", tmp_path / "v.npz").status == 0
    with np.load(tmp_path / "v.npz") as arrays:
        assert [*arrays["ids"]] == ["n7", "n8", "n9"]
        assert len(arrays["embeddings"]) == 3
    assert bertcli(*arguments, "--id-column", "number", "-o", tmp_path / "v.safetensors").status == 0
    head = (tmp_path / "v.safetensors").read_bytes()[8:].split(b"\n")[0]
    ids = json.JSONDecoder().raw_decode(head.decode("utf-8", "ignore"))[0]["__metadata__"]["ids"]
    assert json.loads(ids) == ["n7", "n8", "n9"]
    for option, said in (("--id-column", "cannot hold ids"), ("--keep", "has no columns")):
        refused = bertcli(*arguments, option, "number", "-o", tmp_path / "v.npy")
        assert (refused.status, said in refused.err) == (2, True)


def test_all_other_fields_are_kept_but_those_that_results_have(made: Made, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,score,note\n7,hot tea,9,warm\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("text,other\na cat,x\n", encoding="utf-8")
    arguments: list[str | Path] = ["classify", "-m", made(head="classifier", seed=2), "--top-k", "1"]
    files: list[str | Path] = ["-i", tmp_path / "a.csv", "-i", tmp_path / "b.csv"]
    told = bertcli(*arguments, *files, "--keep", "all", "--format", "csv")
    assert "Note: the field 'score' is not kept: the results have one of that name." in told.err
    rows = in_table(told.out, ",")
    assert [(row["id"], row["note"], row["other"]) for row in rows] == [("7", "warm", ""), ("", "", "x")]
    refused = bertcli(*arguments, *files, "--keep", "score")
    assert (refused.status, "the results have a field 'score' of their own" in " ".join(refused.err.split())) == (
        2,
        True,
    )
    missing = bertcli(*arguments, "-i", tmp_path / "b.csv", "--keep", "nothing").error
    assert "there is no field 'nothing'; fields are 'text', 'other' (choose one with --keep)." in missing
    piped = bertcli(*arguments, "--keep", "note", "--format", "jsonl", stdin="text,note\nhot tea,warm\n").records
    assert piped[0]["note"] == "warm"
    assert "a pipe is read only once" in bertcli(*arguments, "--keep", "all", stdin="text\na\n").err


def test_a_row_that_cannot_be_used_keeps_its_columns(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"text": 7, "number": "n1", "place": "Ulm"}\n{"text": "tea", "number": "n2", "place": "x"}\n')
    arguments: list[str | Path] = ["tag", "-m", made(**cases.TAGGER), "-i", file, "--id-column", "number"]
    records = bertcli(*arguments, "--keep", "place", "--keep-going", "--format", "jsonl").records
    assert [(record["id"], record["place"]) for record in records] == [("n1", "Ulm"), ("n2", "x")]
    assert "error" in records[0]


def test_the_first_texts_alone_are_read_and_it_is_said_of_how_many(made: Made, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one tea\ntwo\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "three"}\n{"wrong": 1}\nno JSON\n', encoding="utf-8")
    arguments: list[str | Path] = ["encode", "-m", made(head="model", seed=3), "--format", "jsonl"]
    files: list[str | Path] = ["-i", tmp_path / "a.txt", "-i", tmp_path / "b.jsonl"]
    for words in (files, [*files, "--keep-going"]):
        told = bertcli(*arguments, *words, "--limit", "3")
        assert [record["text"] for record in told.records] == ["one tea", "two", "three"]
        assert told.err.count("Note: the first 3 of 5 texts.") == 1
    assert "b.jsonl, line 2: there is no field 'text'" in bertcli(*arguments, *files, "--limit", "4").error
    whole = bertcli(*arguments, "-i", tmp_path / "a.txt", "--limit", "2")
    assert (len(whole.records), "the first" in whole.err) == (2, False)
    assert len(bertcli(*arguments, "--limit", "1", stdin="a\nb\n").records) == 1
    assert len(bertcli(*arguments, "hot", "tea", "--limit", "1").records) == 1
    assert bertcli(*arguments, *files, "--limit", "0").status == 2


def test_a_table_that_is_written_again_is_so_as_a_whole(made: Made, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(f"text,place\n{TAGGED},Ulm\nhot tea,x\n", encoding="utf-8")
    arguments: list[str | Path] = ["tag", "-m", made(**cases.TAGGER), "-i", source, "--redact"]
    refused = bertcli(*arguments, "--limit", "1", "-o", tmp_path / "out.csv")
    assert (refused.status, "a file is written again as a whole" in refused.err) == (2, True)
    assert not (tmp_path / "out.csv").exists()
    assert bertcli(*arguments, "--keep", "place", "-o", tmp_path / "out.csv").status == 0
    assert [row["place"] for row in in_table((tmp_path / "out.csv").read_text(encoding="utf-8"), ",")] == ["Ulm", "x"]


@pytest.mark.parametrize("command", ["classify", "fill-mask", "similarity", "tokenize", "explain", "lens", "heads"])
def test_every_command_that_reads_many_texts_takes_a_limit(command: str, made: Made, tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_text("hot [MASK]\na [MASK] sat\nthe [MASK]\n", encoding="utf-8")
    heads = {"classify": "classifier", "similarity": "model", "tokenize": "model", "explain": "classifier"}
    model = made(head=heads.get(command, "pretraining"), seed=2)
    told = bertcli(command, "-m", model, "-i", file, "--limit", "2", "--format", "json")
    if command == "heads":
        assert told.out == bertcli(command, "-m", model, "hot [MASK]", "a [MASK] sat", "--format", "json").out
    else:
        assert len(told.json) == 2
    assert "Note: the first 2 of 3 texts." in told.err


def test_fill_mask_keeps_ids_beside_those_of_tokens(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("text,id,place\nhot [MASK],7,Ulm\n", encoding="utf-8")
    arguments: list[str | Path] = ["fill-mask", "-m", made(head="pretraining", seed=2), "-i", file, "--top-k", "2"]
    expected = [("7", "Ulm"), ("7", "Ulm")]
    for how in (["--keep", "id,place"], ["--keep", "all"], ["--id-column", "id", "--keep", "place"]):
        rows = in_table(bertcli(*arguments, *how, "--format", "csv").out, ",")
        assert [(row["id"], row["place"]) for row in rows] == expected
        assert [int(row["token_id"]) > 0 for row in rows] == [True, True]
    refused = bertcli(*arguments, "--keep", "text")
    assert (refused.status, "the results have a field 'text' of their own" in refused.err) == (2, True)


def test_a_least_score_that_leaves_nothing_is_said(tmp_path: Path) -> None:
    refused = bertcli("similarity", "hot tea", "milk", "--top-k", "1", "--min-score", "3")
    assert (refused.status, "no cosine is 3: give at most 1." in refused.err) == (2, True)
    told = bertcli("similarity", "hot tea", "milk", "--top-k", "1", "--min-score", "0.99", "--format", "jsonl")
    assert (told.out, "no two texts have a cosine of 0.99 or more (--min-score)." in told.err) == ("", True)
    (tmp_path / "t.txt").write_text("hot tea\nmilk\n", encoding="utf-8")
    assert bertcli("encode", "-i", tmp_path / "t.txt", "-o", tmp_path / "t.npz").status == 0
    for name in ("t.txt", "t.npz"):
        told = bertcli("search", "tea", "-i", tmp_path / name, "--min-score", "3")
        assert "no hit has a score of 3 or more (--min-score)." in told.err
