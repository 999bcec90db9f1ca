"""bge-m3's three outputs against FlagEmbedding (tests/reference/bge_m3.json), by every way to them, and bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.bge_m3 import DOCUMENTS, HIDDEN, QUERIES, layer, write_bge_m3
from helpers.bin_files import bin_file
from helpers.recorded import recorded
from helpers.served import serving
from helpers.terminal import bertcli as command

import bertcli
from bertcli.errors import BertcliError
from bertcli.wings.interpret.compute.explain import explain

RECORDED = recorded("bge_m3.json")
TEXTS = [*QUERIES, *DOCUMENTS]
NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bge_m3(tmp_path_factory.mktemp("bge-m3"))


def of_all_texts(output: str) -> list[Any]:
    return [RECORDED["texts"][text][output] for text in TEXTS]


def check_sparse(found: dict[int, float], expected: dict[str, float]) -> None:
    assert sorted(found) == sorted(map(int, expected))
    for id, weight in found.items():
        assert weight == pytest.approx(expected[str(id)], abs=1e-5)


def check_ranking(records: list[dict[str, Any]], query: int, name: str = "colbert") -> None:
    scores = [record["score"] for record in records]
    assert scores == sorted(scores, reverse=True)
    expected = [RECORDED["scores"][query][record["corpus_id"]][name] for record in records]
    np.testing.assert_allclose(scores, expected, **NEAR)


@pytest.mark.parametrize("engine", ["numpy", "onnx"])
def test_the_commands_equal_flagembedding(engine: str, folder: Path) -> None:
    if engine == "onnx":
        pytest.importorskip("onnxruntime")
    how = ["-m", str(folder), "--engine", engine, "--format", "jsonl"]
    dense = command("encode", *how, *TEXTS).records
    np.testing.assert_allclose([record["embedding"] for record in dense], of_all_texts("dense"), **NEAR)
    sparse = command("encode", "--sparse", "--tokens", *how, *TEXTS).records
    for record, expected in zip(sparse, of_all_texts("sparse"), strict=True):
        check_sparse(dict(zip(record["indices"], record["values"], strict=True)), expected)
        assert not {"<s>", "</s>", "<pad>", "<unk>"}.intersection(record["words"])
    late = command("encode", "--pooling", "none", *how, *TEXTS).records
    for record, expected in zip(late, of_all_texts("late"), strict=True):
        np.testing.assert_allclose(record["embeddings"], expected, **NEAR)
        assert len(record["tokens"]) == len(expected)
        assert record["tokens"][-1] == "</s>"
        assert "<s>" not in record["tokens"]
    for number, query in enumerate(QUERIES):
        ran = command("rank", *how, query, *DOCUMENTS)
        check_ranking(ran.records, number)
        assert "mean, over the query's tokens" in ran.err


def test_a_server_equals_flagembedding(folder: Path) -> None:
    with serving([bertcli.load(folder)]) as server:
        np.testing.assert_allclose(server.given("/embed", {"inputs": TEXTS}), of_all_texts("dense"), **NEAR)
        for entries, expected in zip(
            server.given("/embed_sparse", {"inputs": TEXTS}), of_all_texts("sparse"), strict=True
        ):
            check_sparse({entry["index"]: entry["value"] for entry in entries}, expected)
        for rows, expected in zip(server.given("/embed_all", {"inputs": TEXTS}), of_all_texts("late"), strict=True):
            np.testing.assert_allclose(rows, expected, **NEAR)
        for number, query in enumerate(QUERIES):
            ranked = server.given("/rerank", {"query": query, "texts": [*DOCUMENTS], "raw_scores": True})
            check_ranking([{"score": one["score"], "corpus_id": one["index"]} for one in ranked], number)


def test_explain_adds_up_to_the_score(folder: Path) -> None:
    model = bertcli.load(folder)
    (found,) = explain(model, [QUERIES[0]], [DOCUMENTS[0]])
    assert found.value == pytest.approx(RECORDED["scores"][0][0]["colbert"], abs=1e-5)
    words = found.record["words"]
    assert sum(word["contribution"] for word in words) == pytest.approx(found.value)
    assert [word["word"] for word in words] == model.tokenizer.encode([QUERIES[0]])[0].pieces[1:]
    (other,) = explain(model, [QUERIES[0]], contrast=DOCUMENTS[0])  # the cosine of the dense vectors, as before
    assert other.value == pytest.approx(RECORDED["scores"][0][0]["dense"], abs=1e-5)


def test_info_says_what_the_folder_can_do(folder: Path, tmp_path: Path) -> None:
    told = command("info", "-m", str(folder), "--format", "json").json
    assert told["kind"] == "sentence vectors, sparse vectors and late interaction (bge-m3)"
    assert {"sparse_linear.pt", "colbert_linear.pt"} <= {file["name"] for file in told["files"]}
    names = [capability["command"] for capability in told["commands"]]
    assert {"encode", "encode --sparse", "encode --pooling none", "rank"} <= {*names}
    explained = [capability["example"] for capability in told["commands"] if capability["command"] == "explain"]
    assert ["--contrast" in example for example in explained] == [True, False]
    assert "--text-pair" in explained[1]
    model = bertcli.load(write_bge_m3(tmp_path, sparse=False))
    with pytest.raises(BertcliError, match="masked-language-model head"):
        model.encode_sparse(["tea"])
    check_ranking(model.rank(QUERIES[0], DOCUMENTS), 0)


def test_a_folder_may_have_weights_of_tokens_alone(tmp_path: Path) -> None:
    model = bertcli.load(write_bge_m3(tmp_path, late=False))
    check_ranking(model.rank(QUERIES[0], DOCUMENTS), 0, "sparse")
    assert next(iter(model.encode_blocks(["tea"], pooling="none"))).vectors[0].shape[0] == len(
        model.tokenizer.encode(["tea"])[0].ids
    )


def test_a_folder_without_modules_pools_as_flagembedding(tmp_path: Path) -> None:
    model = bertcli.load(write_bge_m3(tmp_path, modules=False, older=True))
    np.testing.assert_allclose(model.encode(TEXTS), of_all_texts("dense"), **NEAR)
    weights = model.encode_sparse(TEXTS[:1])[0].values
    np.testing.assert_allclose(weights.sum(), sum(of_all_texts("sparse")[0].values()), **NEAR)


BAD = {
    "of another width": (layer("sparse", 1, inputs=HIDDEN + 1), "weight of shape"),
    "with two outputs": (layer("sparse", 2), "weight of shape"),
    "without a bias": (bin_file({"weight": ("F32", np.ones((1, HIDDEN), np.float32))}), "the two tensors"),
    "of numbers": (
        bin_file({"weight": ("I64", np.ones((1, HIDDEN), np.int64)), "bias": ("I64", np.ones(1, np.int64))}),
        "sparse_linear.pt",
    ),
    "that calls": (b"\x80\x02cos\nsystem\nX\x04\0\0\0trueq\x00\x85R.", "sparse_linear.pt"),
    "cut short": (layer("sparse", 1)[:300], "sparse_linear.pt"),
    "that is empty": (b"", "sparse_linear.pt"),
}


@pytest.mark.any_kernel
@pytest.mark.parametrize("kind", BAD)
def test_a_bad_layer_is_one_line(kind: str, tmp_path: Path) -> None:
    data, words = BAD[kind]
    (write_bge_m3(tmp_path) / "sparse_linear.pt").write_bytes(data)
    ran = command("encode", "--sparse", "-m", str(tmp_path), "tea", "--format", "json")
    assert words in ran.error
