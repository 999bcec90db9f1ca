"""Work stops when nobody waits for it: a client that leaves while one of its texts is computed costs no more passes."""

import threading
import time
from collections.abc import Iterator
from functools import partial
from shutil import copytree
from typing import Any

import pytest
from conftest import Made
from helpers.checkpoints import Sentence
from helpers.gliner import write_gliner
from helpers.served import Running, serving
from reference import task_cases as cases

import bertcli
from bertcli.engine.pauses import pausing
from bertcli.files.texts import Text
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.registry import spec, work_of
from bertcli.tasks.running import batches
from bertcli.tokens.tokenizer import Tokenizer
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.service import Limits

WORDS = "the queen drank hot tea and a dog sat in paris " * 40
NAMES = [f"{word} {number}" for number in range(20) for word in ("tea", "dog", "cat")]
LABELS = {
    "model": "gliner",
    "inputs": " ".join(f"tea {number}" for number in range(900)),
    "parameters": {"labels": ["drink", "city"]},
}
# One text each, which takes many passes: copies, windows, alternatives, fillings; or many texts.
BODIES: dict[str, dict[str, Any]] = {
    "/zero-shot": {"model": "inference", "inputs": "hot tea", "parameters": {"candidate_labels": NAMES}},
    "/score": {"model": "masks", "inputs": WORDS[:150]},
    "/fill-mask": {"model": "masks", "inputs": "the [MASK] drank [MASK] [MASK] [MASK]", "parameters": {"joint": True}},
    "/tag": {"model": "tagger", "inputs": WORDS},
    "/answer": {"model": "reader", "inputs": {"question": "who?", "context": WORDS}},
    "/tag of labels": LABELS,
    "/keywords": {"model": "vectors", "inputs": WORDS},
    "/classify": {"model": "inference", "inputs": [f"{name} and {name}" for name in NAMES]},
    "/embed": {"model": "vectors", "inputs": NAMES},
    "/rerank": {"model": "vectors", "query": "hot tea", "texts": NAMES},
}


@pytest.fixture(scope="module")
def running(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    root = tmp_path_factory.mktemp("wanted")
    kinds: dict[str, dict[str, Any]] = {
        "vectors": {"sentence": Sentence(("mean",))},
        "masks": {"head": "pretraining", "seed": 7},
        "inference": cases.INFERENCE,
        "tagger": cases.TAGGER,
        "reader": cases.READER,
    }
    folders = [copytree(made(**keywords), root / name) for name, keywords in kinds.items()]
    folders.append(write_gliner(root / "gliner", backbone="bert"))
    with serving([bertcli.load(folder) for folder in folders], Limits(quiet=True, batch_tokens=32)) as server:
        yield server


@pytest.mark.parametrize("case", BODIES)
def test_what_a_client_left_is_given_up_after_the_pass_under_way(
    case: str, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = case.partition(" ")[0]
    body = BODIES[case]
    monkeypatch.setattr(batches, "BATCH_TOKENS", 32)
    compute = LoadedModel.hidden_states
    passes: list[int] = []
    begun, goes_on = threading.Event(), threading.Event()
    goes_on.set()

    def counted(model: LoadedModel, *arguments: Any) -> Any:
        passes.append(1)
        begun.set()
        assert goes_on.wait(30)
        return compute(model, *arguments)

    monkeypatch.setattr(LoadedModel, "hidden_states", counted)
    running.given(path, body)
    whole = len(passes)
    assert whole >= 4
    passes.clear()
    begun.clear()
    goes_on.clear()
    client = running.begun(path, body)
    assert begun.wait(20)
    client.close()
    end = time.monotonic() + 20
    while running.server.queue.tokens and time.monotonic() < end:
        time.sleep(0.001)
    goes_on.set()
    assert running.given("/health") == {"status": "ok"}
    running.given("/embed", {"model": "vectors", "inputs": "hot tea"})
    # What was under way, and the request that came after it.
    assert len(passes) - 1 <= 2 < whole, (whole, len(passes))


LONG = "tea river king " * 800
LONG_TEXTS: dict[str, tuple[str, dict[str, Any], Text]] = {
    "gliner": ("tag", {"labels": ["drink", "city"]}, Text(LONG)),
    "tagger": ("tag", {"max_length": 24}, Text(LONG)),
    "reader": ("answer", {"max_length": 24, "stride": 4}, Text("who?", LONG)),
}


@pytest.mark.parametrize("name", LONG_TEXTS)
def test_a_long_text_is_given_up_between_its_windows(name: str, running: Running) -> None:
    """Also once the network has run: what it says of each window takes longer to read than a pass."""
    command, options, text = LONG_TEXTS[name]
    found = spec(command)
    assert found is not None
    (model,) = (served.model for served in running.server.models if served.short == name)
    task = work_of(found).plan(model, found.options(**options))
    group = task.tokenize_group([text], 0)
    looks: list[int] = []
    with pausing(partial(looks.append, 1)):
        task.compute(group)
    assert len(looks) > 5


@pytest.mark.parametrize("ends", ["client", "timeout"])
@pytest.mark.parametrize(("path", "body"), [("/pass?text=hot+[MASK]", None), ("/tokenize", {"inputs": NAMES})])
def test_pages_and_tokens_stop_when_nobody_waits(
    path: str, body: Any, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of a pass takes several passes, tokens one call a text: after the one under way there is no other."""
    model = bertcli.load("bert-mini-mlm")
    owner, name = (LoadedModel, "outputs") if body is None else (Tokenizer, "encode")
    calls: list[int] = []
    begun, goes_on, left = threading.Event(), threading.Event(), threading.Event()
    plain = getattr(owner, name)

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        begun.set()
        assert goes_on.wait(30)
        return plain(*arguments, **options)

    leave = Exchange._leave

    async def noticed(exchange: Exchange) -> None:
        await leave(exchange)
        left.set()

    monkeypatch.setattr(Exchange, "_leave", noticed)
    with serving([model], Limits(quiet=True, timeout=30 if ends == "client" else 0.3)) as running:
        monkeypatch.setattr(owner, name, counted)
        client = running.begun(path, body)
        assert begun.wait(20)
        if ends == "client":
            client.close()
            assert left.wait(20)
        else:
            answer = client.getresponse()
            assert answer.status == 504, answer.read()
            client.close()
        goes_on.set()
        until = time.monotonic() + 20
        while running.server._in_pool and time.monotonic() < until:
            time.sleep(0.001)
    assert len(calls) == 1
