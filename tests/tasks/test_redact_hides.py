"""--redact: nothing of a hidden text is in any byte of any output, at any door, whatever the texts and the model."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
import pytest
from helpers.known_taggers import word_piece_tagger
from helpers.served import Running, serving
from helpers.terminal import bertcli as command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bertcli
from bertcli.model import Model
from bertcli.wings.agents.roots import Roots
from bertcli.wings.agents.tools import AvailableModels, tools

# Names, in pieces: a model may give a part of one a label alone.
NAMES = {
    "zorblax": ("zor", "##blax"),
    "quixotl": ("quixotl",),
    "mullerz": ("mul", "##ler", "##z"),
    "vexcity": ("vex", "##city"),
}
SPELLED = ("zorblax", "Zorblax", "QUIXOTL", "quixotl", "Müllerz", "vexcity")
OTHERS = ("we", "met", "in", "today", "lor\u0435m")
SETS = ("O B-PER I-PER B-LOC I-LOC", "O B-X I-X E-X S-X", "O PER LOC", "O B I", "O B-O I-O B-PER")
FORMATS = ("table", "json", "jsonl", "csv", "markdown")
ENDINGS = (".txt", ".json", ".jsonl", ".csv", ".tsv", ".md", ".parquet", ".html")
texts = st.lists(
    st.tuples(st.sampled_from(SPELLED + OTHERS), st.sampled_from((" ", ", ", "'s ", "’s ", "-", ".", ". ", "  ", "/"))),
    min_size=1, max_size=8,
).map(lambda parts: "".join(word + sign for word, sign in parts))  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Model]:
    """Models that give the pieces of names labels at random, and other words none."""
    made: list[Model] = []
    home, random = tmp_path_factory.mktemp("taggers"), np.random.default_rng(5)
    pieces = [piece for parts in NAMES.values() for piece in parts]
    for number, labels in enumerate(SETS):
        names = labels.split()
        label_of = {piece: int(random.integers(0, len(names))) for piece in pieces}
        vocabulary = [*pieces, *OTHERS, "s", "'", "’", "-", ".", ","]
        folder = word_piece_tagger(home / str(number), vocabulary, label_of, names)
        made.append(bertcli.load(folder))
    return made


@pytest.fixture(scope="module")
def server(models: list[Model]) -> Iterator[Running]:
    with serving(models) as running:
        yield running


def secrets(model: Model, text: str, options: dict[str, Any]) -> set[str]:
    """What is hidden in a text, and does not stand elsewhere in it as a word that is not hidden."""
    record = model.tag(text, redact=True, keep_text=True, **options)
    hidden = {text[part["start"] : part["end"]] for part in record["hidden"]}
    # A word of a name is as secret as the name.
    words = {word for part in hidden for word in re.findall(r"\w{4,}", part)}
    return {word for word in words if word not in record["redacted"]}


def assert_hides(output: str, words: set[str]) -> None:
    for word in words:
        assert word not in output
        assert json.dumps(word)[1:-1] not in output


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_nothing_of_a_hidden_text_is_in_any_output(
    data: Any, models: list[Model], server: Running, tmp_path: Path
) -> None:
    model = data.draw(st.sampled_from(models))
    text = data.draw(texts)
    options: dict[str, Any] = {"aggregation": data.draw(st.sampled_from(("none", "simple", "first", "max", "average")))}
    options |= data.draw(st.sampled_from(({}, {"redact_with": "███"}, {"decode": "legal"}, {"threshold": 0.9})))
    words = secrets(model, text, options)
    folder = str(model.path)
    given_options = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    arguments = ["tag", "-m", folder, "--redact", *given_options]

    printed = command(*arguments, "--format", data.draw(st.sampled_from(FORMATS)), "--", text)
    assert_hides(printed.out + printed.err, words)
    shown = command(*arguments, "--", text, terminal=True)
    assert_hides(shown.out + shown.err, words)
    file = tmp_path / f"out{data.draw(st.sampled_from(ENDINGS))}"
    written = command(*arguments, "-o", file, "--", text)
    assert (written.status, {*tmp_path.iterdir()}) == (0, {file})
    content = file.read_bytes().decode("utf-8", "replace")
    if file.suffix == ".parquet":
        content += str(parquet.read_table(file).to_pylist())
    assert_hides(content + written.err, words)
    file.unlink()

    # Files that are written again, of a folder and alone.
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.txt").write_text(text, encoding="utf-8")
    row = json.dumps({"id": 1, "text": text})
    (source / "b.jsonl").write_text(f"{row}\n", encoding="utf-8")
    quoted = text.replace('"', '""')
    (source / "c.csv").write_text(f'text,id\n"{quoted}",1\n', encoding="utf-8")
    for name, output in (("", "out"), ("b.jsonl", "b.jsonl"), ("c.csv", "c.csv")):
        written = command(*arguments, "-i", source / name, "-o", tmp_path / output)
        assert written.status == 0
        content = "".join(file.read_text("utf-8") for file in tmp_path.glob("out/*"))
        content += "".join(file.read_text("utf-8") for file in tmp_path.glob("*.*"))
        assert_hides(content + written.err, words)
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "b.jsonl", "c.csv"}
    for file in tmp_path.iterdir():
        shutil.rmtree(file) if file.is_dir() else file.unlink()

    assert_hides(str(model.tag(text, redact=True, **options)), words)
    answer = server.given("/tag", {"model": model.name, "inputs": text, "parameters": {"redact": True, **options}})
    assert_hides(json.dumps(answer) + str(answer), words)
    made = tools(AvailableModels([folder], lambda _: model), Roots([folder]))
    (redact,) = (tool for tool in made if tool.name == "redact")
    assert "keep_text" not in redact.arguments
    asked = {name: value for name, value in options.items() if name in redact.arguments}
    assert_hides(str(redact.call({"texts": [text], **asked})), secrets(model, text, asked))


def test_the_texts_of_these_tests_have_something_to_hide(models: list[Model]) -> None:
    hidden = {word for model in models for word in secrets(model, " ".join(SPELLED), {})}
    assert hidden == {*SPELLED}
