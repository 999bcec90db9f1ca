"""Which model does a work: one that was trained for it, else the bundled one, else what can; the same at every door."""

from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.terminal import bertcli as run
from reference import task_cases as cases

import bertcli
from bertcli import capabilities
from bertcli.wings.serve.served_model import Served
from bertcli.wings.serve.service import Limits, Service

NOTE = (
    "Note: {name} ({purpose}) was not trained for sentence vectors: its similarities may say nothing; leave out -m for "
    "the bundled model, which was.\n"
)


@pytest.fixture(scope="module")
def tagger(made: Made) -> str:
    return str(made(**cases.TAGGER))


def test_a_use_that_a_plugin_brings_is_called_by_its_name() -> None:
    note = capabilities.untrained(bertcli.load("bert-mini-mlm"), ("whitening",))
    assert note is not None
    assert "bert-mini-mlm (masked language model) was not trained for whitening: " in note


def test_trained_models_come_before_those_that_can() -> None:
    asked: list[int] = []

    def can(number: int) -> bool:
        asked.append(number)
        return number != 1

    best = capabilities.which([1, 2, 3, 4], lambda number: number == 3, can)
    assert next(best) == 3
    assert asked == [1, 2, 3]  # the fourth need not be opened
    assert [*capabilities.which([1, 2, 4], lambda number: False, can)] == [2, 4]
    assert [*capabilities.which([1], lambda number: True, can)] == []


@pytest.mark.parametrize(
    ("name", "trained"),
    [("bert-mini-sentence", "encode"), ("bert-mini-mlm", "fill-mask"), ("bert-mini-sentiment", "classify")],
)
def test_a_model_was_trained_for_its_first_use(name: str, trained: str) -> None:
    model = bertcli.load(name)
    assert capabilities.uses(model)[0] == trained
    for use in ("encode", "fill-mask", "classify", "tag"):
        assert capabilities.is_trained(model, (use,)) == (use == trained)


@pytest.mark.parametrize("arguments", [("similarity", "a", "b"), ("keywords", "tea"), ("search", "tea", "-i", "FILE")])
def test_the_shell_says_that_a_model_was_not_trained_for_it(
    arguments: tuple[str, ...], tagger: str, tmp_path: Path
) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("A dog ran home.\n")
    words = [str(file) if word == "FILE" else word for word in arguments]
    given = run(*words, "-m", tagger)
    assert NOTE.format(name=tagger, purpose="token classifier") in given.err
    assert given.status == 0
    assert "was not trained" not in run(*words).err
    assert "was not trained" not in run(*words, "-m", "bert-mini-sentence").err


def test_search_says_it_among_vectors_and_not_of_sparse_ones(tagger: str, tmp_path: Path) -> None:
    vectors, file = tmp_path / "v.npy", tmp_path / "notes.txt"
    file.write_text("A dog ran home.\n")
    assert run("encode", "-m", tagger, "tea", "-o", vectors).status == 0
    assert "was not trained" in run("search", "tea", "-i", vectors, "-m", tagger).err
    assert "was not trained" not in run("search", "tea", "-i", file, "--sparse", "-m", "bert-mini-mlm").err


def test_the_assistant_takes_the_trained_model_and_names_it(tagger: str, tmp_path: Path) -> None:
    pytest.importorskip("jsonschema")
    from bertcli.wings.agents.roots import Roots
    from bertcli.wings.agents.tools import AvailableModels, tools

    (tmp_path / "notes.txt").write_text("A dog ran home.\nInterest rates rose.\n")
    opened: list[str] = []

    def load(name: str) -> Any:
        opened.append(name)
        return bertcli.load(name)

    every = {tool.name: tool for tool in tools(AvailableModels([tagger], load), Roots([str(tmp_path)]))}
    two = ["A dog ran home.", "Interest rates rose."]
    compared = every["similarity"].call({"texts": two})
    assert compared["model"] == "bert-mini-sentence"
    assert compared["cosine"][0][1] == pytest.approx(0.0554, abs=1e-4)
    assert compared["cosine"][0][0] <= 1
    assert every["search"].call({"query": "a dog", "files": ["notes.txt"]})["model"] == "bert-mini-sentence"
    assert every["keywords"].call({"texts": two})["model"] == "bert-mini-sentence"
    assert every["classify"].call({"texts": two})["model"] == "bert-mini-sentiment"
    assert every["fill_mask"].call({"texts": ["hot [MASK]"]})["model"] == "bert-mini-mlm"
    assert every["redact"].call({"texts": two})["model"] == tagger
    assert opened == [tagger, "bert-mini-sentence", "bert-mini-sentiment", "bert-mini-mlm"]


def test_the_assistant_takes_what_can_where_nothing_was_trained() -> None:
    pytest.importorskip("jsonschema")
    from bertcli.tasks.registry import spec
    from bertcli.wings.agents.tools import AvailableModels

    encode = spec("encode")
    assert encode is not None
    models = AvailableModels(["bert-mini-mlm", "bert-mini-sentiment"], bertcli.load)
    assert models.for_task(encode, encode.options(), ("encode",)).name == "bert-mini-sentence"
    assert models.for_task(encode, encode.options(), ("late",)).name == "bert-mini-mlm"


def test_the_server_takes_the_trained_model(tagger: str) -> None:
    models = [Served(bertcli.load(name), Path(name).name) for name in (tagger, "bert-mini-mlm", "bert-mini-sentence")]
    service = Service(models, Limits(quiet=True))
    try:
        chosen = {use: service.choose((use,), None)[0].short for use in ("encode", "fill-mask", "tag")}
    finally:
        service.end()
    assert chosen == {"encode": "bert-mini-sentence", "fill-mask": "bert-mini-mlm", "tag": Path(tagger).name}
