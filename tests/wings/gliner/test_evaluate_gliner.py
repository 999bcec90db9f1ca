"""evaluate --task tag with a GLiNER model: F1 of the entities that `tag --labels` finds, by counts made here."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.gliner import write_gliner
from helpers.json_files import read_json, write_json, write_json_lines
from helpers.terminal import bertcli as command

import bertcli
from bertcli.model import Model

SENTENCES = (
    ["She", "poured", "a", "cup", "of", "hot", "coffee", "in", "Paris"],
    ["Berlin"],
    ["the", "river", ":", "a", "well", "known", "man", "bought", "coffee", "and", "sold", "milk"],
    ["he", "said", "1,000", "cups", "of", "U.S.", "coffee"],
)
LABELS = ("drink", "person")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gliner(tmp_path_factory.mktemp("gliner") / "model")


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return bertcli.load(folder)


def tags_of(words: list[str], entities: list[Any], names: dict[str, str]) -> list[str]:
    """IOB2 of the entities that begin and end with words of the data."""
    begins, begin = {}, 0
    for number, word in enumerate(words):
        begins[begin] = number
        begin += len(word) + 1
    ends = {begin + len(words[number]): number for begin, number in begins.items()}
    tags = ["O"] * len(words)
    for one in entities:
        first, last = begins.get(one["start"]), ends.get(one["end"])
        if first is not None and last is not None:
            name = names[one["entity_group"]]
            tags[first : last + 1] = [f"B-{name}", *[f"I-{name}"] * (last - first)]
    return tags


def figures_of(report: str) -> dict[str, float]:
    (of_model,) = json.loads(report)["models"]
    return {name: figure["value"] for name, figure in of_model["metrics"].items()}


def test_gliner_gives_a_tag_for_each_word_of_a_row(folder: Path, model: Model, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    write_json_lines(rows, ({"tokens": words} for words in SENTENCES[:3]))
    arguments = ("tag", "-m", folder, "-i", rows, "--labels", ",".join(LABELS), "--format", "jsonl")
    own_names = {label: label for label in LABELS}
    records = command(*arguments).records
    for words, record in zip(SENTENCES, records, strict=False):
        alone = model.tag(" ".join(words), labels=LABELS)
        assert record["tokens"] == words
        assert record["tags"] == tags_of(words, alone["entities"], own_names)
    assert sum(tag != "O" for record in records for tag in record["tags"]) > 3
    for option in ("--nested", "--multi-label", "--redact"):
        assert all("tags" not in record for record in command(*arguments, option).records)


def test_evaluate_counts_the_entities_of_gliner(folder: Path, model: Model, tmp_path: Path) -> None:
    names = {"drink": "DRINK", "person": "PER"}
    found = [record["entities"] for record in model.tag(map(" ".join, SENTENCES), labels=LABELS)]
    said = sum(map(len, found))
    # Of the first sentence the last entity is left out of the data, of the third the first one has the other type.
    # Entities of a part of a word ("U" of "U.S.") are in no data.
    other = {"drink": "person", "person": "drink"}
    changed = [found[0][:-1], found[1], [*found[2]], found[3]]
    changed[2][0] = {**found[2][0], "entity_group": other[found[2][0]["entity_group"]]}
    gold = [tags_of(words, some, names) for words, some in zip(SENTENCES, changed, strict=True)]
    true = sum(tag.startswith("B-") for tags in gold for tag in tags)
    right = true - 1
    assert said - 2 > right > 2

    data = tmp_path / "data.jsonl"
    rows = [{"tokens": words, "tags": tags} for words, tags in zip(SENTENCES, gold, strict=True)]
    write_json_lines(data, rows)
    renamed = ("--rename-label", "DRINK=drink,PER=person", "--format", "json")
    result = command("evaluate", data, "-m", folder, *renamed)
    assert result.status == 0, result.error
    figures = figures_of(result.out)
    assert figures["precision"] == pytest.approx(right / said)
    assert figures["recall"] == pytest.approx(right / true)
    assert figures["f1"] == pytest.approx(2 * right / (said + true))
    assert figures["covered"] == 1, "--redact hides entities of any type"
    assert "looking for the types in the data: drink, person" in result.err
    how: dict[str, Any] = {"rename_label": {"DRINK": "drink", "PER": "person"}}
    named = bertcli.evaluate(data, model, labels=["drink", "person"], **how)
    assert figures_of(json.dumps(named.record)) == figures
    surer = bertcli.evaluate(data, model, threshold=0.9999, **how)
    assert figures_of(json.dumps(surer.record))["recall"] < right / true


def test_evaluate_asks_gliner_for_the_types_of_spans(folder: Path, model: Model, tmp_path: Path) -> None:
    text = " ".join(SENTENCES[0])
    found = [(one["start"], one["end"], one["entity_group"]) for one in model.tag(text, labels=LABELS)["entities"]]
    missed = [(0, 1, label) for label in LABELS]
    assert not {*found} & {*missed}
    data = tmp_path / "spans.jsonl"
    write_json(data, {"text": text, "entities": found + missed})
    figures = figures_of(command("evaluate", data, "-m", folder, "--format", "json").out)
    assert figures["precision"] == 1
    assert figures["recall"] == pytest.approx(len(found) / (len(found) + 2))
    letters = {place for start, end, _ in found for place in range(start, end) if text[place] != " "}
    assert figures["covered"] == pytest.approx(len(letters) / len({*letters, 0}))


def test_evaluate_shows_the_entities_of_gliner_in_a_conll_file(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.conll"
    data.write_text("a O\ncup B-drink\nof I-drink\ntea I-drink\n\nBerlin B-city\n", encoding="utf-8")
    result = command("evaluate", data, "-m", folder, "-o", tmp_path / "report.json")
    assert result.status == 0, result.error
    (of_model,) = read_json(tmp_path / "report.json")["models"]
    (missed,) = of_model["worst"]
    assert (missed["expected"], missed["found"]) == ("cup of tea (drink)", "none")
    assert {row["label"]: row["f1"] for row in of_model["labels"]} == {"city": 1.0, "drink": 0.0}
    with pytest.raises(bertcli.BertcliError, match=r"'city' is not one of this model's: drink \(--rename-label"):
        bertcli.evaluate(data, bertcli.load(folder), labels=["drink"])


def test_evaluate_takes_labels_for_gliner_alone(folder: Path, tmp_path: Path, made: Made) -> None:
    data = tmp_path / "data.jsonl"
    write_json(data, {"tokens": ["tea"], "tags": ["O"]})
    own = made(head="token_classifier", id2label={0: "O", 1: "B-LOC"})
    with pytest.raises(
        bertcli.BertcliError, match="has labels of its own: labels and threshold are for models that take types"
    ):
        bertcli.evaluate(data, bertcli.load(own), labels=["person"])
    assert "no type to look for: name some, in Python (labels=)" in command("evaluate", data, "-m", folder).error
    reviews = tmp_path / "reviews.csv"
    reviews.write_text("text,label\na,pos\n", encoding="utf-8")
    with pytest.raises(bertcli.BertcliError, match="labels"):
        bertcli.evaluate(reviews, bertcli.load("bert-mini-sentiment"), labels=["person"])
