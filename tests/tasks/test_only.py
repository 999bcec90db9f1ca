"""--only: a label that no entity can have is refused by every model; its entities would stay readable.

That every door refuses it is in test_every_door.py.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.gliner import write_gliner
from helpers.gliner2 import write_gliner2
from helpers.known_taggers import word_piece_tagger
from helpers.terminal import bertcli as command

import bertcli
from bertcli.errors import BertcliError

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
    return result.out.strip() or result.said


def in_python(folder: Path, **options: Any) -> str:
    try:
        return str(bertcli.load(folder).tag(TEXT, redact=True, **options)["redacted"])
    except BertcliError as error:
        return str(error)


@pytest.mark.parametrize("ask", [in_shell, in_python])
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
    whose = r"labels \(--labels\) name" if "labels" in options else f"{folders[model].name} has"
    refused = ask(folders[model], **options, only=(right, "NOPE"))
    assert re.search(rf"{whose} no label 'NOPE' \(--only\): choose from ", refused)
    assert TEXT not in refused
    assert "names no label: give some" in ask(folders[model], **options, only=())


def test_only_reads_a_text_of_names_as_the_command_does(folders: dict[str, Path]) -> None:
    assert in_python(folders["tagger"], only="PER, LOC") == in_python(folders["tagger"])
    assert (
        in_python(folders["tagger"], only="PER,") == "[PER] poured a cup of hot coffee in Paris, and he drank the tea!"
    )
