"""`bertcli score --pairs`: the summary on standard error and on a page."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.terminal import bertcli

from bertcli.evaluate.evaluators.minimal_pairs import preferences

PAIRS = """better,worse,kind
The cat sits on the mat.,The cat sit on the mat.,agreement
He was reading.,He were reading.,agreement
It rained.,It rained.,same
"""
OPTIONS = ("--column", "better", "--pair-column", "worse", "--pairs")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.csv"
    file.write_text(PAIRS)
    return file


def test_pairs_are_summed_up_for_all_and_by_group(pairs: Path) -> None:
    left = bertcli("score", "-i", pairs, *OPTIONS, "--by", "kind", "--format", "jsonl")
    assert left.status == 0
    assert [record["preferred"] for record in left.records] == ["text", "text", None]
    assert [record["id"] for record in left.records] == ["agreement", "agreement", "same"]
    assert "the first text is likelier in 83.3% of 3 pairs" in left.err
    assert "agreement: the first text is likelier in 100.0% of 2 pairs" in left.err
    assert "same: the first text is likelier in 50.0% of 1 pairs [0.5000, 0.5000], by +0.000" in left.err
    assert "not what a model built on this one will do" in left.err


def test_the_table_and_the_file_have_a_row_a_pair(pairs: Path, tmp_path: Path) -> None:
    table, file = bertcli("score", "-i", pairs, *OPTIONS).out, tmp_path / "scores.csv"
    assert "The cat sit on the mat." in table
    assert bertcli("score", "-i", pairs, *OPTIONS, "-o", file).status == 0
    assert file.read_text().splitlines()[0] == "index,text,text_pair,score,pair_score,preferred,error"


def test_the_page_has_the_summary_and_the_pairs_that_decide(pairs: Path, tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    assert bertcli("score", "-i", pairs, *OPTIONS, "--by", "kind", "-o", page).status == 0
    text = page.read_text()
    assert 'aria-label="0.8333 [0.5000, 1.0000]"' in text
    assert text.index("He was reading.") < text.index("The cat sits"), "the pair that decides most comes first"
    assert "It rained." not in text, "this pair decides nothing"
    assert "bert-mini-mlm: the pairs that decide" in text
    assert "<td><svg" in text
    assert "not what a model built on this one will do" in text
    assert "the ending must be" in bertcli("score", "-i", pairs, "--column", "better", "-o", page).error


def test_a_text_that_cannot_be_scored_is_left_out(pairs: Path) -> None:
    pairs.write_text(PAIRS + "only one\n")
    left = bertcli("score", "-i", pairs, *OPTIONS, "--keep-going", "--format", "jsonl")
    assert left.status == 1
    assert "the first text is likelier in 83.3% of 3 pairs" in left.err
    assert "1 of 4 texts could not be used" in left.err
    assert "line 5" in json.dumps(left.records[3])


def test_groups_need_pairs(pairs: Path) -> None:
    left = bertcli("score", "-i", pairs, "--column", "better", "--by", "kind")
    assert left.status == 2
    assert "add --pairs" in " ".join(left.err.split())


def test_the_mean_difference_is_that_of_the_scores() -> None:
    scores = [(-3.0, -5.0), (-4.0, -1.0), (-2.0, -2.5)]
    records = [
        {
            "score": a,
            "pair_score": b,
            "preferred": "text" if a > b else "text_pair",
            "id": i,
            "text": "",
            "text_pair": "",
        }
        for i, (a, b) in enumerate(scores)
    ]
    (model,) = preferences(records, "a model").record["models"]
    assert model["metrics"]["difference"]["value"] == pytest.approx(np.mean([a - b for a, b in scores]))
    assert model["metrics"]["preferred"]["value"] == pytest.approx(2 / 3)
    assert [*model["by"]] == ["0", "1", "2"]
