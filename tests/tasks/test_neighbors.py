"""`bertcli neighbors`: the rows of the embedding table that point the same way."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import make
from helpers.json_files import read_json, write_json
from helpers.terminal import Result, bertcli

import bertcli as library
from bertcli.errors import BertcliError
from bertcli.model import Model, load
from bertcli.tasks.compute.neighbors import neighbors


@pytest.fixture
def model(made: Made) -> Path:
    return made(head="mlm", seed=7)


def run(*arguments: str | Path, **settings: Any) -> Result:
    return bertcli("neighbors", *arguments, **settings)


def expected(model: Path, word: str, top_k: int) -> dict[str, Any]:
    """By the definition of the cosine, one row at a time, in float64."""
    opened = library.load(model)
    table = np.array(opened.network.embeddings.token, dtype=np.float64)
    id = opened.tokenizer.id_of(word)
    assert id is not None
    cosines = {
        other: float(row @ table[id] / np.linalg.norm(row) / np.linalg.norm(table[id]))
        for other, row in enumerate(table)
        if other != id
    }
    best = sorted(cosines, key=lambda other: -cosines[other])[:top_k]
    near = [
        {"token": opened.tokenizer.piece(one), "id": one, "cosine": pytest.approx(cosines[one], abs=1e-6)}
        for one in best
    ]
    return {"token": word, "neighbors": near}


def test_neighbors_nearest_pieces_by_cosine(model: Path) -> None:
    words = ["king", "##s", "[MASK]"]
    done = run("-m", model, *words, "--format", "json")
    assert done.status == 0, done.err
    assert done.json == [expected(model, word, 10) for word in words]


def test_neighbors_words_come_from_arguments_and_pipes(model: Path) -> None:
    by_argument = run("-m", model, "king", "queen", "--format", "jsonl", "--top-k", "3")
    assert [record["token"] for record in by_argument.records] == ["king", "queen"]
    assert [len(record["neighbors"]) for record in by_argument.records] == [3, 3]
    assert run("-m", model, "--format", "jsonl", "--top-k", "3", stdin="king\nqueen\n").out == by_argument.out
    assert run("-m", model, "--format", "json", stdin="").out == "[]\n"


def test_neighbors_word_is_read_as_the_tokenizer_reads_it(model: Path) -> None:
    assert run("-m", model, "KING", "--format", "jsonl").records[0]["token"] == "king"
    assert run("-m", model, "KING").out.split()[:3] == ["token", "id", "cosine"], "no column for one word"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("unbelievable", "'unbelievable' is 3 word pieces: un ##believ ##able; give one of them."),
        ("東西南北東", "'東西南北東' is"),
        ("zzzz\u2603", "unknown to the vocabulary"),
        ("", "'' is unknown to the vocabulary"),
        ("  ", "unknown to the vocabulary"),
    ],
)
def test_neighbors_word_that_is_no_piece_is_an_error_that_names_it(word: str, message: str, model: Path) -> None:
    assert message in run("-m", model, "king", word).error


def test_neighbors_more_than_there_are_is_all_there_are(model: Path) -> None:
    opened = library.load(model)
    (record,) = neighbors(opened, ["king"], top_k=10**6)
    assert len(record["neighbors"]) == opened.config.vocab_size - 1
    with pytest.raises(BertcliError, match="at least 1"):
        list(neighbors(opened, ["king"], top_k=0))


def with_row(model: Path, row: int, value: float) -> Model:
    """The model with one row of its embeddings set to a value."""
    opened = library.load(model)
    network: Any = opened.network
    table = np.array(network.embeddings.token)
    table[row] = value
    return replace(opened, network=replace(network, embeddings=replace(network.embeddings, token=table)))


def test_neighbors_damaged_embeddings_are_told(model: Path) -> None:
    with pytest.raises(BertcliError, match="damaged"):
        list(neighbors(with_row(model, 3, np.nan), ["king"]))


def test_neighbors_row_of_zeros_is_near_nothing(model: Path) -> None:
    (record,) = neighbors(with_row(model, 3, 0), ["king"], top_k=10**6)
    assert next(one["cosine"] for one in record["neighbors"] if one["id"] == 3) == 0


def test_neighbors_where_ids_have_gaps(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", head="pretraining", tokenizer="json")
    file = folder / "tokenizer.json"
    data = read_json(file)
    vocabulary = data["model"]["vocab"]
    gone = vocabulary.pop("cat")
    write_json(file, data)
    model = load(folder)
    (found,) = neighbors(model, ["tea"], top_k=10_000)
    ids = {one["id"] for one in found["neighbors"]}
    assert ids == set(vocabulary.values()) - {vocabulary["tea"]}
    assert gone not in ids
