"""Messages of the server: each says what is wrong, where, and what to do; read here as a client gets them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from helpers.served import Running, serving

import bertcli
from bertcli.wings.serve.service import OF_A_REQUEST, Limits

LONG_NAME = "/" + "x" * 500


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    limits = Limits(quiet=True, door=OF_A_REQUEST._replace(texts=2, entries=2, tokens=600, predictions=50))
    models = [bertcli.load("bert-mini-sentence"), bertcli.load("bert-mini-mlm")]
    with serving(models, limits) as server:
        yield server


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/nope", None, 404, "There is no route '/nope': GET /openapi.json lists the routes."),
        ("/embed", None, 405, "The route '/embed' does not take this method: use POST."),
        ("/embed", {"inputs": ["a", None]}, 422, "inputs[1] must be a string, as the entries before it, not null."),
        ("/embed", {"inputs": {"a": 1}}, 422, "inputs must be a string or a list, not {'a': 1}."),
        ("/embed", {"inputs": []}, 400, "The input is empty: send at least one text."),
        ("/embed", {}, 422, "inputs is missing."),
        ("/embed", [1], 422, "The body must be a JSON object, not [1]."),
        (
            "/embed",
            b'{"inputs": NaN}',
            400,
            "The body is not JSON: unexpected character, expected a JSON value: line 1 column 12 (char 11).",
        ),
        (
            "/embed",
            {"inputs": "a", "dimensions": 1.5},
            422,
            "dimensions must be a whole number of at least 1, not 1.5.",
        ),
        (
            "/embed",
            {"inputs": "a", "truncation_direction": "Middle"},
            422,
            'truncation_direction must be "left" or "right", not \'Middle\'.',
        ),
        ("/embed", {"inputs": "a", "dimension": 2}, 422, "There is no field 'dimension'; did you mean dimensions?"),
        (
            "/fill-mask",
            {"inputs": "[MASK]", "parameters": {"topk": 1}},
            422,
            "parameters.topk is no option of this route. Did you mean top_k?",
        ),
        (
            "/score",
            {"inputs": "a", "parameters": {"candidates": ["x"]}},
            422,
            "parameters.candidates is no option of this route. "
            "Choose from max_length, max_seq_len, target, within_word.",
        ),
        ("/fill-mask", {"inputs": "[MASK]", "top_k": 1}, 422, "top_k is an option of the task: send it in parameters."),
        (
            "/embed",
            {"inputs": "a", "pooling": "cls"},
            422,
            "pooling is an option of the command that this route does not have: leave it out.",
        ),
        (
            "/embed",
            {"inputs": "a", "sparse": True, "words": True},
            422,
            "sparse is an option of the command that this route does not have: send the rest to /embed_sparse.",
        ),
        (
            "/embed",
            {"inputs": "a", "words": True},
            422,
            "words is an option of the command that this route does not have: leave it out.",
        ),
        ("/pass?txt=a", None, 422, "There is no field 'txt'. Did you mean text?"),
        ("/embed", {"inputs": ["a"] * 3}, 422, "There are 3 texts, more than 2: send fewer at once."),
        (
            "/embed",
            {"inputs": [[1, 2]]},
            422,
            "The input is token ids, and this server takes texts (LangChain: check_embedding_ctx_length=False). "
            "If the ids are of this model's own vocabulary, start the server with --token-ids.",
        ),
        (
            "/fill-mask",
            {"inputs": "[MASK]", "parameters": {"targets": ["a", "b", "c"]}},
            422,
            "targets has 3 entries, more than 2: send fewer.",
        ),
        (
            "/fill-mask",
            {"inputs": "[MASK] " * 3, "parameters": {"top_k": 20}},
            422,
            "The answer would have at least 60 predictions, more than 50: ask for fewer.",
        ),
        (
            "/score",
            {"inputs": "a " * 40},
            422,
            "The request takes at least 1,764 tokens to compute, more than 600: send fewer or shorter texts.",
        ),
        (
            "/tokenize",
            {"inputs": "a", "prompt_name": "query"},
            422,
            "prompt_name: the model has no prompt 'query'; it has none.",
        ),
        ("/decode", {"ids": [-1]}, 422, "ids must be from 0 to 8191."),
        ("/v1/models/x", None, 404, "The model 'x' is not served: GET /v1/models lists the models."),
        (
            "/pipeline/translation/bert-mini-mlm",
            {"inputs": "a"},
            404,
            "There is no task 'translation': use one of feature-extraction, sentence-similarity, text-classification, "
            "zero-shot-classification, fill-mask, token-classification, question-answering, text-ranking.",
        ),
        (
            "/embed",
            {"inputs": "a", "model": "bert-mini-mln"},
            404,
            "The model 'bert-mini-mln' is not served; did you mean bert-mini-mlm?",
        ),
        (
            "/tokenize",
            {"inputs": "a", "model": "x"},
            404,
            "The model 'x' is not served. Name one that fits this route: bert-mini-sentence, bert-mini-mlm.",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_to_do(
    running: Running, path: str, body: Any, status: int, message: str
) -> None:
    answer = running.ask(path, body)
    error = answer.body["error"]
    assert (answer.status, error if isinstance(error, str) else error["message"]) == (status, message)


def test_what_a_client_sent_is_quoted_in_one_short_line(running: Running) -> None:
    for path in (LONG_NAME, "/no%0Aroute"):
        message = running.ask(path).body["error"]
        assert len(message) < 200
        assert "\n" not in message


def test_a_host_and_an_origin_are_named_with_the_option_that_allows_them(running: Running) -> None:
    host = running.ask("/embed", {"inputs": "a"}, {"Host": "box.example"})
    assert host.body["error"] == (
        "The host 'box.example' is not a name of this server. "
        "If it should be, start the server with --allowed-host box.example."
    )
    origin = running.ask("/embed", {"inputs": "a"}, {"Origin": "https://a.example"})
    assert origin.body["error"] == (
        "Pages of the origin 'https://a.example' may not send requests to this server. "
        "To allow them, start it with --cors https://a.example."
    )
    link = running.ask("/pass?text=a", None, {"Sec-Fetch-Site": "cross-site"})
    assert link.body["error"].endswith("start it with --cors ORIGIN.")


def test_fields_of_other_servers_and_names_of_the_commands_options_are_taken(running: Running) -> None:
    """A client of another server sends what that one takes; our own command calls dimensions --truncate-dim."""
    plain = running.given("/embed", {"inputs": "hot tea", "dimensions": 2, "truncate_prompt_tokens": 3})
    ours = {"inputs": "hot tea", "truncate_dim": 2, "max_length": 3, "user": "me", "keep_alive": 5, "dimension": None}
    assert running.given("/embed", ours) == plain
    ranked = {"query": "tea", "texts": ["a dog", "hot tea"], "model": "bert-mini-sentence"}
    assert running.given("/rerank", ranked | {"top_k": 1}) == running.given("/rerank", ranked)[:1]
    pair = {"source_sentence": "tea", "sentences": ["hot tea"]}
    cut = [running.given("/similarity", {"inputs": pair, name: 2}) for name in ("dimensions", "truncate_dim")]
    assert cut[0] == cut[1]
    begun = time.monotonic()
    many = {f"inputz{number}": 1 for number in range(100_000)} | {"inputs": "a", "p" * 100_000: 1}
    assert running.ask("/embed", many).status == 200
    assert running.ask("/fill-mask", {"inputs": "[MASK]", "parameters": many}).status == 422
    assert time.monotonic() - begun < 5


def test_an_empty_text_is_a_text_alone_as_in_a_list(running: Running) -> None:
    alone, listed = (running.given("/embed", {"inputs": given}) for given in ("", [""]))
    assert alone == listed
