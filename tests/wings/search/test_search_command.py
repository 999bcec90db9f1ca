"""bertcli search: what was written is found, with its text, whatever the file."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json, write_json, write_json_lines
from helpers.lines import write_lines
from helpers.terminal import bertcli, wrong_usage

import bertcli as library
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
    result = bertcli("search", "-m", model, *TEXTS, "-i", vectors, "-i", corpus, "--format", "jsonl", "--top-k", "2")
    assert [record["query"] for record in result.records] == TEXTS
    for i, record in enumerate(result.records):
        assert len(record["nearest"]) == 2
        best = record["nearest"][0]
        assert (best["row"], best["text"]) == (i, TEXTS[i])
        assert best["score"] == pytest.approx(1, abs=2e-3)


def test_search_scores_are_the_cosines(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    result = bertcli("search", "-m", model, TEXTS[1], "-i", tmp_path / "v.npy", "--format", "json")
    (record,) = result.json
    vectors = np.load(tmp_path / "v.npy").astype(np.float64)
    cosines = vectors @ vectors[1] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[1])
    assert [hit["row"] for hit in record["nearest"]] == np.argsort(-cosines).tolist()
    assert [hit["score"] for hit in record["nearest"]] == pytest.approx(sorted(cosines, reverse=True), abs=1e-6)
    assert all(hit.keys() == {"row", "score"} for hit in record["nearest"])


@pytest.mark.parametrize("how", ["dot", "euclidean", "manhattan"])
def test_search_compares_as_the_folder_says(how: str, made: Made, corpus: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(made(seed=7), model)
    write_json(model / "config_sentence_transformers.json", {"similarity_fn_name": how})
    vectors = library.load(model).encode(TEXTS).astype(np.float64)
    query = library.load(model).encode([TEXTS[1]])[0].astype(np.float64)
    apart = {"euclidean": np.linalg.norm(vectors - query, axis=1), "manhattan": np.abs(vectors - query).sum(axis=1)}
    expected = vectors @ query if how == "dot" else -apart[how]
    for ending, dtype, tolerance in ((".npy", "float32", 1e-5), (".npz", "int8", 0.5), (".safetensors", "int8", 0.5)):
        file = tmp_path / f"{dtype}{ending}"
        assert bertcli("encode", "-m", model, "-i", corpus, "--dtype", dtype, "-o", file).status == 0
        result = bertcli("search", "-m", model, TEXTS[1], "-i", file, "--format", "json")
        assert f"vectors are compared by {how}, as the checkpoint specifies" in result.err
        (record,) = result.json
        found = {hit["row"]: hit["score"] for hit in record["nearest"]}
        assert [found[i] for i in range(len(TEXTS))] == pytest.approx(expected.tolist(), abs=tolerance)
    file = tmp_path / "v.npy"
    assert bertcli("encode", "-m", model, "-i", corpus, "--dtype", "int8", "-o", file).status == 0
    error = bertcli("search", "-m", model, TEXTS[1], "-i", file).error
    assert error == (
        f"Error: {file} has int8 rows without their scales (a .npy file holds none), so only cosines can be told: "
        "it is not a usable file of vectors."
    )
    assert f"compares vectors by {how}; these are cosines" in bertcli("similarity", "-m", model, *TEXTS).err


def test_search_ids_and_tables(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy", "--truncate-dim", "9")
    found = (
        "search",
        "-m",
        model,
        TEXTS[3],
        "-i",
        tmp_path / "v.npy",
        "-i",
        corpus,
    )
    hit = bertcli(*found, "--id-column", "id", "--format", "jsonl").records[0]["nearest"][0]
    assert (hit["id"], hit["text"]) == ("n3", TEXTS[3])
    assert "the dog and the cat" in bertcli(*found).out
    assert bertcli(*found, "-o", tmp_path / "found.json").out == ""
    assert read_json(tmp_path / "found.json")[0]["nearest"][0]["row"] == 3


def test_search_parquet_brings_its_own_texts(model: Path, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.parquet", "--id-column", "id")
    result = bertcli("search", "-m", model, TEXTS[0], "-i", tmp_path / "v.parquet", "--format", "jsonl")
    assert result.records[0]["nearest"][0] | {"score": 1} == {"row": 0, "score": 1, "id": "n0", "text": TEXTS[0]}


def test_search_what_does_not_fit_is_one_line(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    find = ("search", "-m", model, "a", "-i")
    assert "is missing" in bertcli(*find, tmp_path / "gone.npy").error
    assert "the magic string is not correct" in bertcli(*find, _other(tmp_path)).error
    (tmp_path / "short.txt").write_text("a\n", encoding="utf-8")
    message = bertcli(*find, tmp_path / "v.npy", "-i", tmp_path / "short.txt").error
    assert "has 5 rows and its texts' file 1 text:" in message


def _other(folder: Path) -> Path:
    (folder / "other.npy").write_text("no array", encoding="utf-8")
    return folder / "other.npy"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["a"], "give files to search in (-i), or vectors that encode wrote"),
        (["-i", "v.npy"], "give a query, or a file of queries with --query-file."),
        (["a", "-i", "v.npy", "--column", "body"], "--column: this names a field of the texts"),
        (["a", "-i", "v.npy", "--id-column", "id"], "--id-column: this names a field of the texts"),
        (["a", "-i", "v.npy", "--top-k", "0"], "'--top-k': 0 is not in the range x>=1."),
    ],
)
def test_search_wrong_usage(
    arguments: list[str], why: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert bertcli("encode", "-m", model, "a", "-o", "v.npy").status == 0
    wrong_usage("search", "-m", model, *arguments, why=why)


def test_search_shows_ten_rows_unless_told(model: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, *map(str, range(30)), "-o", tmp_path / "v.npy")
    for more, count in (([], 10), (["--top-k", "12"], 12), (["--top-k", "99"], 30)):
        found = bertcli("search", "-m", model, "7", "-i", tmp_path / "v.npy", "--format", "jsonl", *more)
        assert len(found.records[0]["nearest"]) == count


def test_search_skips_what_was_skipped_when_encoding(made: Made, tmp_path: Path) -> None:
    source, vectors = tmp_path / "in.jsonl", tmp_path / "v.npy"
    source.write_text('{"text": "a cat"}\nnonsense\n{"text": "tea"}\n')
    bertcli("encode", "-m", made(), "-i", source, "-o", vectors, "--keep-going")
    found = bertcli("search", "-m", made(), "tea", "-i", vectors, "-i", source, "--format", "jsonl")
    assert found.records[0]["nearest"][0] == {"row": 2, "score": pytest.approx(1, abs=1e-6), "text": "tea"}


@pytest.mark.filterwarnings("default")
def test_search_says_in_a_line_what_numpy_warns_of_python_2(model: Path, tmp_path: Path) -> None:
    file, header = (
        tmp_path / "v.npy",
        b"{'descr': '<f4', 'fortran_order': False, 'shape': (1L, 32L), }\n",
    )
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(128))
    done = bertcli("search", "-m", model, "tea", "-i", file)
    assert done.status == 0
    assert "\nWarning: Reading `.npy` or `.npz` file required" in f"\n{done.err}"
    assert [line[:5] for line in done.err.splitlines()] == ["Warni", "Warni"]


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
    write_json_lines(source, ({"text": text, "id": f"n{i}"} for i, text in enumerate(texts)))
    made = ["encode", "-m", str(model), "-i", str(source), "--chunk", "8,2", "--id-column", "id", "--keep-going"]
    chunks = bertcli(*made, "--format", "jsonl").records
    assert len(chunks) > 5
    assert bertcli(*made, "-o", vectors).status == 0
    queries = [chunk["text"] for chunk in chunks]
    for more in (
        ["-i", str(source), "--id-column", "id"],
        [] if ending == "parquet" else ["-i", str(source)],
    ):
        result = bertcli("search", "-m", model, *queries, "-i", vectors, *more, "--format", "json", "--top-k", "1")
        for row, (chunk, record) in enumerate(zip(chunks, result.json, strict=True)):
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
    error = bertcli("search", "-m", model, "tea", "-i", vectors, "-i", shorter).error
    assert f"has {len(chunks)} rows of 3 texts and its texts' file 1 text:" in error


def test_search_takes_queries_from_a_file_beside_others(model: Path, corpus: Path, tmp_path: Path) -> None:
    bertcli("encode", "-m", model, "-i", corpus, "-o", tmp_path / "v.npy")
    file = tmp_path / "queries.txt"
    write_lines(file, TEXTS[1:4])
    command = ("search", "-m", model, "-i", tmp_path / "v.npy", "--query-file", file, "--format", "jsonl")
    several = bertcli(*command, TEXTS[0]).records
    assert [record["nearest"][0]["row"] for record in several] == [0, 1, 2, 3]
    file.write_text("", encoding="utf-8")
    assert bertcli(*command).error == f"Error: {file} has no queries: write one a line."


@pytest.mark.parametrize("ending", ["npz", "safetensors", "parquet", "npy"])
def test_search_refuses_vectors_of_another_model(ending: str, made: Made, model: Path, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file, other = tmp_path / f"v.{ending}", made(seed=8)
    bertcli("encode", "-m", model, *TEXTS, "-o", file)
    copied = shutil.copytree(model, tmp_path / "copied")
    again = bertcli("search", "-m", copied, TEXTS[1], "-i", file, "--format", "jsonl")
    assert again.records[0]["nearest"][0]["row"] == 1
    result = bertcli("search", "-m", other, TEXTS[1], "-i", file)
    assert f"{file} was made by another model, '{model.name} " in result.error
    assert f"not by '{other.name} " in result.error


MADE_WITH = ("--pooling", "cls", "--layer", "1,0", "--no-normalize", "--truncate-dim", "40")


@pytest.mark.parametrize("ending", ["npy", "npz", "safetensors", "parquet"])
def test_search_makes_a_query_as_the_vectors_were_made(ending: str, model: Path, corpus: Path, tmp_path: Path) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"v.{ending}"
    encode = ("encode", "-m", model, "-i", corpus, *MADE_WITH, "-o", file)
    assert bertcli(*encode, "--prompt", "").status == 0
    asked = ("search", "-m", model, TEXTS[3], "-i", file, "--format", "jsonl")
    done = bertcli(*asked)
    assert "does not say" not in done.err
    for nearest in (
        done.records[0]["nearest"],
        library.search(TEXTS[3], file, model=model, pooling="cls")[0]["nearest"],
    ):
        assert (nearest[0]["row"], nearest[0]["score"]) == (3, pytest.approx(1, abs=1e-6))
    with pytest.raises(BertcliError, match="were made with --pooling "):
        library.search(TEXTS[3], file, model=model, pooling="max")
    assert bertcli(*asked, "--prompt", "a query: ").records[0]["nearest"][0]["score"] < 0.9999


def test_search_calls_a_linked_model_as_it_was_given(
    model: Path, corpus: Path, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the Hub's cache a model's folder has the name of a commit, and people link to it."""
    (tmp_path / "minilm").symlink_to(model)
    monkeypatch.chdir(tmp_path)
    assert bertcli("encode", "-m", "minilm", "-i", corpus, "-o", "v.npz").status == 0
    error = bertcli("search", "-m", made(head="mlm", seed=5), "tea", "-i", "v.npz").error
    assert "v.npz was made by another model, 'minilm " in error
    monkeypatch.chdir(model)
    assert bertcli("search", "-m", ".", "tea", "-i", tmp_path / "v.npz").status == 0


def test_search_says_where_a_file_does_not_say_how_it_was_made(model: Path, corpus: Path, tmp_path: Path) -> None:
    file, note = tmp_path / "v.npy", tmp_path / "v.npy.settings.json"
    bertcli("encode", "-m", model, "-i", corpus, "-o", file)
    told = read_json(note)
    settings = told["settings"]  # an object, not a text with JSON in it
    assert settings == {
        "pooling": "mean",
        "layer": [2],
        "normalize": False,
        "truncate_dim": 32,
        "prompt": "",
        "dtype": "float32",
        "chunk": None,
    }
    search = ("search", "-m", model, TEXTS[3], "-i", file, "--format", "jsonl")
    damaged: object
    for damaged in ([], 5, "[]", "5", {"pooling": "mean"}, {**settings, "layer": "2"}):
        write_json(note, {**told, "settings": damaged})
        assert "says how its vectors were made in a way that cannot be read" in bertcli(*search).error
    for odd, message in (("layer", "There is no layer 99"), ("truncate_dim", "cannot be cut to 99")):
        changed = {**settings, odd: [99] if odd == "layer" else 99}
        write_json(note, {**told, "settings": changed})
        assert message in bertcli(*search).error
    note.write_text("{", encoding="utf-8")
    assert "v.npy.settings.json" in bertcli(*search).error
    note.unlink()
    done = bertcli(*search)
    unknown = f"Warning: {file} has no record of the model and options of its vectors: make sure that they are those of"
    assert f"{unknown} this command." in done.err
    assert done.records[0]["nearest"][0]["row"] == 3


def test_search_in_a_terminal_shows_a_table_where_it_fits(model: Path, tmp_path: Path) -> None:
    source, file = tmp_path / "in.txt", tmp_path / "v.npy"
    source.write_text("hot tea\nthe dog\nthe cat\n")
    assert bertcli("encode", "-m", model, "-i", source, "-o", file).status == 0
    search = ("search", "-m", model, "a cup", "the dog", "-i", file, "-i", source)
    whole = bertcli(*search).out
    assert whole.split()[:4] == ["query", "row", "score", "text"]
    assert bertcli(*search, environment={"COLUMNS": "80"}).out == whole
    narrow = bertcli(*search, environment={"COLUMNS": "30"}).out
    assert narrow.startswith("a cup\n")


def test_search_shows_a_hit_in_four_lines_of_a_terminal(model: Path, tmp_path: Path) -> None:
    texts = ["tea " * 60, "中国" * 60, "the dog"]
    source, file = tmp_path / "in.jsonl", tmp_path / "v.npz"
    write_json_lines(source, ({"text": text, "id": f"n{i}"} for i, text in enumerate(texts)))
    assert bertcli("encode", "-m", model, "-i", source, "-o", file, "--max-length", "40").status == 0
    search = ("search", "-m", model, "a cup\x1b", "the dog", "-i", file, "-i", source, "--id-column", "id")
    for width in (80, 40):
        shown = bertcli(*search, environment={"COLUMNS": str(width)}).out.split("\n")
        assert max(sum(1 + (c >= "中") for c in line if c != "…") + ("…" in line) for line in shown) <= width
        starts = [i for i, line in enumerate(shown) if "  row " in line]
        assert len(starts) == 6
        for start, end in zip(starts, [*starts[1:], len(shown) - 1], strict=True):
            assert len([line for line in shown[start:end] if line.startswith(" ")]) <= 4
        assert [line for line in shown if line and not line.startswith(" ")] == ["a cup\\x1b", "the dog"]
        assert sum(line.endswith("…") for line in shown) == 4
        assert sum(line.endswith("the dog") for line in shown) == 3
        assert {line.rpartition(", ")[2] for line in shown if "  row " in line} == {"n0", "n1", "n2"}
    assert all(text.strip() in bertcli(*search).out for text in texts)
