"""What each route answers: the forms that clients know, with the numbers of the commands."""

import json
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import openapi_spec_validator
import pytest
from conftest import Made
from helpers.json_files import read_json, write_json
from helpers.late_folders import DOCUMENTS as LATE_DOCUMENTS
from helpers.late_folders import write_late
from helpers.modular import write_asymmetric, write_router
from helpers.near import assert_near
from helpers.served import Running, serving
from openapi_schema_validator import OAS31Validator
from reference import task_cases as cases

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.hub import sample
from bertcli.model import Model
from bertcli.wings.serve.answers import written
from bertcli.wings.serve.service import Limits
from bertcli.wings.serve.stream import QueuedTask

TEXTS = ["A dog ran home.", "Interest rates rose.", "", "The puppy went back to its house, and slept."]


@pytest.fixture(scope="module")
def models(made: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    """One of each kind, by a word for what it is for."""
    late = write_late(tmp_path_factory.mktemp("late") / "late", "modules fixed")
    folders = {"tag": cases.TAGGER, "answer": cases.READER, "rank": cases.RANKER, "zero-shot": cases.INFERENCE}
    return {
        "embed": bertcli.load("bert-mini-sentence"),
        "fill-mask": bertcli.load("bert-mini-mlm"),
        "classify": bertcli.load("bert-mini-sentiment"),
        **{use: bertcli.load(made(**keywords)) for use, keywords in folders.items()},
        "late": bertcli.load(late),
    }


@pytest.fixture(scope="module")
def running(models: dict[str, Model]) -> Iterator[Running]:
    with serving([*models.values()]) as server:
        yield server


def test_openai_embeddings(running: Running, models: dict[str, Model]) -> None:
    model = models["embed"]
    answer = running.given("/v1/embeddings", {"input": TEXTS, "model": "gpt", "user": "x", "something": 1})
    assert list(answer) == ["object", "data", "model", "usage"]
    assert [(one["object"], one["index"]) for one in answer["data"]] == [("embedding", i) for i in range(4)]
    vectors = np.array([one["embedding"] for one in answer["data"]])
    assert_near(vectors, model.encode(TEXTS), 1e-6)
    assert answer["model"] == model.name
    counted = sum(len(tokens.ids) for tokens in model.tokenizer.encode(TEXTS))
    assert answer["usage"] == {"prompt_tokens": counted, "total_tokens": counted}
    assert running.given("/embeddings", {"input": TEXTS})["data"] == answer["data"]
    alone = running.given("/v1/embeddings", {"input": TEXTS[0]})["data"]
    assert_near(alone[0]["embedding"], vectors[0], 1e-6)


def test_floats_are_the_shortest_decimals_of_float32(running: Running, models: dict[str, Model]) -> None:
    (one,) = running.given("/v1/embeddings", {"input": [TEXTS[0]]})["data"]
    vector = models["embed"].encode([TEXTS[0]])[0]
    assert np.array(one["embedding"], np.float32).tobytes() == vector.tobytes()
    assert max(len(str(number)) for number in one["embedding"]) <= len("-0.000012345678")


def test_numbers_are_read_back_as_the_same_float32() -> None:
    drawn = np.random.default_rng(0)
    numbers = (10 ** drawn.uniform(-13, 6, 50_000) * drawn.choice([-1, 1], 50_000)).astype(np.float32)
    numbers[:11] = 0, -1, 0.5, 0.1, 2**-24, 123456.789, 1e-45, 1e-30, 3.4e38, 2**24 + 2, -1e9
    for array in (numbers, numbers.reshape(5, 10_000), numbers.reshape(5, 10_000).T, numbers[::2]):
        assert np.array(json.loads(written([array, 1])[1:-3]), np.float32).tobytes() == array.tobytes()
    assert max(map(len, written(numbers[11:]).decode().strip("[]").split(","))) <= len("-0.0000123456789")


def test_no_number_that_is_none_is_written_as_null() -> None:
    for answer in ([1.0, float("nan")], {"a": [np.array([1, np.inf], np.float32)]}, [[0.5] * 3000, float("-inf")]):
        with pytest.raises(BertcliError, match="NaN or infinite"):
            written(answer)
    assert written({"a": None, "b": ["null", 0.5]}) == b'{"a":null,"b":["null",0.5]}'


def test_a_large_answer_is_written_whole() -> None:
    rows = [{"index": i, "words": ["ä\n"] * (i % 7), "x": i / 3} for i in range(5000)]
    answer = {"data": rows, "empty": [], "deep": [[rows, "a" * 100_000]], "last": None}
    assert json.loads(written(answer)) == answer


def test_vectors_that_the_model_leaves_as_they_are_have_length_1_once_they_are_cut(
    running: Running, models: dict[str, Model]
) -> None:
    body = {"input": TEXTS[:2], "model": models["fill-mask"].name}
    whole, cut, raw = (
        np.array([one["embedding"] for one in running.given("/v1/embeddings", body | more)["data"]])
        for more in ({}, {"dimensions": 8}, {"dimensions": 8, "normalize": False})
    )
    assert (np.linalg.norm(whole, axis=1) > 2).all()
    assert_near(raw, whole[:, :8], 1e-5)
    assert_near(cut, raw / np.linalg.norm(raw, axis=1, keepdims=True), 1e-5)


def test_every_token_has_a_vector(running: Running, models: dict[str, Model]) -> None:
    model = models["embed"]
    rows = running.given("/embed_all", {"inputs": TEXTS[:2], "model": model.name})
    (block,) = model.encode_blocks(TEXTS[:2], pooling="none")
    for row, expected in zip(rows, block.vectors, strict=True):
        assert_near(row, expected, 2e-6)


@pytest.mark.parametrize("role", ["query", "document"])
def test_late_interaction_has_a_query_and_a_document_side(
    running: Running, models: dict[str, Model], role: str
) -> None:
    model = models["late"]
    rows = running.given("/embed_all", {"inputs": [*LATE_DOCUMENTS], "model": model.name, "input_type": role})
    blocks = model.encode_blocks([*LATE_DOCUMENTS], pooling="none", prompt_name=role)
    expected = [vectors for block in blocks for vectors in block.vectors]
    for row, vectors in zip(rows, expected, strict=True):
        assert_near(np.reshape(row, vectors.shape), vectors, 2e-6)


def test_sparse_vectors(running: Running, models: dict[str, Model]) -> None:
    rows = running.given("/embed_sparse", {"inputs": TEXTS[:2]})
    for row, vector in zip(rows, models["fill-mask"].encode_sparse(TEXTS[:2]), strict=True):
        found = {one["index"]: one["value"] for one in row}
        both = [found.keys() & {*vector.indices.tolist()}]
        assert len(both[0]) >= 0.999 * len(vector.indices)
        weights = dict(zip(vector.indices.tolist(), vector.values.tolist(), strict=True))
        assert_near([found[i] for i in both[0]], [weights[i] for i in both[0]], 1e-5)
    # Options of dense vectors alone are none of this use: a body that /embed heeds too is answered.
    of_dense = {"normalize": False, "truncate_dim": 4, "layer": 1, "pooling": "cls"}
    assert running.given("/embed_sparse", {"inputs": TEXTS[:2], **of_dense}) == rows
    assert running.ask("/embed_sparse", {"inputs": "a", "words": True}).status == 422


def test_a_query_takes_its_own_way_to_a_sparse_vector(tmp_path: Path) -> None:
    folder = write_router(tmp_path / "routed")
    write_json(folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder"})
    model = bertcli.load(folder)
    with serving([model]) as running:
        for given, name in (({"input_type": "query"}, "query"), ({"input_type": "document"}, None), ({}, None)):
            (row,) = running.given("/embed_sparse", {"inputs": "hot tea", **given})
            (vector,) = model.encode_sparse(["hot tea"], prompt_name=name)
            assert [one["index"] for one in row] == vector.indices.tolist()
            np.testing.assert_allclose([one["value"] for one in row], vector.values, rtol=1e-5)
        assert running.given("/info")["model_type"] == {"embedding": {"pooling": "splade"}}


def test_ids_of_a_query_are_of_the_routers_tokenizer_for_queries(tmp_path: Path) -> None:
    """In the folder of its network the words stand in another order, so that an id is another word."""
    folder = write_asymmetric(tmp_path / "routed")
    settings = {"model_type": "SentenceTransformer", "prompts": {"query": "", "document": ""}}
    write_json(folder / "config_sentence_transformers.json", settings)
    file = folder / "query_0_Transformer" / "tokenizer.json"
    words = read_json(file)
    vocabulary = words["model"]["vocab"]
    vocabulary["tea"], vocabulary["dog"] = vocabulary["dog"], vocabulary["tea"]
    # A token that the documents' tokenizer puts after a text, and the queries' does not.
    words["post_processor"]["single"] = words["post_processor"]["single"][:-1]
    write_json(file, words)
    model = bertcli.load(folder)
    with serving([model], Limits(quiet=True, token_ids=True)) as running:
        for route in ("query", "document"):
            (expected,) = model.encode(["hot tea"], prompt_name=route)
            (tokens,) = running.given("/tokenize", {"inputs": "hot tea", "prompt_name": route})
            ids = [token["id"] for token in tokens if not token["special"]]
            assert len(tokens) == {"query": 3, "document": 4}[route]
            for sent in (ids, [token["id"] for token in tokens]):
                (vector,) = running.given("/embed", {"inputs": [sent], "input_type": route})
                assert_near(vector, expected / np.linalg.norm(expected), 1e-6)


def test_ollama(running: Running, models: dict[str, Model]) -> None:
    answer = running.given("/api/embed", {"model": "all-minilm", "input": TEXTS, "truncate": True})
    assert list(answer) == ["model", "embeddings", "total_duration", "load_duration", "prompt_eval_count"]
    assert_near(answer["embeddings"], models["embed"].encode(TEXTS), 1e-6)


def test_token_vectors_and_cosines_are_cut_to_their_first_numbers(running: Running, models: dict[str, Model]) -> None:
    model = models["embed"]
    (found,) = running.given("/embed_all", {"inputs": TEXTS[0], "dimensions": 8})
    (block,) = model.encode_blocks([TEXTS[0]], pooling="none", truncate_dim=8, normalize=True)
    assert_near(found, block.vectors[0], 1e-6)
    inputs = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}
    vectors = model.encode(TEXTS, normalize=True, truncate_dim=8).astype(np.float64)
    cosines = running.given("/similarity", {"inputs": inputs, "dimensions": 8})
    assert_near(cosines, vectors[1:] @ vectors[0], 2e-6)


def test_scores_that_routes_compute_have_the_digits_of_a_float32(running: Running) -> None:
    inputs = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}
    scores: list[float] = running.given("/similarity", {"inputs": inputs})
    for model in ("bert-mini-sentence", "rerank", "late"):
        asked = {"model": model, "query": TEXTS[0], "documents": [*TEXTS[1:], *cases.DOCUMENTS]}
        for raw in (False, True):
            answer = running.given("/v1/rerank", asked | {"raw_scores": raw})
            scores += [one["relevance_score"] for one in answer["results"]]
    assert len({*scores}) > 20
    assert scores == [float(str(np.float32(score))) for score in scores]


# ------------------------------------------------------------------------------------------------------------ rankings


def _logits(model: Model) -> dict[int, float]:
    """Those of the documents; the model's activation is a sigmoid."""
    records = model.rank(cases.QUERY, cases.DOCUMENTS, truncation="silent")
    return {record["corpus_id"]: float(np.log(record["score"] / (1 - record["score"]))) for record in records}


def test_jina_and_cohere_rerank(running: Running, models: dict[str, Model]) -> None:
    body: dict[str, Any] = {"model": "rerank", "query": cases.QUERY, "documents": [*cases.DOCUMENTS]}
    answer = running.given("/v1/rerank", body)
    assert list(answer) == ["id", "model", "results", "usage", "meta", "truncated"]
    assert answer["model"] == models["rank"].name
    expected = models["rank"].rank(cases.QUERY, cases.DOCUMENTS, truncation="silent")
    assert [one["index"] for one in answer["results"]] == [record["corpus_id"] for record in expected]
    scores = [one["relevance_score"] for one in answer["results"]]
    assert_near(scores, [record["score"] for record in expected], 1e-6)
    assert all("document" not in one for one in answer["results"])
    assert [cut["index"] for cut in answer["truncated"]] == [2]
    assert answer["truncated"][0]["kept"] == 40 < answer["truncated"][0]["tokens"]
    two = running.given("/v2/rerank", body | {"top_n": 2, "return_documents": True})
    assert [one["document"] for one in two["results"]] == [
        {"text": cases.DOCUMENTS[record["corpus_id"]]} for record in expected[:2]
    ]
    objects = [{"text": document} for document in cases.DOCUMENTS]
    assert running.given("/v1/rerank", body | {"documents": objects})["results"] == answer["results"]


def test_tei_rerank(running: Running, models: dict[str, Model]) -> None:
    body: dict[str, Any] = {"query": cases.QUERY, "texts": [*cases.DOCUMENTS], "raw_scores": False}
    answer = running.given("/rerank", body)
    assert [set(one) for one in answer] == [{"index", "score"}] * len(cases.DOCUMENTS)
    raw = running.given("/rerank", body | {"raw_scores": True, "return_text": True})
    logits = _logits(models["rank"])
    assert_near([one["score"] for one in raw], [logits[one["index"]] for one in raw], 1e-4)
    assert [one["text"] for one in raw] == [cases.DOCUMENTS[one["index"]] for one in raw]
    as_jina = running.given("/rerank", {"query": cases.QUERY, "documents": [*cases.DOCUMENTS]})
    assert [one["index"] for one in as_jina["results"]] == [one["index"] for one in answer]


def test_documents_are_cut_for_cosines_too(running: Running, models: dict[str, Model]) -> None:
    model, documents = models["embed"], [TEXTS[1], TEXTS[3]]
    body = {"model": model.name, "query": TEXTS[0], "documents": documents, "max_tokens_per_doc": 4, "raw_scores": True}
    answer = running.given("/v1/rerank", body)
    expected = model.encode(documents, max_length=4, truncation="silent") @ model.encode([TEXTS[0]])[0]
    scores = {one["index"]: one["relevance_score"] for one in answer["results"]}
    assert_near([scores[0], scores[1]], expected, 1e-6)
    assert [cut["kept"] for cut in answer["truncated"]] == [4, 4]


def test_late_interaction_ranks_by_the_mean_of_the_largest_cosines(running: Running, models: dict[str, Model]) -> None:
    model, documents = models["late"], [*LATE_DOCUMENTS]
    answer = running.given("/v1/rerank", {"model": model.name, "query": "hot tea, good?", "documents": documents})
    expected = {record["corpus_id"]: record["score"] for record in model.rank("hot tea, good?", documents)}
    (query,) = next(iter(model.encode_blocks(["hot tea, good?"], pooling="none", prompt_name="query"))).vectors
    scores = {one["index"]: one["relevance_score"] for one in answer["results"]}
    assert scores == {index: pytest.approx(max(0, score / len(query)), abs=1e-6) for index, score in expected.items()}


def test_an_embedder_ranks_by_the_cosine(models: dict[str, Model]) -> None:
    model = models["embed"]
    with serving([model]) as running:
        answer = running.given("/v1/rerank", {"query": TEXTS[0], "documents": TEXTS[1:]})
    vectors = model.encode(TEXTS, normalize=True).astype(np.float64)
    cosines = np.maximum(vectors[1:] @ vectors[0], 0)
    assert [one["index"] for one in answer["results"]] == np.argsort(-cosines).tolist()
    found = [one["relevance_score"] for one in answer["results"]]
    assert_near(found, np.sort(cosines)[::-1], 2e-6)


# -------------------------------------------------------------------------------------------------- pipelines' tasks


def test_predict(running: Running, models: dict[str, Model]) -> None:
    model = models["classify"]
    name = {"model": model.name}
    single = running.given("/predict", {"inputs": TEXTS[0], **name})
    (record,) = model.classify([TEXTS[0]])
    assert [one["label"] for one in single] == [one["label"] for one in record["labels"]]
    assert_near([o["score"] for o in single], [o["score"] for o in record["labels"]], 1e-6)
    several = running.given("/predict", {"inputs": [[TEXTS[0]], [TEXTS[1]], [TEXTS[3]]], **name})
    assert [len(one) for one in several] == [2, 2, 2]
    (pair,) = model.classify([TEXTS[0]], [TEXTS[1]])
    paired = running.given("/predict", {"inputs": [TEXTS[0], TEXTS[1]], **name})
    assert_near([o["score"] for o in paired], [o["score"] for o in pair["labels"]], 1e-6)
    (raw,) = model.classify([TEXTS[0]], activation="none")
    found = running.given("/predict", {"inputs": TEXTS[0], "raw_scores": True, **name})
    assert_near([o["score"] for o in found], [o["score"] for o in raw["labels"]], 1e-5)


def test_tokenize_and_decode(running: Running, models: dict[str, Model]) -> None:
    (tokens,) = running.given("/tokenize", {"inputs": "Unbelievable dog."})
    assert [one["text"] for one in tokens[:4]] == ["[CLS]", "un", "##be", "##li"]
    assert tokens[0] == {"id": 2, "text": "[CLS]", "special": True, "start": None, "stop": None}
    assert tokens[1] == {"id": 630, "text": "un", "special": False, "start": 0, "stop": 2}
    (bare,) = running.given("/tokenize", {"inputs": ["Unbelievable dog."], "add_special_tokens": False})
    assert bare == tokens[1:-1]
    ids = [one["id"] for one in tokens]
    assert running.given("/decode", {"ids": ids}) == ["unbelievable dog."]
    assert running.given("/decode", {"ids": [ids, ids], "skip_special_tokens": False})[1].startswith("[CLS]")
    assert running.ask("/decode", {"ids": [10**9]}).status == 422


# ---------------------------------------------------------------------------------------------------- about the server


def test_info_health_and_models(running: Running, models: dict[str, Model]) -> None:
    assert running.given("/health") == {"status": "ok"}
    assert running.given("/ready") == {"status": "ready"}
    info = running.given("/info")
    assert info["model_id"] == "bert-mini-sentence"
    assert info["model_type"] == {"embedding": {"pooling": "mean"}}
    assert (info["max_input_length"], info["max_client_batch_size"], info["auto_truncate"]) == (256, 2048, True)
    assert [one["model_id"] for one in info["models"]] == [model.name for model in models.values()]
    assert info["models"][0]["dimensions"] == 256
    types = {one["model_id"]: one["model_type"] for one in info["models"]}
    config = read_json(sample("bert-mini-sentiment") / "config.json")
    assert types["bert-mini-sentiment"] == {"classifier": {key: config[key] for key in ("id2label", "label2id")}}
    listed = running.given("/v1/models")
    assert [one["id"] for one in listed["data"]] == [model.name for model in models.values()]
    assert running.given("/v1/models/bert-mini-mlm")["id"] == "bert-mini-mlm"
    assert running.ask("/v1/models/nope").status == 404


def test_a_pass_takes_a_pair_and_a_second_text_beside_it(running: Running, models: dict[str, Model]) -> None:
    path = f"/pass/{models['fill-mask'].name}?text=hot+tea"
    alone, paired, beside = (running.given(f"{path}{more}") for more in ("", "&text_pair=a+dog", "&contrast=a+dog"))
    passes = [[page.count(f'<div id="{name}tokens"') for name in ("", "versus-")] for page in (alone, paired, beside)]
    assert passes == [[1, 0], [1, 0], [1, 1]]
    assert paired.count('data-token="') == alone.count('data-token="') + 3, "a, dog, [SEP]"


def test_openapi_describes_every_route(running: Running) -> None:
    paths = running.given("/openapi.json")["paths"]
    described = {(path, method.upper()) for path, methods in paths.items() for method in methods}
    served = {
        (route.path.replace(":path}", "}"), method)  # type: ignore[attr-defined]
        for route in running.server.app.routes
        for method in route.methods - {"HEAD"}  # type: ignore[attr-defined]
    }
    assert described == served

    shared = running.given("/openapi.json")["components"]["schemas"]

    def resolved(schema: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = shared[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        return found

    def fields(path: str) -> dict[str, Any]:
        return resolved(paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"])

    embeddings = fields("/v1/embeddings")
    assert embeddings["required"] == ["input"]
    assert embeddings["properties"]["encoding_format"]["enum"] == ["float", "base64"]
    assert embeddings["properties"]["dimensions"]["anyOf"][0] == {"type": "integer", "minimum": 1}
    assert embeddings["properties"]["input"]["anyOf"][1] == {"type": "array", "items": {"type": "string"}}
    assert (fields("/embed")["required"], fields("/rerank")["required"]) == (["inputs"], ["query", "texts"])
    parameters = resolved(fields("/answer")["properties"]["parameters"]["anyOf"][0])["properties"]
    assert parameters["max_answer_length"]["anyOf"][0] == {"type": "integer", "minimum": 1}
    assert "workers" not in parameters
    assert paths["/v1/models/{model}"]["get"]["parameters"][0]["name"] == "model"
    of_pass = [(one["name"], one["in"]) for one in paths["/pass/{model}"]["get"]["parameters"]]
    query = ("text", "text_pair", "contrast", "layer", "head", "token")
    assert of_pass == [("model", "path"), *((name, "query") for name in query)]
    statuses = {"200", "400", "401", "404", "403", "405", "413", "415", "421", "422", "429", "500", "503", "504"}
    assert {*paths["/embed"]["post"]["responses"]} == statuses


def test_metrics_count_what_was_served(running: Running) -> None:
    running.given("/embed", {"inputs": TEXTS})
    running.ask("/embed", {"inputs": 5})
    lines = dict(line.rsplit(" ", 1) for line in running.given("/metrics").splitlines() if not line.startswith("#"))
    assert int(lines['te_request_count{method="/embed"}']) > int(lines['te_request_success{method="/embed"}']) > 0
    assert int(lines['te_request_failure{err="wrong_shape"}']) >= 1
    assert int(lines["te_request_input_length_count"]) >= len(TEXTS)
    assert int(lines["process_resident_memory_bytes"]) > 10_000_000
    assert lines["te_queue_size"] == "0"


def test_metrics_count_a_length_within_the_bound_that_equals_it(running: Running, models: dict[str, Model]) -> None:
    def within() -> list[int]:
        lines = running.given("/metrics").splitlines()
        counts = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return [int(counts[f'te_request_input_length_bucket{{le="{bound}"}}']) for bound in (8, 16, "+Inf")]

    texts = ["tea " * (count - 2) for count in (8, 9, 16, 17)]
    assert [len(tokens.ids) for tokens in models["embed"].tokenizer.encode(texts)] == [8, 9, 16, 17]
    before = within()
    running.given("/embed", {"inputs": texts})
    assert [after - earlier for after, earlier in zip(within(), before, strict=True)] == [1, 3, 4]


def test_metrics_tell_waiting_from_computing(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = running.server.stream
    add = stream.add

    def add_later(call: QueuedTask) -> None:
        sleep(0.1)
        add(call)

    def sums() -> list[float]:
        counts = dict(line.rsplit(" ", 1) for line in running.given("/metrics").splitlines())
        names = ("queue_duration", "inference_duration", "duration")
        return [float(counts[f"te_request_{name}_sum"]) for name in names]

    monkeypatch.setattr(stream, "add", add_later)
    before = sums()
    running.given("/embed", {"inputs": TEXTS[0]})
    waiting, computing, whole = (after - earlier for after, earlier in zip(sums(), before, strict=True))
    assert waiting >= 0.1
    assert waiting + computing <= whole


def test_openapi_is_valid_and_describes_answers(running: Running) -> None:
    """Checked by a validator of the OpenAPI Initiative's schemas, and each answer by the schema that it has here."""
    described = running.given("/openapi.json")
    openapi_spec_validator.validate(described)
    for choices in _values_of("anyOf", described):
        assert len({json.dumps(choice, sort_keys=True) for choice in choices}) == len(choices), choices
    models = {use: one["model_id"] for one in reversed(running.given("/info")["models"]) for use in one["uses"][:1]}
    question = {"question": "Who?", "context": "Ann did it."}
    asked: dict[str, Any] = {
        "/v1/embeddings": {"input": TEXTS},
        "/v2/embed": {"texts": TEXTS, "embedding_types": ["float", "int8", "binary", "base64"]},
        "/embed": {"inputs": TEXTS},
        "/embed_all": {"inputs": TEXTS[:2]},
        "/embed_sparse": {"inputs": TEXTS[:2]},
        "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
        "/api/embed": {"input": TEXTS},
        "/v1/rerank": {"query": "a", "documents": TEXTS[:2], "return_documents": True},
        "/rerank": {"query": "a", "texts": TEXTS[:2], "return_text": True},
        "/tokenize": {"inputs": TEXTS},
        "/decode": {"ids": [5, 6]},
        "/fill-mask": {"inputs": ["a [MASK]", "[MASK] and [MASK]"]},
        "/fill-mask ": {"inputs": "a [MASK]", "parameters": {"targets": ["tea", "unbelievable"]}},
        "/classify": {"inputs": TEXTS[:1], "model": models["classify"]},
        "/zero-shot": {"inputs": "a", "parameters": {"candidate_labels": ["b", "c"]}},
        "/tag": {"inputs": "Ann", "parameters": {"aggregation_strategy": "none", "ignore_labels": []}},
        "/tag ": {"inputs": "Ann", "parameters": {"redact": True}},
        "/answer": {"inputs": question},
        "/score": {"inputs": TEXTS[0]},
        "/info": None, "/health": None, "/v1/models": None,
    }  # fmt: skip
    for path, body in asked.items():
        operation = described["paths"][path.strip()]["get" if body is None else "post"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        answer = running.given(path.strip(), body)
        whole = {**schema, "components": described["components"]}
        OAS31Validator(whole).validate(answer)
    for path in ("/embed", "/v1/embeddings"):
        operation = described["paths"][path]["post"]["responses"]["422"]
        schema = {**operation["content"]["application/json"]["schema"], "components": described["components"]}
        OAS31Validator(schema).validate(running.ask(path, {"inputs": 5}).body)


def _values_of(name: str, document: Any) -> Iterator[Any]:
    """The values of all fields with a name, in any depth."""
    if isinstance(document, dict):
        if name in document:
            yield document[name]
        document = [*document.values()]
    if isinstance(document, list):
        for value in document:
            yield from _values_of(name, value)
