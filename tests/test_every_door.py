"""One request at every door: the shell, Python, HTTP, an assistant. What is refused is refused with the same words.

Of the shell and of Python the words name options (`--only`); of HTTP they do not. No door begins the work.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from conftest import Made
from helpers.gliner import write_gliner
from helpers.served import Running, serving
from helpers.terminal import bertcli as run
from reference import task_cases as cases

import bertcli
from bertcli.errors import BertcliError
from bertcli.tasks.limits import DoorLimits
from bertcli.wings.serve.service import Limits

pytest.importorskip("jsonschema")
from bertcli.wings.agents import tools as of_agents
from bertcli.wings.agents.roots import Roots

TEXT = "She lives in Paris."
MASKED = "A [MASK] and a [MASK]."
PEOPLE = ["person", "city"]


class Tool(NamedTuple):
    """The assistant's tool of a task: its options, and those that the task always has with it."""

    name: str
    options: set[str]
    always: Mapping[str, Any] = MappingProxyType({})


# The tool of an assistant for each task, and the option that it has always.
TOOLS = {
    "classify": Tool("classify", {"candidates", "multi_label", "top_k"}),
    "fill-mask": Tool("fill_mask", {"targets", "top_k"}),
    "keywords": Tool("keywords", {"diversity", "ngrams", "top_k"}),
    "tag": Tool("redact", {"labels", "only", "redact_with"}, {"redact": True}),
}


class Refused(NamedTuple):
    """A request that is refused: of a task with a model, and the words; `shell` is the status of the command."""

    task: str
    model: str
    options: dict[str, Any]
    words: str
    text: str = TEXT
    shell: int = 1


TOO_SHORT = "max_length (--max-length) 1 is too small: a text needs 2 tokens."
TOO_LONG = "max_length (--max-length) is 100000, more than the 256 positions of this model."
TOO_MANY_FILLINGS = (
    "--joint gives at most 250 fillings, and 251 are asked for: choose a smaller top_k (--top-k), or fill each mask "
    "alone."
)
OF_TARGETS = "--within-word does not apply to a target (--target): leave it out."
REFUSED = [
    Refused("classify", "bert-mini-sentiment", {"multi_label": True},
            "template and multi_label are for candidates (--candidates), and there are none.", shell=2),
    Refused("classify", "NLI", {"candidates": ["a", "b"], "template": "no place"},
            "The template 'no place' has no {}, where the candidate belongs: write one (--template).", shell=2),
    Refused("fill-mask", "bert-mini-mlm", {},
            "There is no [MASK] in text 0 ('She lives in Paris.'): write [MASK] where a word is to be predicted."),
    Refused("fill-mask", "bert-mini-mlm", {"targets": []}, "There are no targets to rank.", MASKED),
    Refused("score", "bert-mini-mlm", {"target": "tea"},
            "There is no [MASK] in text 0 ('She lives in Paris.'): write [MASK] where a word is to be predicted."),
    Refused("keywords", "bert-mini-sentence", {"ngrams": [2, 1]},
            "ngrams (--ngrams) is 2,1: give 1 to 10, or two of these, the smaller first.", shell=2),
    Refused("keywords", "bert-mini-sentence", {"diversity": 2.0}, "diversity (--diversity) is 2.0: give 0 to 1.",
            shell=2),
    Refused("keywords", "bert-mini-sentence", {"diversity": 0.5, "top_k": 1001},
            "With diversity there are at most 1,000 keywords: leave out diversity (--diversity), or ask for fewer "
            "(--top-k).", shell=2),
    Refused("tag", "TAGGER", {"redact": True, "only": ["NOPE"]},
            "TAGGER has no label 'NOPE' (--only): choose from 'PER', 'LOC', 'MISC', 'E-ORG'."),
    Refused("tag", "TAGGER", {"redact": True, "labels": ["person"]},
            "tag --labels needs a model that finds entities of types that you name, and TAGGER does not; its heads: "
            "token_classifier (for tag). Choose one that does, such as -m urchade/gliner_small-v2.1."),
    Refused("tag", "GLINER", {"redact": True},
            "GLINER is a GLiNER model, which finds entities of any type: name the types that you want, as in "
            'labels=["person", "city"] (--labels "person, city").'),
    Refused("tag", "GLINER", {"redact": True, "labels": PEOPLE, "only": ["PER"]},
            "labels (--labels) name no label 'PER' (--only): choose from 'person', 'city'."),
    Refused("encode", "bert-mini-sentence", {"prompt_name": "query"},
            "bert-mini-sentence has no prompt 'query' (--prompt-name); it names none: give the words themselves with "
            "--prompt."),
    Refused("encode", "bert-mini-sentence", {"truncate_dim": 999},
            "Vectors of 256 numbers cannot be cut to 999 (see truncate_dim, --truncate-dim)."),
    Refused("encode", "bert-mini-sentence", {"max_length": 1},
            TOO_SHORT),
    Refused("encode", "bert-mini-sentence", {"max_length": 100_000}, TOO_LONG),
    Refused("classify", "bert-mini-sentiment", {"max_length": 1}, TOO_SHORT),
    Refused("classify", "bert-mini-sentiment", {"max_length": 100_000}, TOO_LONG),
    Refused("classify", "bert-mini-sentiment", {"head": "nsp"},
            "classify needs a next-sentence head (nsp), which bert-mini-sentiment does not have; its heads: pooler, "
            "classifier."),
    Refused("classify", "NLI", {"candidates": ["a", ""]},
            "There is an empty candidate among ('a', '') (--candidates): leave it out."),
    Refused("fill-mask", "bert-mini-mlm", {"max_length": 1}, TOO_SHORT, MASKED),
    Refused("fill-mask", "bert-mini-mlm", {"max_length": 100_000}, TOO_LONG, MASKED),
    Refused("fill-mask", "bert-mini-mlm", {"joint": True, "top_k": 251}, TOO_MANY_FILLINGS, MASKED),
    Refused("score", "bert-mini-mlm", {"max_length": 1}, TOO_SHORT),
    Refused("score", "bert-mini-mlm", {"max_length": 100_000}, TOO_LONG),
    Refused("score", "bert-mini-mlm", {"target": "tea", "within_word": True}, OF_TARGETS, MASKED, shell=2),
    Refused("score", "bert-mini-mlm", {"target": ""},
            "The target '' does not match text 0 ('A [MASK] and a [MASK].'): they have 2 and 8 tokens and differ at "
            "token 1 ([SEP]); write one [MASK] for every masked word piece.", MASKED),
    Refused("keywords", "bert-mini-sentence", {"ngrams": [0]},
            "ngrams (--ngrams) is 0: give 1 to 10, or two of these, the smaller first.", shell=2),
    Refused("keywords", "bert-mini-sentence", {"ngrams": [11]},
            "ngrams (--ngrams) is 11: give 1 to 10, or two of these, the smaller first.", shell=2),
    *(Refused("tag", "TAGGER", options,
              "redact_with, only, keep_text and threshold need redact: add --redact, or leave out --redact-with, "
              "--only, --keep-text, --threshold.", shell=2)
      for options in ({"threshold": 0.5}, {"redact_with": "X"}, {"only": ["PER"]}, {"keep_text": True})),
    Refused("tag", "TAGGER", {"nested": True},
            "nested and multi_label (--nested, --multi-label) need the types of entities to find: add labels "
            "(--labels).", shell=2),
    Refused("tag", "GLINER", {"labels": []},
            'labels (--labels) names no type of entity: give some, as in "person, city".', shell=2),
    Refused("tag", "GLINER", {"labels": PEOPLE, "aggregation": "none"},
            "aggregation, decode and ignore (--aggregation, --decode, --ignore) are for models that label tokens: "
            "leave them out, or leave out labels (--labels).", shell=2),
]  # fmt: skip


@pytest.fixture(scope="module")
def folders(made: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The folders of models that are not bundled, by the words for them above."""
    return {
        "TAGGER": str(made(**cases.TAGGER)),
        "NLI": str(made(**cases.INFERENCE)),
        "GLINER": str(write_gliner(tmp_path_factory.mktemp("door") / "gliner")),
    }


@pytest.fixture(scope="module")
def served(folders: dict[str, str]) -> Iterator[Running]:
    names = [*folders.values(), "bert-mini-sentiment", "bert-mini-mlm", "bert-mini-sentence"]
    with serving([bertcli.load(name) for name in names]) as running:
        yield running


def of_the_shell(task: str, model: str, texts: list[str], options: dict[str, Any]) -> tuple[int, str]:
    """Status and error of a command, without the frame around wrong usage."""
    words: list[str] = []
    for name, value in options.items():
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
    done = run(task, "-m", model, *texts, *words)
    return done.status, " ".join(done.err.replace("│", " ").split())


def of_python(task: str, model: str, texts: list[str], options: dict[str, Any]) -> str:
    with pytest.raises(BertcliError) as refused:
        getattr(bertcli.load(model), task.replace("-", "_"))(texts, **options)
    return str(refused.value)


def over_http(running: Running, task: str, model: str, texts: list[str], options: dict[str, Any]) -> tuple[int, str]:
    body: dict[str, Any] = {"model": model, "inputs": texts}
    if task == "encode":
        answer = running.ask("/embed", {**body, **options})
    else:
        path = "/zero-shot" if "candidates" in options else f"/{task}"
        answer = running.ask(path, {**body, "parameters": options})
    return answer.status, answer.body["error"]


def of_an_assistant(task: str, model: str, texts: list[str], options: dict[str, Any], folder: Path) -> str | None:
    """The words of the tool; None if it has no such option."""
    expected = TOOLS.get(task)
    if expected is None or not expected.always.items() <= options.items():
        return None
    given = {option: value for option, value in options.items() if option not in expected.always}
    if not given.keys() <= expected.options:
        return None
    models = of_agents.AvailableModels([model], bertcli.load)
    (tool,) = (tool for tool in of_agents.tools(models, Roots([str(folder)])) if tool.name == expected.name)
    assert tool.arguments.keys() == {"texts", *expected.options}
    with pytest.raises(BertcliError) as refused:
        tool.call({"texts": texts, **given})
    return str(refused.value)


def without_options(words: str) -> str:
    """The words as a program reads them, which has no command line."""
    without = re.sub(r" \([^()]*--[a-z][^()]*\)", "", words)
    return re.sub("--([a-z-]+)", lambda option: option[1].replace("-", "_"), without)


@pytest.mark.parametrize("refused", REFUSED, ids=lambda one: f"{one.task} {' '.join(one.options)} {one.model}")
def test_every_door_refuses_with_the_same_words_before_work(
    refused: Refused,
    folders: dict[str, str],
    served: Running,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bertcli.loaded_model.LoadedModel.hidden_states", None)
    model = folders.get(refused.model, refused.model)
    words = refused.words.replace(refused.model, model) if refused.model in folders else refused.words
    asked = (refused.task, model, [refused.text], refused.options)
    assert of_python(*asked) == words
    status, said = of_the_shell(*asked)
    assert status == refused.shell
    assert re.sub(r"\s", "", words) in re.sub(r"\s", "", said)  # a frame breaks lines
    assert over_http(served, *asked) == (422, without_options(words))
    assert of_an_assistant(*asked, tmp_path) in (words, None)


# Of a task: a model that has not the head for it, and what the shell and Python say.
UNABLE = [
    ("fill-mask", "bert-mini-sentiment", MASKED,
     "fill-mask needs a masked-language-model head (mlm), which bert-mini-sentiment does not have; its heads: pooler, "
     "classifier."),
    ("score", "bert-mini-sentiment", TEXT,
     "score needs a masked-language-model head (mlm), which bert-mini-sentiment does not have; its heads: pooler, "
     "classifier."),
    ("tag", "bert-mini-mlm", TEXT,
     "tag needs a head that labels tokens (token_classifier), which bert-mini-mlm does not have; its heads: pooler, "
     "mlm, nsp. Choose a model that has one, such as -m dslim/bert-base-NER."),
]  # fmt: skip


@pytest.mark.parametrize(("task", "model", "text", "words"), UNABLE)
def test_a_model_that_cannot_is_refused_at_every_door_before_work(
    task: str, model: str, text: str, words: str, served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server says which routes the model answers."""
    monkeypatch.setattr("bertcli.loaded_model.LoadedModel.hidden_states", None)
    assert of_python(task, model, [text], {}) == words
    assert of_the_shell(task, model, [text], {}) == (1, f"Error: {words}")
    status, said = over_http(served, task, model, [text], {})
    assert status == 422
    why, _, routes = said.partition(" It answers ")
    assert why == f"The model {model} cannot answer this route, which needs {task}."
    assert "/v1/embeddings" in routes.removesuffix(".").split(", ")


@pytest.mark.parametrize(
    ("task", "model", "text"),
    [("classify", "bert-mini-sentiment", TEXT), ("fill-mask", "bert-mini-mlm", MASKED),
     ("keywords", "bert-mini-sentence", TEXT)],
)  # fmt: skip
def test_a_number_below_its_bound_is_refused_at_every_door_before_work(
    task: str, model: str, text: str, served: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell's words are Typer's, those over HTTP pydantic's worded again, an assistant's JSON Schema's."""
    monkeypatch.setattr("bertcli.loaded_model.LoadedModel.hidden_states", None)
    asked = (task, model, [text], {"top_k": 0})
    assert of_python(*asked) == "top_k is 0; it must be at least 1."
    status, said = of_the_shell(*asked)
    assert (status, "'--top-k': 0 is not in the range x>=1" in said) == (2, True)
    assert over_http(served, *asked) == (422, "parameters.top_k must be a whole number of at least 1, not 0.")
    assert str(of_an_assistant(*asked, tmp_path)).endswith("top_k: 0 is less than the minimum of 1.")


# Of a task: the texts, the options, and the words of a door with the bounds below.
BOUNDS = DoorLimits(
    texts=2, characters=200_000, entries=2, in_options=40, tokens=600, predictions=50, vectors=1 << 20, files=1 << 20
)
TOO_MUCH: list[tuple[str, str, list[str], dict[str, Any], str]] = [
    ("fill-mask", "bert-mini-mlm", [MASKED] * 3, {}, "There are 3 texts, more than 2: send fewer at once."),
    ("fill-mask", "bert-mini-mlm", [MASKED], {"top_k": 26},
     "The answer would have at least 52 predictions, more than 50: ask for fewer."),
    ("fill-mask", "bert-mini-mlm", [MASKED], {"targets": ["tea", "cup", "a"]},
     "targets has 3 entries, more than 2: send fewer."),
    ("keywords", "bert-mini-sentence", [" ".join(map(str, range(40)))], {"ngrams": [1, 10]},
     "The request takes at least {} tokens to compute, more than 600: send fewer or shorter texts."),
    ("classify", "NLI", [TEXT], {"candidates": ["a cup of tea", "a cup of milk"]},
     "The parameters have {} characters, more than 40: shorten them."),
    ("classify", "bert-mini-sentiment", ["a" * 200_001], {},
     "The text at index 0 has 200,001 characters, more than 200,000: split it."),
    ("tag", "TAGGER", ["Ann lives in Paris. " * 50], {"redact": True},
     "The request takes at least {} tokens to compute, more than 600: send fewer or shorter texts."),
]  # fmt: skip


@pytest.mark.parametrize(("task", "model", "texts", "options", "words"), TOO_MUCH)
def test_what_multiplies_is_counted_before_work_at_doors_with_bounds(
    task: str,
    model: str,
    texts: list[str],
    options: dict[str, Any],
    words: str,
    folders: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The shell and Python have none."""
    model = folders.get(model, model)
    assert of_the_shell(task, model, texts, options)[0] == 0
    monkeypatch.setattr("bertcli.loaded_model.LoadedModel.hidden_states", None)
    monkeypatch.setattr(of_agents, "LIMITS", BOUNDS)
    expected = re.escape(words).replace(r"\{\}", r"[\d,]+")
    said = of_an_assistant(task, model, texts, options, tmp_path)
    assert re.fullmatch(expected, str(said))
    with serving([bertcli.load(model)], Limits(quiet=True, door=BOUNDS)) as running:
        assert over_http(running, task, model, texts, options) == (422, said)
