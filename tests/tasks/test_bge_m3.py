"""bge-m3's three outputs against FlagEmbedding (tests/reference/bge_m3.json), by every way to them, and bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.bge_m3 import DOCUMENTS, HIDDEN, QUERIES, layer, write_bge_m3
from helpers.bin_files import bin_file
from helpers.served import serving
from helpers.terminal import bertcli as command
from safetensors.numpy import load_file

import bertcli
from bertcli.errors import BertcliError
from bertcli.views.compute.explain import explain

RECORDED = json.loads((Path(__file__).parents[1] / "reference" / "bge_m3.json").read_text(encoding="utf-8"))
TEXTS = [*QUERIES, *DOCUMENTS]
NEAR: dict[str, Any] = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_bge_m3(tmp_path_factory.mktemp("bge-m3"))


def recorded(output: str) -> list[Any]:
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
def test_the_outputs_equal_flagembedding(engine: Any, folder: Path) -> None:
    if engine == "onnx":
        pytest.importorskip("onnxruntime")
    model = bertcli.load(folder, engine=engine)
    np.testing.assert_allclose(model.encode(TEXTS), recorded("dense"), **NEAR)
    for vector, expected in zip(model.encode_sparse(TEXTS), recorded("sparse"), strict=True):
        check_sparse(dict(zip(vector.indices.tolist(), vector.values.tolist(), strict=True)), expected)
    blocks = model.encode_blocks(TEXTS, pooling="none", batch_tokens=20)
    for rows, expected in zip((rows for block in blocks for rows in block.vectors), recorded("late"), strict=True):
        np.testing.assert_allclose(rows, expected, **NEAR)
    for number, query in enumerate(QUERIES):
        check_ranking(model.rank(query, DOCUMENTS), number)


@pytest.mark.parametrize("engine", ["numpy", "onnx"])
def test_the_commands_equal_flagembedding(engine: str, folder: Path) -> None:
    if engine == "onnx":
        pytest.importorskip("onnxruntime")
    how = ["-m", str(folder), "--engine", engine, "--format", "jsonl"]
    dense = command("encode", *how, *TEXTS).records
    np.testing.assert_allclose([record["embedding"] for record in dense], recorded("dense"), **NEAR)
    sparse = command("encode", "--sparse", "--tokens", *how, *TEXTS).records
    for record, expected in zip(sparse, recorded("sparse"), strict=True):
        check_sparse(dict(zip(record["indices"], record["values"], strict=True)), expected)
        assert not {"<s>", "</s>", "<pad>", "<unk>"}.intersection(record["words"])
    late = command("encode", "--pooling", "none", *how, *TEXTS).records
    for record, expected in zip(late, recorded("late"), strict=True):
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
        np.testing.assert_allclose(server.given("/embed", {"inputs": TEXTS}), recorded("dense"), **NEAR)
        for entries, expected in zip(server.given("/embed_sparse", {"inputs": TEXTS}), recorded("sparse"), strict=True):
            check_sparse({entry["index"]: entry["value"] for entry in entries}, expected)
        for rows, expected in zip(server.given("/embed_all", {"inputs": TEXTS}), recorded("late"), strict=True):
            np.testing.assert_allclose(rows, expected, **NEAR)
        for number, query in enumerate(QUERIES):
            ranked = server.given("/rerank", {"query": query, "texts": [*DOCUMENTS], "raw_scores": True})
            check_ranking([{"score": one["score"], "corpus_id": one["index"]} for one in ranked], number)


WEIGHTS = {"dense": 0.4, "sparse": 0.2, "late": 0.4}
COMBINED: dict[str, dict[str, float]] = {  # what FlagEmbedding calls the scores
    "dense": {"dense": 1}, "sparse": {"sparse": 3}, "colbert": {"late": 0.5},
    "sparse+dense": {"dense": 0.4, "sparse": 0.2}, "colbert+sparse+dense": WEIGHTS,
}  # fmt: skip


@pytest.mark.parametrize("engine", ["numpy", "onnx"])
@pytest.mark.parametrize("name", COMBINED)
def test_combined_scores_equal_flagembedding(name: str, engine: str, folder: Path) -> None:
    if engine == "onnx":
        pytest.importorskip("onnxruntime")
    weights = ",".join(f"{output}={weight}" for output, weight in COMBINED[name].items())
    how = ["-m", str(folder), "--engine", engine, "--format", "jsonl", "--combine", weights]
    for number, query in enumerate(QUERIES):
        check_ranking(command("rank", *how, query, *DOCUMENTS).records, number, name)


def test_combined_scores_from_python_and_http(folder: Path) -> None:
    model = bertcli.load(folder)
    asked = {"texts": [*DOCUMENTS], "raw_scores": True, "combine": WEIGHTS}
    with serving([model]) as server:
        for number, query in enumerate(QUERIES):
            check_ranking(model.rank(query, DOCUMENTS, combine=WEIGHTS), number, "colbert+sparse+dense")
            ranked = server.given("/rerank", {"query": query, **asked})
            records = [{"score": one["score"], "corpus_id": one["index"]} for one in ranked]
            check_ranking(records, number, "colbert+sparse+dense")
        refused = server.ask("/rerank", {"query": "tea", "texts": ["tea"], "combine": {"token": 1}})
        assert refused.status == 422
        assert "no output 'token'" in json.dumps(refused.body)


def test_several_queries_are_combined_as_one_by_one(folder: Path) -> None:
    model = bertcli.load(folder)
    queries = [query for query in QUERIES for _ in DOCUMENTS]
    together = model.rank(queries, [*DOCUMENTS] * len(QUERIES), combine=WEIGHTS, batch_tokens=16)
    apart = [record["score"] for query in QUERIES for record in model.rank(query, DOCUMENTS, combine=WEIGHTS)]
    np.testing.assert_allclose([record["score"] for record in together], apart, **NEAR)


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"dense": -1.0}, "weights of 0 or more"), ({}, "weights of 0 or more"), ({"late": 0}, "weights of 0 or more"),
        ({"dense": float("inf")}, "weights of 0 or more"), ({"dense": "1"}, "weights of 0 or more"),
        ({"colbert": 1}, "takes dense, sparse, late"),
    ],
)  # fmt: skip
def test_weights_that_are_none_are_refused(weights: Any, words: str, folder: Path) -> None:
    with pytest.raises(BertcliError, match=words):
        bertcli.load(folder).rank("tea", ["tea"], combine=weights)


@pytest.mark.any_kernel
def test_other_weights_and_models_are_refused_by_the_command(folder: Path, tmp_path: Path) -> None:
    ran = command("rank", "-m", folder, "tea", "tea", "--combine", "dense")
    assert ran.status == 2
    assert "dense=0.4,sparse=0.2,late=0.4" in ran.err
    assert "two weights" in command("rank", "-m", folder, "tea", "tea", "--combine", "late=1,late=2").err
    write_bge_m3(tmp_path, late=False)
    assert "takes dense, sparse" in command("rank", "-m", tmp_path, "tea", "tea", "--combine", "late=1").error
    assert "leave it out" in command("rank", "-m", "bert-mini-sentence", "tea", "tea", "--combine", "late=1").error


ALL = ("--outputs", "dense,sparse,late")


def arrays_in(file: Path) -> dict[str, Any]:
    with np.load(file) as arrays:
        return dict(arrays)


def check_arrays(arrays: Any, places: list[int]) -> None:
    """The outputs in a file, of the texts at these places."""
    np.testing.assert_allclose(arrays["embeddings"], [recorded("dense")[i] for i in places], **NEAR)
    for row, place in enumerate(places):
        entries = slice(*arrays["indptr"][row : row + 2])
        weights = zip(arrays["indices"][entries].tolist(), arrays["data"][entries].tolist(), strict=True)
        check_sparse(dict(weights), recorded("sparse")[place])
        vectors = arrays["late"][slice(*arrays["late_offsets"][row : row + 2])]
        np.testing.assert_allclose(vectors, recorded("late")[place], **NEAR)
    assert len(arrays["late_offsets"]) == len(arrays["indptr"]) == len(places) + 1


@pytest.mark.parametrize("engine", ["numpy", "onnx"])
@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_a_file_of_all_outputs_equals_flagembedding(engine: str, ending: str, folder: Path, tmp_path: Path) -> None:
    if engine == "onnx":
        pytest.importorskip("onnxruntime")
    file = tmp_path / f"x{ending}"
    ran = command("encode", "-m", folder, "--engine", engine, *ALL, "-o", file, *TEXTS)
    assert ran.status == 0, ran.err
    check_arrays(arrays_in(file) if ending == ".npz" else load_file(file), [*range(len(TEXTS))])
    (hit, *_) = command("search", "-m", folder, TEXTS[1], "--in", file, "--format", "jsonl").records[0]["nearest"]
    assert hit["row"] == 1  # the dense vectors are those that are searched


@pytest.mark.any_kernel
def test_shards_of_all_outputs_merge_to_the_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS), encoding="utf-8")
    run = ("encode", "-m", folder, *ALL, "-i", tmp_path / "texts.jsonl", "--batch-tokens", "16")
    for number in range(3):
        assert command(*run, "--shard", f"{number}/3", "-o", tmp_path / "part.npz").status == 0
    parts = sorted(tmp_path.glob("part*.npz"))
    assert len(parts) == 3
    assert command(*run, "-o", tmp_path / "whole.npz").status == 0
    assert command("merge", *parts, "-o", tmp_path / "merged.npz").status == 0
    assert (tmp_path / "merged.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


def test_a_text_that_cannot_be_used_has_no_outputs(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.jsonl").write_text('{"text": "hot tea, good?"}\n{"text": 5}\n', encoding="utf-8")
    file = tmp_path / "x.npz"
    ran = command("encode", "-m", folder, *ALL, "-i", tmp_path / "texts.jsonl", "-o", file, "--keep-going")
    assert ran.status == 1
    arrays = arrays_in(file)
    assert not arrays["embeddings"][1].any()
    assert arrays["indptr"].tolist() == [0, len(recorded("sparse")[0]), len(recorded("sparse")[0])]
    assert arrays["late_offsets"].tolist() == [0, len(recorded("late")[0]), len(recorded("late")[0])]
    np.testing.assert_allclose(arrays["embeddings"][0], recorded("dense")[0], **NEAR)


def test_records_and_blocks_hold_the_outputs(folder: Path) -> None:
    records = command("encode", "-m", folder, *ALL, "--format", "jsonl", *TEXTS).records
    model = bertcli.load(folder)
    blocks = model.encode_blocks(TEXTS, outputs=["late", "sparse"])
    outputs: list[Any] = [output for block in blocks for output in block.vectors]
    for place, record in enumerate(records):
        np.testing.assert_allclose(record["embedding"], recorded("dense")[place], **NEAR)
        check_sparse(dict(zip(record["indices"], record["values"], strict=True)), recorded("sparse")[place])
        np.testing.assert_allclose(record["embeddings"], recorded("late")[place], **NEAR)
        assert outputs[place].dense is None
        np.testing.assert_allclose(outputs[place].late, recorded("late")[place], **NEAR)
    table = command("encode", "-m", folder, "--outputs", "sparse", TEXTS[0])
    assert "entries" in table.out
    assert "size" not in table.out
    with pytest.raises(BertcliError, match="encode_blocks"):
        model.encode(TEXTS, outputs=["dense"])


@pytest.mark.any_kernel
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--outputs", "dense,colbert"), "no output 'colbert'"),
        (("--outputs", "dense,dense"), "each output once"),
        ((*ALL, "--pooling", "mean"), "--pooling"), ((*ALL, "--chunk", "8"), "--chunk"),
        ((*ALL, "--sparse"), "--sparse"), ((*ALL, "-o", "x.npy"), ".npz"),
    ],
)  # fmt: skip
def test_outputs_that_do_not_fit_are_refused(options: tuple[str, ...], words: str, folder: Path) -> None:
    ran = command("encode", "-m", folder, *options, "tea")
    assert ran.status in (1, 2)
    assert words in ran.err
    assert "leave it out" in command("encode", "-m", "bert-mini-sentence", *ALL, "tea").error


def test_explain_adds_up_to_the_score(folder: Path) -> None:
    model = bertcli.load(folder)
    (found,) = explain(model, [QUERIES[0]], [DOCUMENTS[0]])
    assert found.value == pytest.approx(RECORDED["scores"][0][0]["colbert"], abs=1e-5)
    words = found.record["words"]
    assert sum(word["contribution"] for word in words) == pytest.approx(found.value)
    assert [word["word"] for word in words] == model.tokenizer.encode([QUERIES[0]])[0].pieces[1:]
    (other,) = explain(model, [QUERIES[0]], versus=DOCUMENTS[0])  # the cosine of the dense vectors, as before
    assert other.value == pytest.approx(RECORDED["scores"][0][0]["dense"], abs=1e-5)


def test_info_says_what_the_folder_can_do(folder: Path, tmp_path: Path) -> None:
    told = json.loads(command("info", "-m", str(folder), "--format", "json").out)
    assert told["kind"] == "sentence vectors, sparse vectors and late interaction (bge-m3)"
    assert {"sparse_linear.pt", "colbert_linear.pt"} <= {file["name"] for file in told["files"]}
    names = [capability["command"] for capability in told["commands"]]
    assert {"encode", "encode --sparse", "encode --pooling none", "rank"} <= {*names}
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
    np.testing.assert_allclose(model.encode(TEXTS), recorded("dense"), **NEAR)
    weights = model.encode_sparse(TEXTS[:1])[0].values
    np.testing.assert_allclose(weights.sum(), sum(recorded("sparse")[0].values()), **NEAR)


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
