"""Sparse vectors equal SparseEncoder's; records, files and workers hold the same."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import read_json_lines, write_json, write_json_lines
from helpers.near import assert_near
from helpers.terminal import bertcli, wrong_usage
from reference.encode_cases import SPARSE, TEXTS, sparse

from bertcli.errors import BertcliError
from bertcli.files.texts import from_values
from bertcli.kinds.sparse_vectors import SparseProduct, SparseVector, SparseVectors
from bertcli.model import load
from bertcli.tasks.compute.encode import plan
from bertcli.tasks.encode import EncodeSparseOptions
from bertcli.tasks.running.run import results

with np.load(Path(__file__).parents[1] / "reference" / "encode.npz") as file:
    GOLDENS = dict(file)


def dense(vectors: list[SparseVector], width: int) -> Any:
    found = np.zeros((len(vectors), width), np.float32)
    for row, vector in zip(found, vectors, strict=True):
        assert (np.diff(vector.indices) > 0).all()
        assert (vector.values > 0).all()
        row[vector.indices] = vector.values
    return found


@pytest.mark.parametrize("case", SPARSE)
@pytest.mark.parametrize("together", [1, 1 << 22])
def test_sparse_vectors_are_those_of_sentence_transformers(
    case: str, together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertcli.kinds.sparse_vectors.LOGITS_TOGETHER", together)
    model = load(sparse(tmp_path, case))
    found = dense(model.encode_sparse(TEXTS), model.config.vocab_size)
    np.testing.assert_allclose(found, GOLDENS[f"sparse.{case}"], rtol=1e-6, atol=1e-5)  # sums over tokens, up to 32


def test_sparse_vectors_keep_as_many_weights_as_the_checkpoint_says(tmp_path: Path) -> None:
    folder = sparse(tmp_path, "max")
    (whole,) = load(folder).encode_sparse(["tea"])
    (folder / "config_sentence_transformers.json").write_text('{"max_active_dims": 5}')
    (cut,) = load(folder).encode_sparse(["tea"])
    heaviest = np.sort(np.argsort(-whole.values)[:5])
    np.testing.assert_array_equal(cut.indices, whole.indices[heaviest])
    np.testing.assert_array_equal(cut.values, whole.values[heaviest])


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_sparse_vectors_are_compared_as_the_folder_says(similarity: str, tmp_path: Path) -> None:
    folder = sparse(tmp_path, "max")
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": similarity})
    model, documents = load(folder), ["hot tea", "a dog by the river", "the cat drank hot tea by the river"]
    query, *of_documents = dense(model.encode_sparse(["hot tea", *documents]), model.config.vocab_size).astype(float)
    scores = {record["text"]: record["score"] for record in model.rank("hot tea", documents)}
    for text, vector in zip(documents, of_documents, strict=True):
        lengths = np.linalg.norm(query) * np.linalg.norm(vector) if similarity == "cosine" else 1
        assert scores[text] == pytest.approx(query @ vector / lengths, rel=1e-6)
    assert (max(scores.values()) == pytest.approx(1)) == (similarity == "cosine")


@pytest.mark.parametrize("cosine", [False, True])
def test_sparse_vectors_of_many_texts_are_compared_as_one(cosine: bool) -> None:
    random, product = np.random.default_rng(0), SparseProduct(cosine)
    vectors = []
    for count in (0, 3, 90, 0, 60, 1, 0):
        indices = np.sort(random.choice(100, count, replace=False)).astype(np.int32)
        vectors.append(SparseVector(indices, random.random(count).astype(np.float32)))
    documents = SparseVectors.of(vectors)
    for query in vectors:
        one_by_one = [product.score(query, document, ()) for document in vectors]
        np.testing.assert_allclose(product.scores(query, documents), one_by_one, rtol=0, atol=1e-12)
    assert product.scores(vectors[2], SparseVectors.of([])).shape == (0,)


def test_sparse_vectors_of_ranked_texts_have_their_prompts(tmp_path: Path) -> None:
    """Of several prompts for documents that of the name "document"."""
    folder = sparse(tmp_path, "max")
    prompts = {"passage": "a dog ", "document": "hot ", "query": "the river ", "corpus": "tea "}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts})
    model, documents = load(folder), ["the cat", "bread", "the queen sat"]
    width = model.config.vocab_size
    (query,) = dense(model.encode_sparse(["cat"], prompt_name="query"), width)
    expected = dense(model.encode_sparse(documents, prompt_name="document"), width) @ query
    records = model.rank("cat", documents)
    scores = [record["score"] for record in records]
    np.testing.assert_allclose(scores, [expected[record["corpus_id"]] for record in records], rtol=1e-5)
    assert scores == sorted(scores, reverse=True)


def test_sparse_vectors_need_a_head_and_dense_ones_a_pooling(tmp_path: Path, made: Made) -> None:
    with pytest.raises(BertcliError, match="A sparse vector needs a masked-language-model head"):
        load(made(head="classifier")).encode_sparse(["tea"])
    model = load(sparse(tmp_path, "max"))
    with pytest.raises(BertcliError, match="add --sparse"):
        model.encode(["tea"])
    assert model.encode(["tea"], pooling="mean").shape == (1, 32)


@pytest.mark.any_kernel
def test_sparse_vectors_are_the_same_whoever_makes_them(tmp_path: Path) -> None:
    model = load(sparse(tmp_path, "sum"))
    texts = [" ".join(TEXTS), *TEXTS] * 6
    how: dict[str, Any] = {"batch_tokens": 60, "chunk": (12, 3), "words": True}
    tasks = [plan(model, EncodeSparseOptions(workers=n, **how)) for n in (1, 2)]
    one, two = ([record for block in results(task, from_values(texts)) for record in block.records()] for task in tasks)
    assert one == two
    assert max(record["chunk"] for record in one) > 1
    (vector,) = model.encode_sparse([one[0]["text"]])
    assert_near(one[0]["values"], vector.values, 1e-5)
    assert one[0]["words"] == [model.tokenizer.piece(id) for id in vector.indices]


def test_sparse_tables_have_word_pieces_and_records_have_them_if_asked(tmp_path: Path) -> None:
    encode = ("encode", "--sparse", "-m", sparse(tmp_path, "max"), "tea")
    table = bertcli(*encode, "--format", "markdown").out
    heaviest = bertcli(*encode, "--tokens", "--format", "jsonl").records[0]
    assert {"indices", "values", "words"} < {*heaviest}
    assert "words" not in bertcli(*encode, "--format", "jsonl").records[0]
    best = max(zip(heaviest["values"], heaviest["words"], strict=True))
    for file in (tmp_path / "x.md", tmp_path / "X.MD"):
        assert bertcli(*encode, "-o", file).status == 0
        assert file.read_text(encoding="utf-8").splitlines()[-1].endswith(table.splitlines()[-1])
    for shown in (table, bertcli(*encode).out):
        assert f"{best[1]} {best[0]:.3f}" in shown


@pytest.mark.parametrize("ending", [".npz", ".jsonl", ".parquet"])
def test_sparse_files_hold_what_records_hold(ending: str, tmp_path: Path) -> None:
    folder, source, target = sparse(tmp_path / "m", "max"), tmp_path / "in.jsonl", tmp_path / f"out{ending}"
    rows = [{"id": f"t{i}", "text": text} for i, text in enumerate(TEXTS)]
    write_json_lines(source, [rows[0], {"id": "bad"}, *rows[1:]])
    ids = [] if ending == ".npz" else ["--id-column", "id"]
    result = bertcli("encode", "--sparse", "-m", folder, "-i", source, "-o", target, "--keep-going", *ids)
    assert (result.status, "1 of 5 texts could not be used" in result.err) == (1, True)
    expected = load(folder).encode_sparse(TEXTS)
    if ending == ".npz":
        with np.load(target) as file:
            arrays = dict(file)
        assert arrays["shape"].tolist() == [5, load(folder).config.vocab_size]
        assert arrays["format"].item() == b"csr"  # scipy.sparse.load_npz asks for it
        ends = arrays["indptr"].tolist()
        assert ends[1] == ends[2]  # the text that failed has no entries
        kept = [(start, end) for row, (start, end) in enumerate(pairwise(ends)) if row != 1]
        found = [(arrays["indices"][start:end], arrays["data"][start:end]) for start, end in kept]
    elif ending == ".jsonl":
        records = read_json_lines(target)
        assert [record["id"] for record in records] == ["t0", "bad", "t1", "t2", "t3"]
        found = [(record["indices"], record["values"]) for record in records if "error" not in record]
    else:
        parquet = pytest.importorskip("pyarrow.parquet")
        table = parquet.read_table(target).to_pylist()
        assert [row["id"] for row in table] == ["t0", "bad", "t1", "t2", "t3"]
        found = [(row["indices"], row["values"]) for row in table if row["error"] is None]
    for (indices, values), vector in zip(found, expected, strict=True):
        assert list(indices) == vector.indices.tolist()
        assert_near(values, vector.values, 1e-6)


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    "words",
    [
        "--pooling mean",
        "--layer 0",
        "--normalize",
        "--truncate-dim 3",
        "--dtype int8",
    ],
)
def test_sparse_refuses_what_is_for_dense_vectors(words: str, tmp_path: Path) -> None:
    option, *value = words.split()
    refused = wrong_usage("encode", "--sparse", "tea", option, *value, why=f"Invalid value for {option}")
    assert "--sparse" in refused.err
    wrong_usage("encode", "--tokens", "tea", why="is for sparse vectors: give sparse (--sparse), too.")
    array = bertcli("encode", "--sparse", "tea", "-o", tmp_path / "v.npy")
    assert "A .npy file holds one array, but this result has several." in array.error
