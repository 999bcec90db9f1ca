"""Cross-encoders and Routers made of modules: the numbers of sentence-transformers, and nothing skipped."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from helpers.bin_files import convert
from helpers.checkpoint_files import write_safetensors
from helpers.checkpoints import make
from helpers.json_files import change_json, read_json, write_json
from helpers.modular import (
    DOCUMENTS,
    QUERIES,
    QUERY,
    query_weights,
    write_asymmetric,
    write_cross_encoder,
    write_router,
)
from helpers.near import assert_near
from helpers.recorded import recorded
from helpers.terminal import bertcli as run

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.cache import missing
from bertcli.folder.files import Folder
from bertcli.kinds.sparse_vectors import SparseVector

RECORDED = recorded("modules.json")
ROLES = recorded("roles.json")


@pytest.mark.parametrize("pickled", [False, True])
def test_a_modular_cross_encoder_ranks(tmp_path: Path, pickled: bool) -> None:
    folder = write_cross_encoder(tmp_path / "model")
    model = bertcli.load(convert(folder) if pickled else folder)
    records = sorted(model.rank(QUERY, DOCUMENTS), key=lambda record: int(record["corpus_id"]))
    assert_near([record["score"] for record in records], RECORDED["scores"], 1e-5)
    assert missing(Folder(folder)) == []
    with pytest.raises(BertcliError, match="scores pairs: use rank, or choose a pooling"):
        model.encode(["a text"])
    assert model.encode(["a text"], pooling="cls").shape == (1, 32)


def test_a_modular_cross_encoder_is_explained_and_exported(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "model")
    (record,) = run("explain", "-m", folder, QUERY, "--text-pair", DOCUMENTS[0], "--format", "jsonl").records
    assert record["value"] == pytest.approx(RECORDED["scores"][0], abs=1e-5)
    assert run("export", "-m", folder, "-o", tmp_path / "model.onnx").status == 0
    (tokens,) = bertcli.load(folder).tokenizer.encode([QUERY], [DOCUMENTS[0]])
    inputs = {"input_ids": tokens.ids, "token_type_ids": tokens.segments, "attention_mask": [1] * len(tokens.ids)}
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (logits,) = session.run(["logits"], {name: np.array([values], np.int64) for name, values in inputs.items()})
    assert logits.tolist() == [[pytest.approx(RECORDED["scores"][0], abs=1e-5)]]


@pytest.mark.parametrize("path", ["document_0_Transformer", ""])
def test_a_router_encodes_documents(tmp_path: Path, path: str) -> None:
    folder = write_router(tmp_path / "model", path)
    assert missing(Folder(folder)) == []
    for (indices, values), wanted in zip(
        bertcli.load(folder).encode_sparse(DOCUMENTS), RECORDED["sparse"], strict=True
    ):
        assert indices.tolist() == [int(index) for index in wanted]
        assert_near(values, [*wanted.values()], 1e-5)
    assert "; the route for documents." in run("encode", "--sparse", "-m", folder, "tea").err


def assert_vectors(found: list[SparseVector], recorded: list[dict[str, float]]) -> None:
    for (indices, values), wanted in zip(found, recorded, strict=True):
        assert indices.tolist() == [int(index) for index in wanted]
        assert_near(values, [*wanted.values()], 1e-6)


@pytest.mark.parametrize("layout", ["weights", "bin", "json"])
def test_a_routers_queries_take_no_pass(tmp_path: Path, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_router(tmp_path / "model")
    table = folder / "query_0_SparseStaticEmbedding"
    if layout == "bin":
        convert(table)
    if layout == "json":
        vocabulary = read_json(table / "tokenizer.json")["model"]["vocab"]
        weights = query_weights(len(vocabulary))
        write_json(table / "idf.json", {piece: weights[id] for piece, id in vocabulary.items()})
        (table / "config.json").write_text('{"frozen": true, "path": "idf.json"}')
        (table / "model.safetensors").unlink()
    model = bertcli.load(folder)
    assert_vectors(model.encode_sparse(QUERIES, prompt_name="query"), RECORDED["queries"])
    result = run("encode", "--sparse", "-m", folder, "--prompt-name", "query", "--format", "jsonl", *QUERIES[:3])
    assert "query_0_SparseStaticEmbedding; no pass of the network." in result.err
    for record, wanted in zip(result.records, RECORDED["queries"], strict=False):
        assert record["indices"] == [int(index) for index in wanted]
        assert record["tokens"] >= len(wanted)
    monkeypatch.setattr(type(model.network), "__call__", None)
    assert model.encode_sparse(["tea"], prompt_name="query")
    assert (
        model.encode_sparse(["a " * 40 + "tea"], prompt_name="query", max_length=3, truncation="silent")[0][0].size < 3
    )
    with pytest.raises(BertcliError, match="A query has one vector: leave out chunk"):
        model.encode_sparse(["tea"], prompt_name="query", chunk=8)
    with pytest.raises(BertcliError, match="A query has no second text"):
        model.encode_sparse(["tea"], pairs=["hot"], prompt_name="query")
    with pytest.raises(BertcliError, match="has a table of sparse weights for queries, which gives no dense vectors"):
        model.encode(["tea"], prompt_name="query", pooling="mean")


def test_a_router_ranks_with_its_query_route(tmp_path: Path) -> None:
    folder = write_router(tmp_path / "model")
    model = bertcli.load(folder)
    for query, wanted in zip(QUERIES, RECORDED["products"], strict=True):
        records = sorted(model.rank(query, DOCUMENTS), key=lambda record: int(record["corpus_id"]))
        assert_near([record["score"] for record in records], wanted, 1e-5)
    result = run("rank", "-m", folder, QUERY, *DOCUMENTS)
    assert "queries: the weights of a query's pieces, from query_0_SparseStaticEmbedding; no pass" in result.err
    (folder / "config_sentence_transformers.json").write_text("{}")
    without_prompts = bertcli.load(folder)
    assert [without_prompts.kind.prompt_name(role) for role in ("query", "document")] == ["query", None]
    settings = {"prompts": {"query": "hot ", "document": ""}, "max_active_dims": 3, "similarity_fn_name": "cosine"}
    write_json(folder / "config_sentence_transformers.json", settings)
    prompted = bertcli.load(folder).encode_sparse(QUERIES, prompt_name="query")
    assert_vectors(prompted, RECORDED["prompted queries"])
    write_json(folder / "config_sentence_transformers.json", {**settings, "max_active_dims": None})
    model = bertcli.load(folder)
    for query, wanted in zip(QUERIES, RECORDED["cosines"], strict=True):
        records = sorted(model.rank(query, DOCUMENTS), key=lambda record: int(record["corpus_id"]))
        assert_near([record["score"] for record in records], wanted, 1e-6)
    (folder / "config_sentence_transformers.json").write_text('{"similarity_fn_name": "manhattan"}')
    with pytest.raises(BertcliError, match="There is no similarity 'manhattan'; choose from dot, cosine"):
        bertcli.load(folder).rank("tea", DOCUMENTS)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("router_config.json", {"parameters": {"route_mappings": {"a": "b"}}}, "has the route_mappings {'a': 'b'}"),
        ("query_0_SparseStaticEmbedding/config.json", {"path": "../idf.json"}, "which is no file next to it"),
        ("query_0_SparseStaticEmbedding/config.json", {"path": "idf.json"}, "idf.json is missing"),
    ],
)
def test_tables_for_queries_that_are_refused(tmp_path: Path, file: str, content: Any, message: str) -> None:
    folder = write_router(tmp_path / "model")
    change_json(folder / file, content)
    with pytest.raises(BertcliError, match=message):
        bertcli.load(folder).encode_sparse(["tea"], prompt_name="query")


def test_a_table_that_is_missing_or_too_short(tmp_path: Path) -> None:
    folder = write_router(tmp_path / "model")
    table = folder / "query_0_SparseStaticEmbedding"
    write_safetensors(table / "model.safetensors", {"weight": ("F32", np.ones(20, np.float32))})
    with pytest.raises(BertcliError, match="The table for queries has no weight of 'tea'"):
        bertcli.load(folder).encode_sparse(["tea"], prompt_name="query")
    write_safetensors(table / "model.safetensors", {"weight": ("F32", np.full(400, np.nan, np.float32))})
    with pytest.raises(BertcliError, match="NaN or infinite numbers"):
        bertcli.load(folder).encode_sparse(["tea"], prompt_name="query")
    (table / "model.safetensors").unlink()
    assert missing(Folder(folder)) == ["query_0_SparseStaticEmbedding/model.safetensors"]


def test_modules_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = write_cross_encoder(tmp_path / "a")
    (folder / "3_LayerNorm" / "config.json").write_text('{"dimension": 7}')
    with pytest.raises(BertcliError, match=r"has tensor norm.weight of shape \(32,\), but .* requires \(7,\)"):
        bertcli.load(folder).rank(QUERY, DOCUMENTS)
    folder = write_cross_encoder(tmp_path / "b")
    modules = read_json(folder / "modules.json")
    write_json(folder / "modules.json", modules[:-1])
    with pytest.raises(BertcliError, match="lists a LayerNorm, which only a cross-encoder may have"):
        bertcli.load(folder).encode(["a text"])
    folder = write_router(tmp_path / "c")
    (folder / "router_config.json").write_text('{"types": {}, "structure": {"query": []}}')
    with pytest.raises(BertcliError, match=r"router_config.json has no route for documents: use another model\."):
        bertcli.load(folder)


def test_a_model_with_code_of_its_own_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path, config={"auto_map": {"AutoModel": "modeling.Model"}})
    assert bertcli.load(folder)  # its weights are those of BERT
    config = read_json(folder / "config.json")
    write_json(folder / "config.json", config | {"num_hidden_layers": 3})
    with pytest.raises(BertcliError, match=r"lacks the tensor .*: it has code of its own \(auto_map in config.json\)"):
        bertcli.load(folder)


def test_a_router_has_a_network_for_queries(tmp_path: Path) -> None:
    folder = write_asymmetric(tmp_path / "model")
    assert missing(Folder(folder)) == []
    model, texts, recorded = bertcli.load(folder), ROLES["texts"], ROLES["vectors"]["asymmetric"]
    vectors = {name: model.encode(texts, prompt_name=name) for name in (None, "query", "document")}
    for name, role in ((None, "text"), ("query", "query"), ("document", "document")):
        assert_near(vectors[name], recorded[role], 1e-6)
    of_queries = model.for_prompt("query")
    assert of_queries is model.for_prompt("query"), "it is opened once"
    assert of_queries.for_prompt("document").config == model.config
    pickled = pickle.loads(pickle.dumps(of_queries))
    np.testing.assert_array_equal(pickled.encode(texts, prompt_name="query"), vectors["query"])
    told = run("encode", "-m", folder, "tea", "--prompt-name", "query").err
    assert "pooling cls, from query_1_Pooling/config.json; vectors of length 1; the route for queries; 'tea: '" in told
    assert "with a network of their own for queries" in run("info", folder).out
    (folder / "query_0_Transformer" / "model.safetensors").unlink()
    assert missing(Folder(folder)) == ["query_0_Transformer/model.safetensors"]


@pytest.mark.parametrize("asked", [(), ("--prompt-name", "query")])
def test_a_router_is_searched_by_both_networks(tmp_path: Path, asked: tuple[str, ...]) -> None:
    folder, (query, other) = write_asymmetric(tmp_path / "model"), ROLES["texts"]
    recorded = ROLES["vectors"]["asymmetric"]
    expected = np.sort(np.array(recorded["query"])[0] @ np.array(recorded["document"]).T)[::-1]
    texts, vectors, index = tmp_path / "texts.txt", tmp_path / "vectors.npy", tmp_path / "texts.index"
    texts.write_text(f"{query}\n{other}\n", encoding="utf-8")
    assert run("encode", "-m", folder, "-i", texts, "-o", vectors).status == 0
    ways: list[list[str | Path]] = [["-i", texts], ["-i", vectors]]
    ways += [["-i", texts, "--index", index]] * 2
    for arguments in ways:
        result = run("search", "-m", folder, query, *arguments, *asked, "--format", "jsonl")
        assert result.status == 0, result.err
        assert "prompts: 'tea: ' before the query, none before what is searched." in result.err
        hits = result.records[0].get("nearest", result.records)
        assert_near([hit["score"] for hit in hits], expected, 1e-6)
    assert run("encode", "-m", folder, "-i", texts, "-o", vectors, "--pooling", "max").status == 0
    refused = run("search", "-m", folder, query, "-i", vectors, *asked)
    assert "was made with --pooling 'max', and not with 'mean', which is this model's" in refused.err


def test_routes_that_nothing_runs_are_refused(tmp_path: Path) -> None:
    folder = write_asymmetric(tmp_path / "model")
    router = read_json(folder / "router_config.json")
    other = router | {"parameters": {"default_route": "query"}}
    write_json(folder / "router_config.json", other)
    with pytest.raises(BertcliError, match="has the default_route 'query'; bertcli supports 'document'"):
        bertcli.load(folder).encode(["tea"])
    alone = router | {"structure": {"document": router["structure"]["document"]}}
    write_json(folder / "router_config.json", alone)
    with pytest.raises(BertcliError, match="has no route for queries that bertcli runs: leave out prompt_name"):
        bertcli.load(folder).encode(["tea"], prompt_name="query")
