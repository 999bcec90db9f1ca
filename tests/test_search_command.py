"""bertcli encode --query --against: what was written is found, with its text, whatever the file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from terminal import bertcli

TEXTS = ["a cup of tea", "the dog", "Paris is a city.", "the dog and the cat", ""]


@pytest.fixture
def model(made: Made) -> Path:
    return made(seed=7)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "corpus.jsonl"
    lines = [json.dumps({"text": text, "id": f"n{i}"}) + "\n" for i, text in enumerate(TEXTS)]
    file.write_text("".join(lines), encoding="utf-8")
    return file


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "binary"])
@pytest.mark.parametrize("ending", ["npy", "npz", "safetensors", "parquet"])
def test_a_text_finds_itself(ending: str, dtype: str, model: Path, corpus: Path, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    vectors = tmp_path / f"v.{ending}"
    assert bertcli("encode", "-m", model, "-i", corpus, "-o", vectors, "--dtype", dtype).status == 0
    queries = [argument for text in TEXTS for argument in ("--query", text)]
    result = bertcli(
        "encode", "-m", model, *queries, "--against", vectors, "-i", corpus, "--format", "jsonl", "--top-k", "2"
    )
    assert [record["query"] for record in result.records] == TEXTS
    for i, record in enumerate(result.records):
        assert len(record["nearest"]) == 2
        best = record["nearest"][0]
        assert (best["row"], best["text"]) == (i, TEXTS[i])
        assert best["score"] == pytest.approx(1, abs=2e-3)


def test_scores_are_the_cosines(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    result = bertcli("encode", "-m", model, "--query", TEXTS[1], "--against", tmp_path / "v.npy", "--format", "json")
    (record,) = json.loads(result.out)
    vectors = np.load(tmp_path / "v.npy").astype(np.float64)
    cosines = vectors @ vectors[1] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[1])
    assert [hit["row"] for hit in record["nearest"]] == np.argsort(-cosines).tolist()
    assert [hit["score"] for hit in record["nearest"]] == pytest.approx(sorted(cosines, reverse=True), abs=1e-6)
    assert all(hit.keys() == {"row", "score"} for hit in record["nearest"])


def test_ids_and_tables(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy", "--truncate-dim", "9")
    found = (
        "encode",
        "-m",
        model,
        "--query",
        TEXTS[3],
        "--against",
        tmp_path / "v.npy",
        "-i",
        corpus,
        "--truncate-dim",
        "9",
    )
    hit = bertcli(*found, "--id-column", "id", "--format", "jsonl").records[0]["nearest"][0]
    assert (hit["id"], hit["text"]) == ("n3", TEXTS[3])
    assert "the dog and the cat" in bertcli(*found).out
    assert bertcli(*found, "-o", tmp_path / "found.json").out == ""
    assert json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))[0]["nearest"][0]["row"] == 3


def test_parquet_brings_its_own_texts(model: Path, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.parquet", "--id-column", "id")
    result = bertcli(
        "encode", "-m", model, "--query", TEXTS[0], "--against", tmp_path / "v.parquet", "--format", "jsonl"
    )
    assert result.records[0]["nearest"][0] | {"score": 1} == {"row": 0, "score": 1, "id": "n0", "text": TEXTS[0]}


def test_what_does_not_fit_is_one_line(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    find = ("encode", "-m", model, "--query", "a", "--against")
    assert (
        "has vectors of 32 numbers, but this model gives 8"
        in bertcli(*find, tmp_path / "v.npy", "--truncate-dim", "8").error
    )
    assert "is missing" in bertcli(*find, tmp_path / "gone.npy").error
    assert "does not begin like a .npy file" in bertcli(*find, _other(tmp_path)).error
    (tmp_path / "short.txt").write_text("a\n", encoding="utf-8")
    message = bertcli(*find, tmp_path / "v.npy", "-i", tmp_path / "short.txt").error
    assert "has 5 rows and --input 1 texts" in message


def _other(folder: Path) -> Path:
    (folder / "other.npy").write_text("no array", encoding="utf-8")
    return folder / "other.npy"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--query", "a"],
        ["--against", "v.npy"],
        ["--top-k", "3", "a text"],
        ["--query", "a", "--against", "v.npy", "a text"],
        ["--query", "a", "--against", "v.npy", "--pooling", "none"],
        ["--query", "a", "--against", "v.npy", "--dtype", "int8"],
        ["--query", "a", "--against", "v.npy", "--similarity"],
        ["--query", "a", "--against", "v.npy", "--resume"],
        ["--query", "a", "--against", "v.npy", "--top-k", "0"],
    ],
)
def test_wrong_usage(arguments: list[str], model: Path) -> None:
    assert bertcli("encode", "-m", model, *arguments).status == 2
