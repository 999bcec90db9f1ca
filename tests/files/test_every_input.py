"""Every form of input in every command that reads texts: each gives what the same texts give as arguments.

The commands are those of the application, the forms those of `formats.py` and of pipes: a new one of either kind
fails here until it is listed.
"""

import csv
import gzip
import io
import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import Made
from helpers.options_of_commands import commands_with
from helpers.terminal import bertcli
from reference.task_cases import RANKER, READER, TAGGER

from bertcli.files.formats import endings_with

TEXTS = ("The [MASK] sat on the mat.", 'A "[MASK]" of tea, — 中国😀', "[MASK]")
WORDS = ("king", "tea", "the")
MASKED = {"head": "pretraining", "seed": 7}
LABELS = {"head": "classifier"}
PACKED = (".txt", ".jsonl", ".csv", ".tsv", ".fasta", ".fa")
FORMS = (*PACKED, *(f"{ending}.gz" for ending in PACKED), ".parquet")
PIPES = ("txt", "jsonl", "csv", "tsv")


class Reading(NamedTuple):
    """How a command is called: with which checkpoint, what before its texts, what among its options, which texts.

    column: the field that the command reads where nobody names one.
    """

    checkpoint: Mapping[str, Any] = MASKED
    before: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    column: str = "text"
    texts: tuple[str, ...] = TEXTS


READINGS = {
    "encode": Reading(),
    "similarity": Reading(),
    "classify": Reading(LABELS),
    "fill-mask": Reading(),
    "score": Reading(),
    "tag": Reading(TAGGER),
    "answer": Reading(READER, options=("--context", "The queen walked to the river."), column="question"),
    "rank": Reading(RANKER, before=("hot tea",)),
    "keywords": Reading(),
    "tokenize": Reading(),
    "explain": Reading(LABELS),
    "lens": Reading(),
    "heads": Reading(),
    "diff": Reading(before=("--versus", "OTHER")),
}


def content(form: str, texts: tuple[str, ...], column: str) -> bytes:
    """The texts as a file of this form holds them."""
    if form == ".parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        stream = io.BytesIO()
        parquet.write_table(arrow.table({"n": [1, 2, 3], column: texts}), stream)
        return stream.getvalue()
    if form.endswith(".gz"):
        return gzip.compress(content(form.removesuffix(".gz"), texts, column))
    if form == ".jsonl":
        return "".join(json.dumps({"n": 1, column: text}) + "\n" for text in texts).encode()
    if form in (".csv", ".tsv"):
        table = io.StringIO()
        rows = [("n", column), *((7, text) for text in texts)]
        csv.writer(table, delimiter="," if form == ".csv" else "\t").writerows(rows)
        return table.getvalue().encode()
    if form in (".fasta", ".fa"):
        return "".join(f">p{i} a protein\n{text}\n" for i, text in enumerate(texts)).encode()
    assert form == ".txt"
    return "".join(f"{text}\n" for text in texts).encode()


def call(command: str, made: Made, *source: str | Path, stdin: bytes | None = None) -> Any:
    """What a command makes of the texts of this source."""
    reading = READINGS[command]
    model = str(made(**reading.checkpoint))
    other = str(made(**{**reading.checkpoint, "seed": 8}))
    before = [other if argument == "OTHER" else argument for argument in reading.before]
    given = [model, *before] if command == "diff" else ["-m", model, *before]
    result = bertcli(command, *given, *source, *reading.options, "--format", "json", stdin=stdin)
    assert result.status == 0, result.err
    return result.json


EXPECTED: dict[str, str] = {}


def expected(command: str, made: Made) -> Any:
    """What a command makes of its texts as arguments: once for all forms."""
    if command not in EXPECTED:
        EXPECTED[command] = json.dumps(call(command, made, *READINGS[command].texts))
    return json.loads(EXPECTED[command])


def compare(found: Any, expected: Any, form: str) -> None:
    """The same records; those of sequences may have the ids that stand in their headers."""
    if isinstance(found, list) and "fa" in form:
        ids = [record.pop("id", None) for record in found]
        assert ids in ([None] * len(ids), [f"p{i}" for i in range(len(ids))])
    assert found == expected


def test_every_input_is_tested_in_every_command_that_has_it() -> None:
    # probe reads labelled texts (test_probe), patch pairs (test_patch), search passages of files (test_search_files).
    assert READINGS.keys() == commands_with("--input") - {"probe", "patch", "search"}
    assert {form.removesuffix(".gz") for form in FORMS} == {*endings_with("texts")}


# Every command reads every format, and packs of half of them: what unpacks a file does not know who reads it.
READ = [
    (command, f"{form}.gz" if form in PACKED and (number + place) % 2 else form)
    for number, command in enumerate(READINGS)
    for place, form in enumerate((*PACKED, ".parquet"))
]


def test_every_input_is_read_plain_and_packed() -> None:
    assert {form for _, form in READ} == {*FORMS}
    assert {(command, form.endswith(".gz")) for command, form in READ} == {*product(READINGS, (True, False))}


WITH_COLUMN = commands_with("--column")
WITH_COLUMNS = sorted(READINGS.keys() & commands_with("--delimiter"))


def test_every_input_with_columns_has_their_options() -> None:
    assert commands_with("--delimiter") == commands_with("--no-header")
    assert commands_with("--delimiter") - READINGS.keys() == {"evaluate", "probe"}


@pytest.mark.parametrize("command", WITH_COLUMNS)
def test_every_input_file_has_the_columns_that_its_options_say(command: str, made: Made, tmp_path: Path) -> None:
    reading = READINGS[command]
    stream = io.StringIO()
    csv.writer(stream, delimiter=";").writerows([("n", reading.column), *((7, text) for text in reading.texts)])
    content, file = stream.getvalue().encode(), tmp_path / "input.csv"
    without_header = content.partition(b"\n")[2]
    split = ("--delimiter", ";")
    second = ("--no-header", "--column", "2")
    file.write_bytes(content)
    compare(call(command, made, "-i", file, *split), expected(command, made), "csv")
    file.write_bytes(without_header)
    compare(call(command, made, "-i", file, *split, *second), expected(command, made), "csv")
    compare(call(command, made, *split, *second, stdin=without_header), expected(command, made), "csv")


@pytest.mark.parametrize(
    ("command", "checkpoint", "columns", "numbers"),
    [
        ("rank", RANKER, ("--query-column", "q", "--column", "d"), ("--query-column", "1", "--column", "2")),
        ("answer", READER, ("--column", "q", "--context-column", "d"), ("--column", "1", "--context-column", "2")),
        ("classify", LABELS, ("--column", "q", "--pair-column", "d"), ("--column", "1", "--pair-column", "2")),
    ],
)
def test_every_input_file_of_pairs_has_the_columns_that_its_options_say(
    command: str,
    checkpoint: Mapping[str, Any],
    columns: tuple[str, ...],
    numbers: tuple[str, ...],
    made: Made,
    tmp_path: Path,
) -> None:
    rows, file = "who?;the queen\nwho?;hot tea\nwhere?;the river\n", tmp_path / "input.csv"

    def records(content: str, *options: str) -> Any:
        file.write_text(content, encoding="utf-8")
        result = bertcli(command, "-m", made(**checkpoint), "-i", file, *options, "--format", "json")
        assert result.status == 0, result.err
        return result.json

    plain = records(f"q,d\n{rows}".replace(";", ","), *columns)
    assert len(plain) == 3
    assert records(f"q;d\n{rows}", "--delimiter", ";", *columns) == plain
    assert records(rows, "--delimiter", ";", "--no-header", *numbers) == plain


@pytest.mark.parametrize(("command", "form"), READ)
def test_every_input_file_is_read(command: str, form: str, made: Made, tmp_path: Path) -> None:
    reading = READINGS[command]
    file = tmp_path / f"input{form}"
    file.write_bytes(content(form, reading.texts, reading.column))
    compare(call(command, made, "-i", file), expected(command, made), form)


@pytest.mark.parametrize(
    ("command", "pipe"),
    [(command, pipe) for command in READINGS for pipe in PIPES if pipe == "txt" or command in WITH_COLUMN],
)
def test_every_input_pipe_is_read(command: str, pipe: str, made: Made) -> None:
    reading = READINGS[command]
    how = () if pipe == "txt" else ("--column", reading.column)
    piped = content(f".{pipe}", reading.texts, reading.column)
    for source in (("-i", "-"),) if command == "diff" else ((), ("-i", "-")):  # diff reads no pipe unasked
        compare(call(command, made, *source, *how, stdin=piped), expected(command, made), pipe)


@pytest.mark.parametrize("form", FORMS)
def test_every_input_file_may_hold_queries(form: str, made: Made, tmp_path: Path) -> None:
    model, vectors, file = made(**MASKED), tmp_path / "v.npy", tmp_path / f"queries{form}"
    assert bertcli("encode", "-m", model, *WORDS, "-o", vectors).status == 0
    file.write_bytes(content(form, TEXTS, "text"))
    search = ("search", "-m", model, "-i", vectors, "--format", "json")
    found = bertcli(*search, "--query-file", file)
    assert [record["query"] for record in found.json] == [*TEXTS]
    assert found.out == bertcli(*search, *TEXTS).out
