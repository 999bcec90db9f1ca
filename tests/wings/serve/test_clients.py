"""Clients as they are published, unchanged, against a live server."""

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cohere
import httpx
import numpy as np
import openai
import pytest
from conftest import Made
from helpers.json_files import write_json
from helpers.near import assert_near
from helpers.served import Running, serving
from huggingface_hub import InferenceClient
from reference import task_cases as cases

import bertcli
from bertcli.folder.hub import Source
from bertcli.model import Model
from bertcli.wings.serve.service import Limits

# Cohere's client asks it on Python 3.14.
pytestmark = pytest.mark.filterwarnings("ignore:'asyncio.iscoroutinefunction' is deprecated")

TEXTS = ["A dog ran home.", "Interest rates rose.", "Über 中国 ☃"]


@pytest.fixture(scope="module")
def sentence() -> Model:
    return bertcli.load("bert-mini-sentence")


@pytest.fixture(scope="module")
def rag(sentence: Model, made: Made) -> Iterator[Running]:
    """An embedder and a reranker."""
    with serving([sentence, bertcli.load(made(**cases.RANKER))]) as running:
        yield running


@pytest.fixture
def one(request: pytest.FixtureRequest, made: Made) -> Iterator[tuple[InferenceClient, Model]]:
    """The Hub's client of a server with a single model: a bundled one, or a recorded one of a task."""
    name: str = request.param
    folders = {"tag": cases.TAGGER, "answer": cases.READER, "zero-shot": cases.INFERENCE}
    model = bertcli.load(made(**folders[name]) if name in folders else name)
    with serving([model]) as running, InferenceClient(model=running.url, provider="hf-inference", token="none") as hub:
        yield hub, model


def test_openai(rag: Running, sentence: Model) -> None:
    vectors = sentence.encode(TEXTS)
    with openai.OpenAI(base_url=f"{rag.url}/v1", api_key="none", max_retries=0) as client:
        for given in ({}, {"encoding_format": "float"}):  # without a word it asks for base64, and decodes it
            answer = client.embeddings.create(model="text-embedding-3-small", input=TEXTS, **given)
            assert_near([each.embedding for each in answer.data], vectors, 1e-6)
        cut = client.embeddings.create(model="x", input=TEXTS[0], dimensions=16)
        expected = sentence.encode([TEXTS[0]], truncate_dim=16, normalize=True)
        assert_near([cut.data[0].embedding], expected, 1e-6)
        assert cut.usage.prompt_tokens == len(sentence.tokenizer.encode([TEXTS[0]])[0].ids)
        assert next(model.id for model in client.models.list()) == "bert-mini-sentence"
        with pytest.raises(openai.UnprocessableEntityError, match="cannot be cut to 999"):
            client.embeddings.create(model="x", input=TEXTS[0], dimensions=999)


@pytest.mark.parametrize("version", [1, 2])
def test_cohere(rag: Running, made: Made, version: int) -> None:
    ranker = bertcli.load(made(**cases.RANKER))
    expected = ranker.rank(cases.QUERY, cases.DOCUMENTS, truncation="silent")
    documents = [*cases.DOCUMENTS]
    kind: Any = cohere.ClientV2 if version == 2 else cohere.Client
    with httpx.Client() as http:
        client = kind(api_key="none", base_url=rag.url, httpx_client=http)
        results = client.rerank(model="rerank-v3.5", query=cases.QUERY, documents=documents, top_n=4).results
    assert [each.index for each in results] == [record["corpus_id"] for record in expected[:4]]
    scores = [each.relevance_score for each in results]
    assert_near(scores, [record["score"] for record in expected[:4]], 1e-6)


def test_cohere_embeds(rag: Running, sentence: Model) -> None:
    vectors = sentence.encode(TEXTS)
    kinds = ["float", "int8", "uint8", "binary", "ubinary", "base64"]
    with httpx.Client() as http:
        client: Any = cohere.ClientV2(api_key="none", base_url=rag.url, httpx_client=http)
        asked = {"model": "embed-v4.0", "input_type": "search_document"}
        answer = client.embed(texts=TEXTS, embedding_types=kinds, **asked)
        alone = client.embed(texts=TEXTS, output_dimension=16, **asked).embeddings
        with pytest.raises(cohere.UnprocessableEntityError, match="more than 256"):
            client.embed(texts=["tea " * 600], truncate="NONE", **asked)
        ends = [client.embed(texts=["tea " * 300 + "dog " * 300], truncate=end, **asked) for end in ("START", "END")]
    found = answer.embeddings
    assert_near(found.float_, vectors, 1e-6)
    assert found.base64 == [base64.b64encode(np.array(row, "<f4").tobytes()).decode() for row in found.float_]
    scale = 127 / np.abs(vectors).max(axis=1, keepdims=True)
    assert_near(found.int8, vectors * scale, 0.51)
    np.testing.assert_array_equal(found.uint8, np.array(found.int8) + 128)
    np.testing.assert_array_equal(np.unpackbits(np.array(found.ubinary, np.uint8), axis=1), vectors > 0)
    np.testing.assert_array_equal(found.binary, np.array(found.ubinary) - 128)
    assert answer.texts == TEXTS
    assert answer.meta.billed_units.input_tokens == sum(len(one.ids) for one in sentence.tokenizer.encode(TEXTS))
    assert_near(alone.float_, sentence.encode(TEXTS, truncate_dim=16, normalize=True), 1e-6)
    assert alone.int8 is None
    kept = sentence.encode(["dog " * 254, "tea " * 254])
    assert_near([one.embeddings.float_[0] for one in ends], kept, 1e-5)


def test_openai_clients_may_send_ids_of_the_models_own_vocabulary(sentence: Model) -> None:
    """As they are without special tokens, or with those that the tokenizer puts around a text."""
    tokens = sentence.tokenizer.encode(TEXTS)
    framed = [one.ids for one in tokens]
    bare = [ids[1:-1] for ids in framed]
    vectors = sentence.encode(TEXTS)
    with serving([sentence], Limits(quiet=True, token_ids=True)) as running:
        with openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as client:
            for ids in (bare, framed):
                data = client.embeddings.create(model="x", input=ids, encoding_format="float").data
                assert_near([each.embedding for each in data], vectors, 1e-6)
            one = client.embeddings.create(model="x", input=bare[0], encoding_format="float")
            assert_near(one.data[0].embedding, vectors[0], 1e-6)
            assert one.usage.prompt_tokens == len(framed[0])
        long = running.ask("/v1/embeddings", {"input": [bare[0] * 100]})
        assert (long.headers["x-truncated"], long.body["truncated"][0]["kept"]) == ("0", 256)
        for wrong in ([10**6], [[5], [-1]]):
            refused = running.ask("/v1/embeddings", {"input": wrong})
            assert refused.status == 422
            assert "is not in the vocabulary" in refused.body["error"]["message"]


def test_hub_client_of_several_models_names_one_or_asks_what_one_alone_can(sentence: Model, made: Made) -> None:
    filler, reader = bertcli.load("bert-mini-mlm"), bertcli.load(made(**cases.READER))
    with serving([sentence, filler, reader]) as running:
        hubs = [InferenceClient(model=f"{running.url}/models/{one.name}", token="none") for one in (sentence, filler)]
        with hubs[0], hubs[1]:
            vector = hubs[0].feature_extraction(TEXTS[0])
            assert_near(vector, sentence.encode([TEXTS[0]]), 1e-6)
            words = hubs[1].fill_mask("She poured a cup of hot [MASK].", top_k=3)
            assert [each.token_str for each in words] == ["tea", "water", "coffee"]
        question, context = cases.QUESTIONS[0]
        (record,) = reader.answer([question], [context])
        with InferenceClient(model=running.url, token="none") as hub:
            best = hub.question_answering(question, context, top_k=2)[0]
            assert best.answer == record["answers"][0]["answer"]


@pytest.mark.parametrize("one", ["bert-mini-sentence"], indirect=True)
def test_hub_client_embeds(one: tuple[InferenceClient, Model]) -> None:
    hub, model = one
    assert_near(hub.feature_extraction(TEXTS[0], normalize=True, truncate=True), model.encode([TEXTS[0]]), 1e-6)
    similar = hub.sentence_similarity(TEXTS[0], other_sentences=TEXTS[1:])
    vectors = model.encode(TEXTS, normalize=True)
    assert_near(similar, vectors[1:] @ vectors[0], 2e-6)


@pytest.mark.parametrize("one", ["bert-mini-sentiment"], indirect=True)
def test_hub_client_classifies(one: tuple[InferenceClient, Model]) -> None:
    hub, model = one
    (record,) = model.classify(["A warm, funny and moving film."])
    found = hub.text_classification("A warm, funny and moving film.", top_k=2)
    assert [each.label for each in found] == [label["label"] for label in record["labels"]]
    assert [each.score for each in found] == pytest.approx([label["score"] for label in record["labels"]], abs=1e-6)


@pytest.mark.parametrize("one", ["bert-mini-mlm"], indirect=True)
def test_hub_client_fills_masks(one: tuple[InferenceClient, Model]) -> None:
    hub, _ = one
    found = hub.fill_mask("She poured a cup of hot [MASK].", top_k=3)
    assert [each.token_str for each in found] == ["tea", "water", "coffee"]
    targeted = hub.fill_mask("She poured a cup of hot [MASK].", targets=["moon", "tea"])
    assert [each.token_str for each in targeted] == ["tea", "moon"]


@pytest.mark.parametrize("one", ["tag"], indirect=True)
def test_hub_client_tags(one: tuple[InferenceClient, Model]) -> None:
    hub, model = one
    found = hub.token_classification(cases.TAGGED_TEXTS[0], aggregation_strategy="simple")
    (record,) = model.tag([cases.TAGGED_TEXTS[0]])
    assert [(each.entity_group, each.word, each.start, each.end) for each in found] == [
        tuple(entity[key] for key in ("entity_group", "word", "start", "end")) for entity in record["entities"]
    ]


@pytest.mark.parametrize("one", ["answer"], indirect=True)
def test_hub_client_answers(one: tuple[InferenceClient, Model]) -> None:
    hub, model = one
    question, context = cases.QUESTIONS[0]
    (record,) = model.answer([question], [context])
    found = hub.question_answering(question, context)
    assert not isinstance(found, list)
    assert (found.answer, found.start, found.end) == tuple(
        record["answers"][0][key] for key in ("answer", "start", "end")
    )
    several = hub.question_answering(question, context, top_k=3)
    assert isinstance(several, list)
    assert len(several) == 3


@pytest.mark.parametrize("one", ["zero-shot"], indirect=True)
def test_hub_client_classifies_without_training(one: tuple[InferenceClient, Model]) -> None:
    hub, model = one
    (record,) = model.classify([cases.PREMISES[0]], candidates=cases.CANDIDATES)
    found = hub.zero_shot_classification(cases.PREMISES[0], [*cases.CANDIDATES])
    assert [each.label for each in found] == [label["label"] for label in record["labels"]]
    assert [each.score for each in found] == pytest.approx([label["score"] for label in record["labels"]], abs=1e-6)


# ---------------------------------------------------------------- requests as other programs send them, field for field

RECORDED: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {  # who, path, headers, body
    "LangChain, told not to count tokens": ("/v1/embeddings", {"Authorization": "Bearer x"}, {
        "input": TEXTS, "model": "text-embedding-ada-002", "encoding_format": "base64",
    }),
    "LlamaIndex' class for TEI": ("/embed", {"Authorization": "x"}, {"inputs": TEXTS, "truncate": True}),
    "Haystack's embedder": ("/embed", {}, {
        "inputs": TEXTS, "normalize": False, "truncate": True, "truncation_direction": "Right",
    }),
    "Open WebUI": ("/v1/embeddings", {"Authorization": "Bearer sk", "X-OpenWebUI-User-Id": "1"}, {
        "input": TEXTS, "model": "all-MiniLM-L6-v2",
    }),
    "Continue": ("/v1/embeddings", {"Authorization": "Bearer x", "api-key": "x"}, {
        "input": TEXTS, "model": "nomic-embed-text", "encoding_format": "float",
    }),
    "Weaviate's text2vec-ollama": ("/api/embed", {}, {"model": "nomic-embed-text", "input": TEXTS}),
    "Chroma": ("/embed", {}, {"inputs": TEXTS}),
    "pgai": ("/v1/embeddings", {"Authorization": "Bearer x"}, {
        "input": TEXTS, "model": "m", "encoding_format": "base64", "user": "pgai",
    }),
}  # fmt: skip


@pytest.mark.parametrize("who", RECORDED)
def test_other_programs_get_a_vector_for_each_text(rag: Running, sentence: Model, who: str) -> None:
    path, headers, body = RECORDED[who]
    answer = rag.ask(path, body, headers)
    assert answer.status == 200
    rows = answer.body if path == "/embed" else answer.body.get("data", answer.body.get("embeddings"))
    assert len(rows) == len(TEXTS)
    if path == "/embed":
        normalize = None if body.get("normalize", True) else False
        assert_near(rows, sentence.encode(TEXTS, normalize=normalize), 1e-5)


def test_as_many_inputs_as_programs_send(rag: Running, sentence: Model) -> None:
    """LangChain sends 1,000 texts at a time, pgai 2,048; more are refused."""
    texts = [f"text {number}" for number in range(2048)]
    data = rag.given("/v1/embeddings", {"input": texts})["data"]
    assert [each["index"] for each in data] == [*range(2048)]
    some = [0, 999, 2047]
    assert_near([data[i]["embedding"] for i in some], sentence.encode([texts[i] for i in some]), 1e-6)
    refused = rag.ask("/v1/embeddings", {"input": [*texts, "one more"]})
    assert refused.status == 422
    assert refused.body["error"]["code"] == "too_many"


def test_a_model_with_prompts_has_those_of_queries_and_documents(tmp_path: Path) -> None:
    folder = tmp_path / "prompted"
    shutil.copytree(Source("bert-mini-sentence").find().path, folder)
    settings = {"prompts": {"query": "find: ", "document": "text: "}}
    write_json(folder / "config_sentence_transformers.json", settings)
    model = bertcli.load(folder)
    with serving([model]) as running:
        for role, name in (("query", "query"), ("search_document", "document"), ("retrieval.query", "query")):
            found = running.given("/v1/embeddings", {"input": TEXTS, "input_type": role})["data"]
            expected = model.encode(TEXTS, prompt_name=name)
            assert_near([each["embedding"] for each in found], expected, 1e-6)
        both = {"input": TEXTS, "input_type": "search_document", "prompt_name": "query"}
        found = running.given("/v1/embeddings", both)["data"]
        expected = model.encode(TEXTS, prompt_name="query")
        assert_near([each["embedding"] for each in found], expected, 1e-6)
        plain = running.given("/v1/embeddings", {"input": TEXTS, "input_type": "clustering"})["data"]
        assert_near([each["embedding"] for each in plain], model.encode(TEXTS), 1e-6)
