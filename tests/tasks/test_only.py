"""--only: a label that no entity can have is refused by every model at every door; its entities would stay readable."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.gliner import write_gliner
from helpers.gliner2 import write_gliner2
from helpers.known_taggers import word_piece_tagger
from helpers.served import serving
from helpers.terminal import bertcli as command

import bertcli
from bertcli.errors import BertcliError
from bertcli.wings.agents.roots import Roots
from bertcli.wings.agents.tools import AvailableModels, tools

TEXT = "She poured a cup of hot coffee in Paris, and he drank the tea!"
Ask = Callable[..., str]  # a redacted text, or the refusal, of a request with these options


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("only")
    words = ("she", "paris")
    return {
        "tagger": word_piece_tagger(home / "tagger", words, {"she": 3, "paris": 1}),
        "gliner": write_gliner(home / "gliner"),
        "gliner2": write_gliner2(home / "gliner2"),
    }


def in_shell(folder: Path, **options: Any) -> str:
    arguments = [part for name, value in options.items() for part in (f"--{name}", ",".join(value))]
    result = command("tag", "-m", folder, "--redact", TEXT, *arguments)
    assert result.status == (0 if result.out else 2 if options["only"] == () else 1)
    return result.out.strip() or " ".join(result.err.replace("│", " ").split())


def in_python(folder: Path, **options: Any) -> str:
    try:
        return str(bertcli.load(folder).tag(TEXT, redact=True, **options)["redacted"])
    except BertcliError as error:
        return str(error)


def over_http(folder: Path, **options: Any) -> str:
    with serving([bertcli.load(folder)]) as running:
        asked = {"redact": True, **{name: [*value] for name, value in options.items()}}
        answer = running.ask("/tag", {"inputs": TEXT, "parameters": asked})
    assert answer.status in (200, 422)
    return str(answer.body["redacted"] if answer.status == 200 else answer.body)


def by_an_assistant(folder: Path, **options: Any) -> str:
    made = tools(AvailableModels([str(folder)], bertcli.load), Roots([str(folder)]))
    redact = next(tool for tool in made if tool.name == "redact")
    try:
        asked = {"texts": [TEXT], **{name: [*value] for name, value in options.items()}}
        return str(redact.call(asked)["records"][0]["redacted"])
    except BertcliError as error:
        return str(error)


@pytest.mark.parametrize("ask", [in_shell, in_python, over_http, by_an_assistant])
@pytest.mark.parametrize(
    ("model", "options", "right"),
    [
        ("tagger", {}, "LOC"),
        ("gliner", {"labels": ("drink", "capital city")}, "capital city"),
        ("gliner2", {"labels": ("drink", "Person: a human")}, "Person"),
        ("gliner2", {"labels": ("drink", "Person: a human")}, "Person: a human"),
    ],
)
def test_only_takes_the_labels_that_entities_can_have(
    ask: Ask, model: str, options: dict[str, Any], right: str, folders: dict[str, Path]
) -> None:
    every, only = ask(folders[model], **options), ask(folders[model], **options, only=(right,))
    shown = f"[{right.partition(':')[0]}]"
    assert shown in every
    assert shown in only
    assert only.count("[") == only.count(shown)
    whose = "labels name" if "labels" in options else f"{folders[model].name} has"
    refused = _without_options(ask(folders[model], **options, only=(right, "NOPE")))
    assert f"{whose} no label 'NOPE': choose from " in refused
    assert TEXT not in refused
    assert "only names no label: give some" in _without_options(ask(folders[model], **options, only=()))


def _without_options(message: str) -> str:
    """A message as the server has it, where options have no names on a command line."""
    return re.sub(r" \(--\w+\)", "", message)


def test_only_reads_a_text_of_names_as_the_command_does(folders: dict[str, Path]) -> None:
    assert in_python(folders["tagger"], only="PER, LOC") == in_python(folders["tagger"])
    assert (
        in_python(folders["tagger"], only="PER,") == "[PER] poured a cup of hot coffee in Paris, and he drank the tea!"
    )
