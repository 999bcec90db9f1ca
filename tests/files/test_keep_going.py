"""--keep-going: a text that cannot be used has an error in its place, all others are as without it, the status is 1."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import make
from helpers.json_files import read_json_lines, write_json_lines
from helpers.lines import write_lines
from helpers.terminal import bertcli
from safetensors.numpy import load_file
from tokenizers import BertWordPieceTokenizer, Regex
from tokenizers.pre_tokenizers import Split

from bertcli import BertcliError, load

ROWS = [
    b'{"text": "The cat [MASK] on the mat."}',
    b'{"text": "bad \xff [MASK]"}',
    b'{"text": "tea"}',
    b"{nonsense",
    b'{"txt": "tea [MASK]"}',
    b'{"text": 7}',
    b'{"text": "She drank hot tea with [MASK]."}',
    b'{"text": "the cat sat on the mat with tea and [MASK]"}',
]
BAD_ROWS = {1: "not UTF-8", 3: "not valid JSON", 4: "no field 'text'", 5: "which is not a text"}
WITH_TASK = {**BAD_ROWS, 2: "There is no [MASK]", 7: "beyond the cut"}


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="pretraining", seed=7)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"\n".join(ROWS) + b"\n")
    return path


def good(tmp_path: Path, bad: dict[int, str]) -> Path:
    path = tmp_path / "good.jsonl"
    path.write_bytes(b"".join(row + b"\n" for index, row in enumerate(ROWS) if index not in bad))
    return path


@pytest.mark.parametrize(
    ("command", "bad"), [("encode", BAD_ROWS), ("score", BAD_ROWS), ("fill-mask", WITH_TASK), ("classify", BAD_ROWS)]
)
@pytest.mark.parametrize("output", ["jsonl", "json", "file"])
def test_keep_going_puts_errors_in_their_places(
    command: str, bad: dict[int, str], output: str, model: Path, source: Path, tmp_path: Path
) -> None:
    more = ["--text-pair", "x"] if command == "classify" else ["--max-length", "9"] if command == "fill-mask" else []
    target = tmp_path / "out.jsonl"
    where = ["-o", str(target)] if output == "file" else ["--format", output]
    result = bertcli(command, "-m", model, "-i", source, *more, "--keep-going", *where)
    assert result.status == 1
    assert f"Error: {len(bad)} of 8 texts could not be used; each one's record says why" in result.err
    text = target.read_text(encoding="utf-8") if output == "file" else result.out
    records = json.loads(text) if output == "json" else [json.loads(line) for line in text.splitlines()]
    assert [record["index"] for record in records] == list(range(8))
    failed = {record["index"]: record for record in records if "error" in record}
    assert failed.keys() == bad.keys()
    for index, message in bad.items():
        assert list(failed[index]) == ["index", "text", "error"]
        assert message in failed[index]["error"]
        assert f"{source}, line {index + 1}" in failed[index]["error"]
        assert (failed[index]["text"] is None) == (index in BAD_ROWS)
    alone = bertcli(command, "-m", model, "-i", good(tmp_path, bad), *more, "--format", "jsonl").records
    assert [drop_index(record) for record in records if "error" not in record] == [drop_index(one) for one in alone]


def drop_index(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != "index"}


def test_keep_going_left_out_a_bad_row_is_told_before_any_work(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is read to its end first, by every command; the message names --keep-going, also for a pipe."""
    opened: list[str] = []
    monkeypatch.setattr("bertcli.cli.request.open_model", lambda *_, **__: opened.append("model"))
    source = tmp_path / "in.txt"
    source.write_bytes(b"tea\n" * 14_110 + b"\xff\n")
    why = f"{source}, line 14111: not UTF-8 (byte 1 is 0xff): save the file as UTF-8. (--keep-going goes on without"
    for command in ("encode", "fill-mask", "score", "classify", "tag", "rank q", "answer --context c"):
        result = bertcli(*command.split(), "-m", model, "-i", source, "-o", tmp_path / "out.jsonl")
        assert why in result.error, command
    assert "--keep-going" not in bertcli("similarity", "-m", model, "-i", source).error
    assert opened == []
    assert not (tmp_path / "out.jsonl").exists()


def test_keep_going_is_named_where_a_pipe_has_a_bad_row(model: Path) -> None:
    error = bertcli("encode", "-m", model, "--format", "jsonl", stdin=b"tea\n\xff\n").error
    assert "standard input, line 2: not UTF-8" in error
    assert "(--keep-going goes on without such texts.)" in error


def test_keep_going_is_named_where_a_task_cannot_use_a_text(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where there is only one text, and not in Python, which has no such option."""
    monkeypatch.setattr("bertcli.tokens.tokenizer.LONGEST", 60)  # characters
    source = tmp_path / "in.txt"
    source.write_text("tea\n" + "tea " * 20 + "[MASK]\n[MASK] tea\n")
    way_on = " (--keep-going goes on without such texts.)"
    for command in ("fill-mask", "encode", "score", "classify --text-pair x"):
        error = bertcli(*command.split(), "-m", model, "-i", source, "--format", "jsonl").error
        assert f"{source}, line" in error, command
        assert error.endswith(way_on), command
    assert bertcli("fill-mask", "-m", model, "tea", "hot [MASK]").error.endswith(way_on)
    # Nothing else is there to go on with.
    assert "--keep-going" not in bertcli("fill-mask", "-m", model, "tea").error
    assert "--keep-going" not in bertcli("fill-mask", "-m", model, "tea", "coffee").error
    with pytest.raises(BertcliError, match=r"There is no \[MASK\] in text 0 \('tea'\): write [^(]*$"):
        load(model).fill_mask(["tea", "coffee"])


def test_keep_going_is_named_with_the_line_of_a_text_at_which_the_tokenizer_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The tokenizers library panics at it, and prints nothing of its own."""
    folder = make(tmp_path / "model", head="pretraining")
    tokenizer = BertWordPieceTokenizer(str(folder / "vocab.txt"))
    tokenizer.pre_tokenizer = Split(Regex("(a+)+$"), "isolated")
    tokenizer.save(str(folder / "tokenizer.json"))
    source, gives_up = tmp_path / "in.txt", "a" * 40 + "b"
    source.write_text(f"tea\n{gives_up}\n")
    result = bertcli("encode", "-m", folder, "-i", source, "--format", "jsonl")
    assert re.search(
        r"in\.txt, line 2: The tokenizer failed \(.*\): try another text, or another model\. \(--keep-going",
        result.error,
    )
    going = bertcli("encode", "-m", folder, "-i", source, "--keep-going", "--format", "jsonl")
    assert going.status == 1
    assert [record["index"] for record in going.records] == [0, 1]
    assert bertcli("tokenize", "-m", folder, gives_up).status == 1
    labelled = tmp_path / "labelled.csv"
    rows = [f"{word} tea,{label}" for word in ("hot", "cold", "the") for label in ("x", "y")]
    write_lines(labelled, ["text,label", *rows, f"{gives_up},x"])
    corpus = tmp_path / "corpus"
    (corpus / "qrels").mkdir(parents=True)
    documents = [{"_id": str(number), "text": text} for number, text in enumerate(("tea", gives_up))]
    write_json_lines(corpus / "corpus.jsonl", documents)
    (corpus / "queries.jsonl").write_text('{"_id": "q", "text": "tea"}\n')
    (corpus / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t0\t1\n")
    commands: dict[str, tuple[str | Path, ...]] = {
        "labelled.csv, line 8": ("probe", "-i", labelled, "--folds", "3"),
        "corpus.jsonl, line 2": ("evaluate", corpus),
    }
    for line, words in commands.items():
        error = bertcli(*words, "-m", folder).error
        assert line in error
        assert error.endswith("(--keep-going leaves such rows out.)")
    assert bertcli("evaluate", corpus, "-m", folder, "--keep-going").status == 0
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("command", ["encode", "score", "fill-mask", "classify"])
def test_keep_going_shows_errors_in_a_table(command: str, model: Path, source: Path) -> None:
    pair = ["--text-pair", "x"] if command == "classify" else []
    for format in ("table", "csv"):
        result = bertcli(command, "-m", model, "-i", source, "--keep-going", "--format", format, *pair)
        assert result.status == 1
        assert "not valid JSON" in result.out


def test_keep_going_leaves_zeros_in_arrays_and_a_list_beside(model: Path, source: Path, tmp_path: Path) -> None:
    for ending in ("npy", "safetensors"):
        target = tmp_path / f"v.{ending}"
        listed = tmp_path / f"v.{ending}.errors.jsonl"
        result = bertcli("encode", "-m", model, "-i", source, "--keep-going", "-o", target)
        assert result.status == 1
        assert f"4 of 8 texts could not be used; their vectors are zeros, and {listed} says why" in result.err
        rows = np.load(target) if ending == "npy" else load_file(target)["embeddings"]
        assert [index for index, row in enumerate(rows) if not row.any()] == list(BAD_ROWS)
        found = read_json_lines(listed)
        assert [record["index"] for record in found] == list(BAD_ROWS)
        assert bertcli("encode", "-m", model, "-i", good(tmp_path, BAD_ROWS), "--keep-going", "-o", target).status == 0
        assert not listed.exists()


def test_keep_going_leaves_no_vectors_of_tokens(model: Path, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "v.npz"
    bertcli("encode", "-m", model, "-i", source, "--keep-going", "-o", target, "--pooling", "none", "--dtype", "int8")
    with np.load(target) as arrays:
        counts = np.diff(arrays["offsets"])
        assert [index for index, count in enumerate(counts) if not count] == list(BAD_ROWS)
        assert arrays["offsets"][-1] == len(arrays["embeddings"]) == len(arrays["scales"])


def test_keep_going_keeps_the_ids_of_rows(model: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "v.parquet"
    rows = ['{"id": 7, "text": "tea"}', '{"id": 8, "txt": "tea"}', '{"id": 9, "text": 1}', '{"id": [], "text": "tea"}']
    write_lines(source, rows)
    arguments = ["encode", "-m", str(model), "-i", str(source), "--id-column", "id", "--keep-going"]
    records = bertcli(*arguments, "--format", "jsonl").records
    assert [record.get("id") for record in records] == [7, 8, 9, None]
    assert ["error" in record for record in records] == [False, True, True, True]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert bertcli(*arguments, "-o", str(target)).status == 1
    assert parquet.read_table(target).column("id").to_pylist() == ["7", "8", "9", None]
    write_lines(source, [*rows, f'{{"id": {10**30}, "text": "tea"}}'])
    assert bertcli(*arguments, "-o", str(target)).status == 1
    assert parquet.read_table(target).column("id").to_pylist() == ["7", "8", "9", None, f"{10**30}"]


def test_keep_going_leaves_nulls_in_parquet(model: Path, source: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    target = tmp_path / "v.parquet"
    result = bertcli("encode", "-m", model, "-i", source, "--keep-going", "-o", target)
    assert (result.status, "their vectors are null, and column error says why" in result.err) == (1, True)
    rows = parquet.read_table(target).to_pylist()
    assert [index for index, row in enumerate(rows) if row["embedding"] is None] == list(BAD_ROWS)
    assert [row["error"] is None for row in rows] == [index not in BAD_ROWS for index in range(8)]
    assert rows[0]["text"] == "The cat [MASK] on the mat."
    assert [row["id"] for row in rows] == list(range(8))
    vectors = [row["embedding"] for row in rows if row["embedding"] is not None]
    bertcli("encode", "-m", model, "-i", good(tmp_path, BAD_ROWS), "-o", tmp_path / "good.npy")
    assert np.array_equal(np.array(vectors, np.float32), np.load(tmp_path / "good.npy"))
    # lists of one size cannot be null in many versions of pyarrow: they read no such file
    assert str(parquet.read_schema(target).field("embedding").type) == "list<element: float>"
    bertcli("encode", "-m", model, "-i", good(tmp_path, BAD_ROWS), "-o", target)
    assert str(parquet.read_schema(target).field("embedding").type) == "fixed_size_list<element: float>[32]"


def test_parquet_is_not_written_without_pyarrow(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert bertcli("encode", "-m", model, "tea", "-o", tmp_path / "v.parquet").error == (
        f"Error: {tmp_path / 'v.parquet'}: Parquet needs pyarrow: pip install 'bertcli[parquet]'."
    )
    assert list(tmp_path.iterdir()) == []


def test_rows_of_a_column_without_a_name(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"": "tea", "text": null}\n', encoding="utf-8")
    (record,) = bertcli("encode", "-m", model, "-i", file, "--column", "", "--format", "jsonl").records
    assert record["text"] == "tea"
    assert "the field 'text' is null, which is not a text." in bertcli("encode", "-m", model, "-i", file).error
    file.write_text('{"text": true}\n', encoding="utf-8")
    assert "the field 'text' is true" in bertcli("encode", "-m", model, "-i", file).error
    assert "there is no field ''; fields are 'text'" in bertcli("encode", "-m", model, "-i", file, "--column", "").error
