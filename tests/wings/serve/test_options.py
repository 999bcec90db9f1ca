"""Each field of each request changes the answer: a new field fails here until it has a value.

A field that OpenAPI describes and no route reads would be worse than none: nobody is told that it does nothing.
"""

import threading
import time
from collections.abc import Iterator
from shutil import copytree
from typing import Any, get_args

import pytest
from conftest import Made
from helpers.bge_m3 import write_bge_m3
from helpers.checkpoints import Sentence
from helpers.json_files import write_json
from helpers.served import Running, serving
from reference import task_cases as cases

import bertcli
from bertcli.wings.serve import stream
from bertcli.wings.serve.api.tasks import PIPELINE_NAMES
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.routes import Route, all_routes

# Both ends are other words, so that it matters at which it is cut; the mask stays where it is not.
LONG = " ".join(["tea"] * 30 + ["[MASK]"] + ["dog"] * 30)
PAIR = {"source_sentence": "hot tea", "sentences": ["a dog", LONG]}
QUERY: dict[str, Any] = {"query": "hot tea", "documents": ["the river", LONG, "a cup of tea"]}
LABELLED: dict[str, Any] = {"model": "labels", "inputs": [LONG]}
ZERO_SHOT: dict[str, Any] = {"candidate_labels": ["a cat", "rain"]}
# The body of a request to each route, by its first path.
BODIES: dict[str, dict[str, Any]] = {
    "/v1/embeddings": {"model": "vectors", "input": [LONG]},
    "/v2/embed": {"model": "vectors", "texts": [LONG]},
    "/api/embed": {"model": "vectors", "input": [LONG]},
    "/embed": {"model": "vectors", "inputs": [LONG]},
    "/embed_all": {"model": "vectors", "inputs": [LONG]},
    "/embed_sparse": {"model": "m3", "inputs": [LONG * 9]},
    "/similarity": {"model": "vectors", "inputs": PAIR},
    "/v1/rerank": {"model": "ranker", **QUERY},
    "/rerank": {"model": "ranker", **QUERY},
    "/classify": LABELLED,
    "/predict": LABELLED,
    "/": LABELLED,
    "/fill-mask": {"model": "masks", "inputs": [LONG]},
    "/score": {"model": "masks", "inputs": [LONG.replace("[MASK]", "rain")]},
    "/zero-shot": {"model": "inference", "inputs": [LONG], "parameters": ZERO_SHOT},
    "/tag": {"model": "tagger", "inputs": ["the queen drank tea in Paris"]},
    "/answer": {"model": "reader", "inputs": {"question": "who?", "context": "the queen drank hot tea"}},
    "/keywords": {"model": "vectors", "inputs": ["the queen drank hot tea and the cat sat"]},
    "/tokenize": {"model": "vectors", "inputs": ["hot tea"]},
    "/decode": {"model": "vectors", "ids": [6, 30, 31, 7]},
}
# A value other than the default for each field; where routes need different ones, by their first path.
VALUES: dict[str, Any] = {
    "truncate": False,
    "truncation_direction": "left",
    "prompt_name": "query",
    "input_type": "query",
    "truncate_prompt_tokens": 5,
    "max_tokens": 5,
    "max_tokens_per_doc": 5,
    "dimensions": 8,
    "output_dimension": 8,
    "normalize": False,
    "encoding_format": "base64",
    "embedding_types": ["int8"],
    "top_n": 1,
    "return_documents": True,
    "raw_scores": True,
    "parameters": {"top_k": 1},
    "add_special_tokens": False,
    "skip_special_tokens": False,
    "/v2/embed truncate": "NONE",
    # Other routes for vectors normalize them if nothing is said.
    **{f"{path} normalize": True for path in ("/v1/embeddings", "/v2/embed", "/embed_all")},
    "/score parameters": {"within_word": True},
    "/zero-shot parameters": {**ZERO_SHOT, "multi_label": True},
    "/tag parameters": {"aggregation": "none"},
    "/answer parameters": {"top_k": 2},
}
# What a request is about; it has to be there.
INPUTS = {"model", "input", "inputs", "texts", "query", "documents", "ids"}
# Fields that change nothing, and why.
IN_WINDOWS = "texts are read in windows, and nothing is cut"
WITHOUT_EFFECT = {
    f"{path} {field}": IN_WINDOWS
    for path in ("/tag", "/answer", "/keywords")
    for field in ("truncate", "truncation_direction")
}
ROUTES = {route.paths[0]: route for route in all_routes() if route.request is not None}


def fields(route: Route) -> set[str]:
    assert route.request is not None
    return {*route.request.model_fields} - INPUTS


CASES = [(path, field) for path, route in ROUTES.items() for field in sorted(fields(route))]


@pytest.fixture(scope="module")
def running(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("options")
    kinds: dict[str, dict[str, Any]] = {
        "vectors": {"sentence": Sentence(("mean",))},
        "labels": {"head": "classifier", "id2label": {0: "bad", 1: "good", 2: "so-so"}},
        "masks": {"head": "pretraining", "seed": 7},
        "inference": cases.INFERENCE,
        "tagger": cases.TAGGER,
        "reader": cases.READER,
        "ranker": cases.RANKER,
    }
    folders = [copytree(made(**keywords), root / name) for name, keywords in kinds.items()]
    folders.append(write_bge_m3(root / "m3"))
    for folder in (root / "vectors", root / "m3"):
        prompts = {"prompts": {"query": "river ", "document": "hot "}}
        write_json(folder / "config_sentence_transformers.json", prompts)
    with serving([bertcli.load(folder) for folder in folders]) as server:
        yield server


def answer(running: Running, path: str, body: dict[str, Any]) -> tuple[int, Any]:
    """The status and the body, without what differs each time."""
    given = running.ask(path, body)
    content = given.body
    if isinstance(content, dict):
        content = {name: value for name, value in content.items() if name not in ("id", "total_duration")}
    return given.status, content


def test_every_field_has_a_value() -> None:
    assert BODIES.keys() == ROUTES.keys()
    assert {*WITHOUT_EFFECT} <= {f"{path} {field}" for path, field in CASES}
    missing = {field for path, field in CASES if f"{path} {field}" not in VALUES and field not in VALUES}
    assert not missing, f"add a value of {missing} to VALUES"


@pytest.mark.parametrize(("path", "field"), CASES)
def test_every_field_changes_the_answer(path: str, field: str, running: Running) -> None:
    body = BODIES[path]
    status, plain = answer(running, path, body)
    assert status == 200, plain
    has_effect = f"{path} {field}" not in WITHOUT_EFFECT
    value = VALUES.get(f"{path} {field}", VALUES.get(field))
    status, changed = answer(running, path, body | {field: value})
    # A text that is too long is cut if nothing is said.
    assert status == (422 if field == "truncate" and has_effect else 200), changed
    assert (changed != plain) == has_effect


# -------------------------------------------------------------------------------------------------- tasks' parameters

Parameters = dict[str, Any]
CONTEXT = "the queen walked to the river and the king drank hot tea with a cat"
ASKED = {"question": "who?", "context": CONTEXT}
TAGGED = "The king of France visited Paris and the queen sold tea"
# A value other than the default for each parameter of a route, and parameters that are given in any case.
PARAMETERS: dict[str, dict[str, Any | tuple[Parameters, Any]]] = {
    "/classify": {"max_length": 5, "top_k": 1, "activation": "sigmoid"},
    "/zero-shot": {
        "max_length": (ZERO_SHOT, 30), "top_k": (ZERO_SHOT, 1), "candidates": (ZERO_SHOT, ["a cat", "tea"]),
        "template": (ZERO_SHOT, "Here is {}, no {}."), "multi_label": (ZERO_SHOT, True),
    },
    "/fill-mask": {"max_length": 40, "top_k": 1, "targets": ["tea", "cat"], "joint": True},
    "/score": {"max_length": 5, "within_word": True},
    "/tag": {
        "max_length": 6, "stride": ({"max_length": 7}, 0), "aggregation": "none", "decode": "legal",
        "ignore": ["MISC"], "redact": True,
        "redact_with": ({"redact": True}, "X"), "only": ({"redact": True}, ["LOC"]),
        "threshold": ({"redact": True}, 0.9), "keep_text": ({"redact": True}, True),
    },
    "/answer": {
        "max_length": ({"top_k": 9}, 12), "stride": ({"max_length": 12, "top_k": 9}, 0), "top_k": 2,
        "max_answer_length": ({"top_k": 9}, 1), "no_answer": ({"top_k": 99}, True), "score": "logits",
    },
    "/keywords": {
        "max_length": 5, "top_k": 1, "ngrams": 2, "diversity": 1.0, "stop_words": ["tea"], "candidates": ["hot tea"],
    },
}  # fmt: skip
TEXTS: dict[str, Any] = {
    "/tag": TAGGED,
    "/answer": ASKED,
    "/score": ["an unbelievable cat sat with tea"],
    "/fill-mask": [LONG.replace("[MASK]", "[MASK] drank [MASK]")],
}
# What is for another route, another model, or the command line.
OF_OTHERS = {
    "/classify": {"head", "candidates", "template", "multi_label"},
    "/zero-shot": {"head", "activation"},
    "/score": {"target"},
    "/tag": {"labels", "nested", "multi_label"},
}
PARAMETER_CASES = [(path, name) for path, names in PARAMETERS.items() for name in names]


def parameters_of(route: Route) -> set[str]:
    assert route.request is not None
    (model,) = (one for one in get_args(route.request.model_fields["parameters"].annotation) if one is not type(None))
    return {*model.model_fields}


def test_every_parameter_has_a_value() -> None:
    for path, names in PARAMETERS.items():
        assert parameters_of(ROUTES[path]) - OF_OTHERS.get(path, set()) == names.keys(), path
    named = {path for path, route in ROUTES.items() if route.uses and "parameters" in fields(route)}
    assert named - {"/predict"} == PARAMETERS.keys()  # which is /classify
    assert {*PIPELINE_NAMES.values()} <= {name for names in PARAMETERS.values() for name in names}


@pytest.mark.parametrize(("path", "name"), PARAMETER_CASES)
def test_every_parameter_changes_the_answer_by_either_name(path: str, name: str, running: Running) -> None:
    given = PARAMETERS[path][name]
    common, value = given if isinstance(given, tuple) else ({}, given)
    body = BODIES[path] | ({"inputs": TEXTS[path]} if path in TEXTS else {})
    status, plain = answer(running, path, body | {"parameters": common})
    assert status == 200, plain
    status, changed = answer(running, path, body | {"parameters": common | {name: value}})
    assert status == 200, changed
    assert changed != plain
    for theirs, ours in PIPELINE_NAMES.items():
        if ours == name:
            without = {key: one for key, one in common.items() if PIPELINE_NAMES.get(key, key) != name}
            assert answer(running, path, body | {"parameters": without | {theirs: value}}) == (200, changed)


def test_no_request_leaves_tokens_in_the_queue(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one that is answered, refused, or cancelled while it is computed: they would add up until all are refused."""
    service = running.server
    for path, body in BODIES.items():
        for sent in (body, body | {"truncation_direction": "up"}, body | {"truncate": False}):
            running.ask(path, sent)
            assert (service.queue.tokens, service.stream.size) == (0, 0), (path, sent)
    compute = stream._values
    goes_on = threading.Event()
    held: dict[str, tuple[int, int]] = {}  # in the queue, and what is computed

    def waits(task: Any, items: Any) -> Any:
        held.setdefault(path, (service.queue.tokens, sum(map(task.cost, items))))
        goes_on.wait(30)
        return compute(task, items)

    monkeypatch.setattr(stream, "_values", waits)
    for path in BODIES.keys() - {"/tokenize", "/decode"}:
        goes_on.clear()
        client = running.begun(path, BODIES[path])
        end = time.monotonic() + 20
        while not service.queue.tokens and time.monotonic() < end:
            time.sleep(0.001)
        while path not in held and time.monotonic() < end:
            time.sleep(0.001)
        client.close()
        while service.queue.tokens and time.monotonic() < end:
            time.sleep(0.001)
        assert service.queue.tokens == 0, path
        goes_on.set()
    assert len(held) > 10
    assert [path for path, (tokens, computed) in held.items() if tokens != computed] == []


def test_what_a_client_left_while_it_was_tokenized_is_not_computed(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenized = Exchange._tokenized
    computed: list[Any] = []
    end = time.monotonic() + 20

    def until_it_leaves(exchange: Exchange, *arguments: Any) -> Any:
        items = tokenized(exchange, *arguments)
        while not exchange.over and time.monotonic() < end:
            time.sleep(0.001)
        return items

    monkeypatch.setattr(Exchange, "_tokenized", until_it_leaves)
    monkeypatch.setattr(running.server.stream, "add", computed.append)
    client = running.begun("/zero-shot", BODIES["/zero-shot"])
    while not running.server.queue.tokens and time.monotonic() < end:
        time.sleep(0.001)
    client.close()
    while running.server.queue.tokens and time.monotonic() < end:
        time.sleep(0.001)
    assert (running.server.queue.tokens, computed) == (0, [])
