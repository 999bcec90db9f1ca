"""bertcli encode --query --against: what was written is found, with its text, whatever the file."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.terminal import bertcli

from bertcli.errors import BertcliError
from bertcli.files.search import open_vectors

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
def test_search_text_finds_itself(ending: str, dtype: str, model: Path, corpus: Path, tmp_path: Path) -> None:
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


def test_search_scores_are_the_cosines(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    result = bertcli("encode", "-m", model, "--query", TEXTS[1], "--against", tmp_path / "v.npy", "--format", "json")
    (record,) = json.loads(result.out)
    vectors = np.load(tmp_path / "v.npy").astype(np.float64)
    cosines = vectors @ vectors[1] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[1])
    assert [hit["row"] for hit in record["nearest"]] == np.argsort(-cosines).tolist()
    assert [hit["score"] for hit in record["nearest"]] == pytest.approx(sorted(cosines, reverse=True), abs=1e-6)
    assert all(hit.keys() == {"row", "score"} for hit in record["nearest"])


def test_search_ids_and_tables(model: Path, corpus: Path, tmp_path: Path) -> None:
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


def test_search_parquet_brings_its_own_texts(model: Path, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.parquet", "--id-column", "id")
    result = bertcli(
        "encode", "-m", model, "--query", TEXTS[0], "--against", tmp_path / "v.parquet", "--format", "jsonl"
    )
    assert result.records[0]["nearest"][0] | {"score": 1} == {"row": 0, "score": 1, "id": "n0", "text": TEXTS[0]}


def test_search_what_does_not_fit_is_one_line(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    find = ("encode", "-m", model, "--query", "a", "--against")
    assert (
        "has vectors of 32 numbers, but this model gives 8"
        in bertcli(*find, tmp_path / "v.npy", "--truncate-dim", "8").error
    )
    assert "is missing" in bertcli(*find, tmp_path / "gone.npy").error
    assert "the magic string is not correct" in bertcli(*find, _other(tmp_path)).error
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
def test_search_wrong_usage(arguments: list[str], model: Path) -> None:
    assert bertcli("encode", "-m", model, *arguments).status == 2


def test_search_skips_what_was_skipped_when_encoding(made: Made, tmp_path: Path) -> None:
    source, vectors = tmp_path / "in.jsonl", tmp_path / "v.npy"
    source.write_text('{"text": "a cat"}\nnonsense\n{"text": "tea"}\n')
    bertcli("encode", "-m", made(), "-i", source, "-o", vectors, "--keep-going")
    found = bertcli("encode", "-m", made(), "--query", "tea", "--against", vectors, "-i", source, "--format", "jsonl")
    assert found.records[0]["nearest"][0] == {"row": 2, "score": pytest.approx(1, abs=1e-6), "text": "tea"}


@pytest.mark.filterwarnings("default")
def test_search_says_in_a_line_what_numpy_warns_of_python_2(model: Path, tmp_path: Path) -> None:
    file, header = (
        tmp_path / "v.npy",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1L, 32L), }\n",
    )
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(128))
    done = bertcli("encode", "-m", model, "--query", "tea", "--against", file)
    assert done.status == 0
    assert "\nWarning: Reading `.npy` or `.npz` file required" in f"\n{done.err}"
    assert [line[:5] for line in done.err.splitlines()] == ["Warni", "Note:"]


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_search_refuses_vectors_of_tokens(made: Made, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"tokens{ending}"
    bertcli("encode", "-m", made(), "tea", "--pooling", "none", "-o", file)
    with pytest.raises(BertcliError, match="a row for each token"):
        open_vectors(str(file))


@pytest.mark.parametrize("ending", ["npz", "safetensors", "parquet"])
def test_search_says_which_chunk_of_a_text_is_nearest(ending: str, model: Path, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    source, vectors = tmp_path / "in.jsonl", tmp_path / f"v.{ending}"
    texts = ["the dog", "", "a cup of tea. Paris is a city. the dog and the cat sat on the mat. a cat"]
    source.write_text("".join(json.dumps({"text": text, "id": f"n{i}"}) + "\n" for i, text in enumerate(texts)))
    made = ["encode", "-m", str(model), "-i", str(source), "--chunk", "8,2", "--id-column", "id", "--keep-going"]
    chunks = bertcli(*made, "--format", "jsonl").records
    assert len(chunks) > 5
    assert bertcli(*made, "-o", vectors).status == 0
    queries = [argument for chunk in chunks for argument in ("--query", chunk["text"])]
    for more in (["-i", str(source), "--id-column", "id"], [] if ending == "parquet" else ["-i", str(source)]):
        result = bertcli(
            "encode", "-m", model, *queries, "--against", vectors, *more, "--format", "json", "--top-k", "1"
        )
        for row, (chunk, record) in enumerate(zip(chunks, json.loads(result.out), strict=True)):
            (hit,) = record["nearest"]
            assert hit["score"] == pytest.approx(1, abs=1e-5)
            if hit["row"] == row:
                known = {name: chunk[name] for name in ("index", "chunk", "start", "end", "text")}
                assert {name: hit[name] for name in known} == known
                assert hit.get("id", chunk["id"]) == chunk["id"]
            else:
                assert hit["text"] == chunk["text"]
    shorter = tmp_path / "short.jsonl"
    shorter.write_text('{"text": "the dog"}\n')
    error = bertcli("encode", "-m", model, "--query", "tea", "--against", vectors, "-i", shorter).error
    assert f"has {len(chunks)} rows of 3 texts and --input 1 texts" in error


@pytest.mark.parametrize("ending", [".txt", ".jsonl"])
def test_search_takes_many_queries_from_a_file(ending: str, model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    file = tmp_path / f"queries{ending}"
    lines = [text if ending == ".txt" else json.dumps({"text": text}) for text in TEXTS[1:4]]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command: list[str | Path] = [
        "encode",
        "-m",
        model,
        "--against",
        tmp_path / "v.npy",
        "--query-file",
        file,
        "--format",
        "jsonl",
    ]
    assert [record["query"] for record in bertcli(*command).records] == TEXTS[1:4]
    several = bertcli(*command, "--query", TEXTS[0]).records
    assert [record["nearest"][0]["row"] for record in several] == [0, 1, 2, 3]
    file.write_text("", encoding="utf-8")
    assert bertcli(*command).error == f"Error: {file} holds no text to look for."


@pytest.mark.parametrize("ending", ["npz", "safetensors", "parquet", "npy"])
def test_search_refuses_vectors_of_another_model(ending: str, made: Made, model: Path, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file, other = tmp_path / f"v.{ending}", made(seed=8)
    bertcli("encode", "-m", model, *TEXTS, "-o", file)
    copied = shutil.copytree(model, tmp_path / "copied")
    again = bertcli("encode", "-m", copied, "--query", TEXTS[1], "--against", file, "--format", "jsonl")
    assert again.records[0]["nearest"][0]["row"] == 1
    unknown = f"Note: {file} does not say which model made its vectors; it must be this one."
    assert (unknown in again.err.splitlines()) == (ending == "npy")
    result = bertcli("encode", "-m", other, "--query", TEXTS[1], "--against", file)
    if ending == "npy":
        assert (result.status, unknown in result.err.splitlines()) == (0, True)
    else:
        assert f"{file} was made by another model, '{model.name} " in result.error
        assert f"not by '{other.name} " in result.error
