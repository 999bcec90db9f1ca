"""Who may ask: hosts, origins, keys; and what an answer forbids a browser."""

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest import Made
from helpers.gliner import write_gliner
from helpers.late_folders import write_late
from helpers.served import Running, serving
from helpers.terminal import wrong_usage
from reference import task_cases as cases

import bertcli
from bertcli.folder.hub import sample
from bertcli.model import Model
from bertcli.wings.serve.service import OF_A_REQUEST, Limits


@pytest.fixture(scope="module")
def sentence() -> Model:
    return bertcli.load("bert-mini-sentence")


@pytest.fixture(scope="module")
def running(sentence: Model) -> Iterator[Running]:
    limits = Limits(quiet=True, hosts=("box.example", "fe80::1"), cors=("https://friend.example",))
    with serving([sentence], limits) as server:
        yield server


def port_of(running: Running) -> int:
    port = urlsplit(running.url).port
    assert port is not None
    return port


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:{port}", 200),
        ("LOCALHOST", 200),
        ("localhost.:{port}", 200),
        ("127.0.0.1:{port}", 200),
        ("[::1]:{port}", 200),
        ("box.example:{port}", 200),
        ("[fe80::1]", 200),
        ("attacker.example:{port}", 421),
        ("attacker.example", 421),
        ("localhost.attacker.example", 421),
        ("127.0.0.1.attacker.example", 421),
        ("10.1.2.3:{port}", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_a_host_that_is_not_this_server_gets_nothing(running: Running, host: str, status: int) -> None:
    named = {"Host": host.format(port=port_of(running))}
    for path, body in (("/embed", {"inputs": "a"}), ("/info", None), ("/", None), ("/health", None)):
        answer = running.ask(path, body, named)
        assert answer.status == status, path
    if status == 421:
        refused = running.ask("/v1/embeddings", {"input": "a"}, named)
        assert refused.body["error"]["code"] == "wrong_host"
        assert "--allowed-host" in refused.body["error"]["message"]


def test_any_host_may_be_allowed_and_an_old_client_names_none(sentence: Model) -> None:
    with serving([sentence], Limits(quiet=True, hosts=("*",))) as running:
        assert running.ask("/embed", {"inputs": "a"}, {"Host": "what.ever"}).status == 200
    with serving([sentence]) as running, socket.create_connection(("127.0.0.1", port_of(running))) as old:
        old.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert old.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:{port}", 200),
        ("https://127.0.0.1:{port}", 200),  # behind a proxy that speaks TLS
        ("https://friend.example", 200),
        ("https://other.example", 403),
        ("http://127.0.0.1:1", 403),
        ("null", 403),
    ],
)
def test_pages_of_another_origin_may_not_ask(running: Running, origin: str, status: int) -> None:
    sent = {"Origin": origin.format(port=port_of(running))}
    assert running.ask("/embed", {"inputs": "a"}, sent).status == status
    assert running.ask("/pass?text=a", None, sent).status == status
    assert running.ask("/health", None, sent).status == 200
    if status == 403:
        refused = running.ask("/v1/embeddings", {"input": "a"}, sent)
        assert refused.body["error"]["code"] == "wrong_origin"


def test_a_link_on_another_page_draws_no_pass(running: Running) -> None:
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert running.ask("/pass?text=a", None, {"Sec-Fetch-Site": site}).status == status


def test_answers_say_what_a_browser_may_do_with_them(running: Running) -> None:
    asked = [("/", None), ("/pass?text=a", None), ("/embed", {"inputs": "a"}), ("/embed", {"inputs": 5}), ("/no", None)]
    for path, body in asked:
        headers = running.ask(path, body).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].endswith("; frame-ancestors 'none'")
    page = running.ask("/")
    policy = page.headers["content-security-policy"].removesuffix("; frame-ancestors 'none'")
    assert policy.startswith("default-src 'none'; ")
    assert "sha256-" in policy
    assert f'content="{policy}"'.replace("'", "&#39;") in page.body or f'content="{policy}"' in page.body


def test_with_a_key_nothing_is_said_of_the_models_without_it(sentence: Model) -> None:
    with serving([sentence], Limits(quiet=True, api_key="secret")) as running:
        page = running.ask("/")
        assert page.status == 200
        assert "bert-mini-sentence" not in page.body
        for path in ("/info", "/openapi.json", "/metrics", "/v1/models", "/pass?text=a"):
            refused = running.ask(path)
            assert refused.status == 401
            assert "bert-mini-sentence" not in str(refused.body)
        assert running.ask("/info", None, {"x-api-key": "secret"}).body["model_id"] == "bert-mini-sentence"
    with serving([sentence]) as running:
        assert "bert-mini-sentence" in running.ask("/").body


@pytest.mark.parametrize("key", ["", "  "])
def test_an_empty_key_starts_no_server(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    wrong_usage("serve", "--api-key", key, why="the key is empty")
    monkeypatch.setenv("BERTCLI_API_KEY", key)
    wrong_usage("serve", why="the key is empty")


def test_a_key_that_no_header_can_have_starts_no_server() -> None:
    wrong_usage("serve", "--api-key", "a\nb", why="control")


# ------------------------------------------------------------------------------------------------- the model's name


def test_an_unknown_name_means_no_model_where_several_fit(sentence: Model, tmp_path: Path, made: Made) -> None:
    other = bertcli.load(made(head="pretraining", seed=7))
    another = tmp_path / "bert-mini-sentence"
    another.symlink_to(sentence.path)  # type: ignore[arg-type]
    named_alike = bertcli.load(another)
    with serving([sentence, named_alike, other]) as running:
        refused = running.ask("/v1/embeddings", {"input": "a", "model": "bert-mini-sentense"})
        error = refused.body["error"]
        assert (refused.status, error["code"], error["param"]) == (404, "model_not_found", "model")
        assert "bert-mini-sentense" in error["message"]
        assert f"bert-mini-sentence, {named_alike.name}." in error["message"]
        assert running.given("/v1/embeddings", {"input": "a"})["model"] == "bert-mini-sentence"
        for name in (sentence.name, named_alike.name):
            assert running.given("/v1/embeddings", {"input": "a", "model": name})["model"] == name
        for path, body in (("/embed", {"inputs": "a"}), ("/api/embed", {"input": "a"}), ("/models/x", {"inputs": "a"})):
            assert running.ask(path, {**body, "model": "x"}).status == 404
        assert running.ask("/pass?text=a&model=x").status == 404
        assert running.ask("/fill-mask", {"inputs": "a [MASK]", "model": "x"}).status == 200  # only one has that head


def test_two_models_whose_names_end_alike_are_not_confused(sentence: Model, tmp_path: Path) -> None:
    folders = [tmp_path / part / "mini" for part in "ab"]
    for folder in folders:
        folder.parent.mkdir()
        folder.symlink_to(sentence.path)  # type: ignore[arg-type]
    with serving([bertcli.load(folder) for folder in folders]) as running:
        assert running.ask("/embed", {"inputs": "a", "model": "mini"}).status == 404
        assert running.ask("/embed", {"inputs": "a", "model": str(folders[1])}).status == 200


def test_any_name_is_welcome_where_one_model_fits(sentence: Model, made: Made) -> None:
    with serving([sentence, bertcli.load(made(**cases.RANKER))]) as running:
        assert running.given("/v1/embeddings", {"input": "a", "model": "gpt"})["model"] == sentence.name
        ranked = running.given("/v1/rerank", {"query": "a", "documents": ["b"], "model": "rerank-v3.5"})
        assert ranked["model"] != sentence.name


def test_a_name_nearly_of_another_model_that_can_do_it_is_a_mistake(sentence: Model, made: Made) -> None:
    """An embedder answers to any name, but not to one nearly that of a model for masks, which has vectors, too."""
    models = [sentence, bertcli.load("bert-mini-mlm"), bertcli.load(made(**cases.RANKER))]
    with serving(models) as running:
        for path, body in (("/v1/embeddings", {"input": "a"}), ("/embed", {"inputs": "a"})):
            refused = running.ask(path, {**body, "model": "bert-mini-mln"})
            assert refused.status == 404
            assert "did you mean bert-mini-mlm?" in str(refused.body)
            assert running.ask(path, {**body, "model": "bert-mini-mlm"}).status == 200
            for name in ("text-embedding-3-small", "bert-mini-sentense"):
                assert running.ask(path, {**body, "model": name}).status == 200
        ranked = {"query": "a", "documents": ["b"], "model": "bert-mini-sentense"}
        assert running.ask("/v1/rerank", ranked).status == 200  # one model was made for it


def test_a_name_nearly_of_another_model_is_a_mistake_whatever_its_capitals(sentence: Model, tmp_path: Path) -> None:
    folder = tmp_path / "BERT-Mini-MLM"
    folder.symlink_to(sample("bert-mini-mlm"))
    with serving([sentence, bertcli.load(folder)]) as running:
        for name in ("bert-mini-mlm", "BERT-Mini-MLN", "org/bert-mini-mln"):
            refused = running.ask("/embed", {"inputs": "a", "model": name})
            assert refused.status == 404
            assert "BERT-Mini-MLM?" in str(refused.body)


# ------------------------------------------------------------------------------------------- what costs is counted


@pytest.fixture(scope="module")
def several(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    names: list[str | Path] = [
        "bert-mini-mlm",
        "bert-mini-sentence",
        made(**cases.INFERENCE),
        made(**cases.TAGGER),
        made(**cases.READER),
    ]
    names.append(write_gliner(tmp_path_factory.mktemp("several") / "gliner"))
    names.append(write_late(tmp_path_factory.mktemp("several") / "late", "modules fixed"))
    door = OF_A_REQUEST._replace(entries=10, predictions=500, tokens=20_000, vectors=10_000)
    limits = Limits(quiet=True, door=door)
    with serving([bertcli.load(name) for name in names], limits) as server:
        yield server


def test_info_has_labels_only_of_models_that_have_labels(several: Running) -> None:
    types = [one["model_type"] for one in several.given("/info")["models"]]
    labels = {name: [*of_type["id2label"]] for one in types for name, of_type in one.items() if "id2label" in of_type}
    assert labels["fill-mask"] == labels["answer"] == labels["tag"] == [], "the last is a GLiNER model"
    assert len(labels["classifier"]) == 3
    (tagger,) = (one["tag"]["id2label"] for one in types if one.get("tag", {}).get("id2label"))
    assert "LABEL_0" not in tagger.values()


LABELS = [f"label{number}" for number in range(100_000)]
MASKS = "[MASK] " * 60
EXPENSIVE = {
    "candidates": ("/zero-shot", {"inputs": "a", "parameters": {"candidate_labels": LABELS}}, "100,000", "10"),
    "a text of candidates": ("/zero-shot", {"inputs": "a", "parameters": {"candidates": "a,b" * 50}}, "51", "10"),
    "targets": ("/fill-mask", {"inputs": "a [MASK]", "parameters": {"targets": LABELS[:11]}}, "11", "10"),
    "predictions": ("/fill-mask", {"inputs": MASKS, "parameters": {"top_k": 8192}}, "491,520", "500"),
    "long predictions": ("/fill-mask", {"inputs": f"[MASK] {'a' * 100_000}", "parameters": {"top_k": 5}}, "505", "500"),
    "answers": ("/answer", {
        "inputs": {"question": "Who?", "context": "Ann did."}, "parameters": {"top_k": 501},
    }, "501", "500"),
    "windows": ("/tag", {"inputs": "a b " * 5000, "parameters": {"max_length": 24, "stride": 20}}, "", "20,000"),
    "every token masked": ("/score", {"inputs": ["the dog ran home " * 40] * 2}, "0", "20,000"),
    "all beginnings": ("/fill-mask", {"inputs": MASKS, "parameters": {"joint": True}}, "", "20,000"),
    "a long text for each label": (
        "/zero-shot", {"inputs": "a" * 100_000, "parameters": {"candidates": "a,b,c,d,e,f,g"}}, "21,", "20,000",
    ),
    "long answers": ("/answer", {
        "inputs": {"question": "Who?", "context": "Ann did."}, "parameters": {"top_k": 499, "max_answer_len": 10**9},
    }, "", "500"),
    "spans of answers": ("/answer", {
        "inputs": {"question": "Who?", "context": "Ann did. " * 3000}, "parameters": {"top_k": 499},
    }, "", "20,000"),
    "a long redacted word": ("/tag", {
        "inputs": "a b " * 750, "parameters": {"redact": True, "redact_with": "z" * 150},
    }, "", "500"),
    "a long template": ("/zero-shot", {
        "inputs": ["a"] * 10, "parameters": {"candidates": "a,b", "hypothesis_template": "b" * 50_000},
    }, "31,", "20,000"),
    "a template of many places": ("/zero-shot", {
        "inputs": "a", "parameters": {"candidates": ["a" * 1000], "hypothesis_template": "{}" * 1000},
    }, "1,005,000", "250,000"),
    "spans and labels": ("/tag", {
        "inputs": "tea " * 4600, "model": "gliner", "parameters": {"labels": [*"abcdefghij"]},
    }, "", "20,000"),
    "long labels": ("/tag", {"inputs": "tea", "model": "gliner", "parameters": {"labels": ["a " * 200_000]}}, "400,000",
        "250,000"),
    "vectors of documents' tokens": ("/rerank", {
        "query": "tea", "texts": ["the dog ran home " * 3] * 40, "model": "late",
    }, "", "10,000"),
    "vectors of tokens": ("/embed_all", {"inputs": ["the dog ran home " * 80]}, "768", "500"),
}  # fmt: skip


@pytest.mark.parametrize("what", EXPENSIVE)
def test_what_costs_too_much_is_refused_with_the_limit(several: Running, what: str) -> None:
    path, body, counted, limit = EXPENSIVE[what]
    refused = several.ask(path, body)
    assert refused.status == 422, refused
    assert refused.body["error_type"].startswith("too_many_")
    assert counted in refused.body["error"]
    assert f"more than {limit}: " in refused.body["error"]


def test_what_is_within_the_limits_is_answered(several: Running) -> None:
    ten = {"inputs": "a", "parameters": {"candidate_labels": LABELS[:10]}}
    assert len(several.given("/zero-shot", ten)["labels"]) == 10
    assert len(several.given("/fill-mask", {"inputs": "a [MASK]", "parameters": {"top_k": 500}})) == 500
