"""The bundled models: whole, small, and as good as their model card says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.json_files import read_json, read_json_lines
from helpers.near import assert_near

import bertcli
from bertcli.names import SAMPLES

ROOT = Path(__file__).parents[2]
FOLDERS = {name: ROOT / "sample_weights" / name for name in SAMPLES}
DATA = ROOT / "tests" / "data"
FIRST, TOP_FIVE = 40, 64  # sentences of the cloze set with an accepted word there, as the model card reports
TRIPLETS, PARAPHRASES = 14, 116  # of 120 each: those right, and those found first among the other 119


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of tests/data/NAME.jsonl."""
    return read_json_lines(DATA / f"{name}.jsonl")


CLOZE = rows("cloze")


@pytest.fixture(scope="module")
def predictions() -> list[list[str]]:
    """The five best words for every cloze sentence."""
    records = bertcli.load(str(FOLDERS["bert-mini-mlm"])).fill_mask([row["text"] for row in CLOZE], top_k=5)
    return [[found["token_str"] for found in record["masks"][0]["predictions"]] for record in records]


def test_all_fit_in_the_package_and_are_plain_folders() -> None:
    for folder in FOLDERS.values():
        names = {file.name for file in folder.iterdir()}
        assert {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt", "tokenizer_config.json"} <= names
        header = (folder / "model.safetensors").read_bytes()
        entries = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
        assert {entry["dtype"] for name, entry in entries.items() if name != "__metadata__"} == {"F16"}
    total = sum(file.stat().st_size for folder in FOLDERS.values() for file in folder.iterdir())
    assert total < 48e6


@pytest.mark.any_kernel
@pytest.mark.parametrize("name", list(FOLDERS))
def test_vocab_txt_and_tokenizer_json_agree(name: str) -> None:
    lines = (FOLDERS[name] / "vocab.txt").read_text(encoding="utf-8").splitlines()
    stored = read_json(FOLDERS[name] / "tokenizer.json")["model"]["vocab"]
    assert stored == {piece: index for index, piece in enumerate(lines)}
    assert len(lines) == bertcli.load(str(FOLDERS[name])).config.vocab_size
    assert lines[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def test_cloze_as_reported(predictions: list[list[str]]) -> None:
    first = sum(words[0] in row["accepted"] for row, words in zip(CLOZE, predictions, strict=True))
    five = sum(not set(words).isdisjoint(row["accepted"]) for row, words in zip(CLOZE, predictions, strict=True))
    assert (first, five) == (FIRST, TOP_FIVE)


def test_top_five_as_the_reference_has_them(predictions: list[list[str]]) -> None:
    assert predictions == read_json(DATA / "cloze_top_five.json")


def test_next_sentence_prefers_what_follows() -> None:
    model = bertcli.load(str(FOLDERS["bert-mini-mlm"]))
    first = "The king had three daughters. The youngest was so beautiful that everyone in the castle loved her."
    follows = "One day she went into the garden of the castle, and there the princess met an old woman."
    other = "The company sold its software division in 2004 and reported a loss of two million dollars."
    records = model.classify([first, first], [follows, other], head="nsp")
    scores = [{found["label"]: found["score"] for found in record["labels"]} for record in records]
    assert scores[0]["is_next"] > 0.5 > scores[1]["is_next"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("One of the best movies I have ever seen.", "positive"),
        ("A boring film with a bad script.", "negative"),
        ("This phone works great and the picture quality is excellent.", "positive"),
        ("It stopped working after two days, a waste of money.", "negative"),
    ],
)
def test_plain_sentiment(text: str, label: str) -> None:
    record = bertcli.load(str(FOLDERS["bert-mini-sentiment"])).classify([text])[0]
    assert record["labels"][0]["label"] == label


@pytest.fixture(scope="module")
def sentences() -> bertcli.Model:
    return bertcli.load(str(FOLDERS["bert-mini-sentence"]))


def test_near_meaning_and_shared_words_as_reported(sentences: bertcli.Model) -> None:
    text, near, far = (sentences.encode([row[key] for row in rows("triplets")]) for key in ("text", "near", "far"))
    assert ((text * near).sum(1) > (text * far).sum(1)).sum() == TRIPLETS


def test_paraphrases_are_found_as_reported(sentences: bertcli.Model) -> None:
    queries, corpus = (sentences.encode([row[key] for row in rows("paraphrases")]) for key in ("text", "paraphrase"))
    assert ((queries @ corpus.T).argmax(1) == np.arange(len(queries))).sum() == PARAPHRASES


def test_sentence_vectors_are_those_of_sentence_transformers(sentences: bertcli.Model) -> None:
    reference = read_json(DATA / "sentence_vectors.json")
    vectors = sentences.encode(reference["texts"])
    assert_near(np.linalg.norm(vectors, axis=1), 1, 1e-6)
    assert_near(vectors[:, : len(reference["begin"][0])], reference["begin"], 1e-5)
    assert_near(vectors @ vectors.T, reference["cosines"], 1e-5)
