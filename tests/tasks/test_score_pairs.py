"""Minimal pairs, and `score` of words whose pieces are masked together: minicons and CrowS-Pairs (record_pairs.py)."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import Made
from helpers.json_files import read_json

import bertcli
from bertcli import BertcliError
from bertcli.files.texts import from_values
from bertcli.tasks.options import ReadOptions
from bertcli.tasks.running.run import results
from bertcli.wings.evaluate.minimal_pairs import Metric, PairsTask

RECORDED = read_json(Path(__file__).parent.parent / "reference" / "pairs.json")
FIRST, SECOND = zip(*RECORDED["pairs"], strict=True)


def compared(
    model: bertcli.Model, first: Sequence[str], second: Sequence[str] | None, metric: Metric = "pll", **options: Any
) -> list[dict[str, Any]]:
    """The records that `evaluate --task minimal-pairs` makes its figures of."""
    blocks = results(PairsTask(model, ReadOptions(**options), metric), from_values(first, second))
    return [record for block in blocks for record in block.records()]


@pytest.mark.parametrize("metric", ["pll", "within-word", "shared"])
def test_pairs_have_the_sums_of_minicons_and_of_crows_pairs(made: Made, metric: Metric) -> None:
    model = bertcli.load(made(head="mlm"))
    records = compared(model, FIRST, SECOND, metric)
    for record, (score, pair_score) in zip(records, RECORDED[metric], strict=True):
        assert record["score"] == pytest.approx(score, abs=2e-5)
        assert record["pair_score"] == pytest.approx(pair_score, abs=2e-5)
        expected = None if record["text"] == record["text_pair"] else "text" if score > pair_score else "text_pair"
        assert record["preferred"] == expected
    assert [*records[0]] == ["index", "text", "text_pair", "score", "pair_score", "preferred"]


def test_random_pairs_have_the_sums_of_crows_pairs(made: Made) -> None:
    pairs, expected = zip(*((case["pair"], case["shared"]) for case in RECORDED["random"]), strict=True)
    first, second = zip(*pairs, strict=True)
    records = compared(bertcli.load(made(head="mlm")), first, second, "shared")
    for record, sums in zip(records, expected, strict=True):
        assert [record["score"], record["pair_score"]] == pytest.approx(sums, abs=2e-5)


def test_within_word_masks_the_later_pieces_of_a_word(made: Made) -> None:
    model = bertcli.load(made(head="mlm"))
    plain, within = model.score(FIRST), model.score(FIRST, within_word=True)
    sums = [sum(token["log_prob"] for token in record["tokens"]) for record in within]
    assert sums == pytest.approx([score for score, _ in RECORDED["within-word"]], abs=2e-5)
    words = [token["token"] for token in within[1]["tokens"]]
    differ = [
        word
        for word, one, other in zip(words, plain[1]["tokens"], within[1]["tokens"], strict=True)
        if abs(one["log_prob"] - other["log_prob"]) > 1e-6
    ]
    assert differ == [word for word, after in pairwise(words) if after.startswith("##")]
    assert len(differ) > 5


def test_what_cannot_be_compared_is_refused(made: Made) -> None:
    model = bertcli.load(made(head="mlm"))
    with pytest.raises(BertcliError, match=r"no second text to compare it with \(--pair-column\)"):
        compared(model, ["The cat."], None)
    with pytest.raises(BertcliError, match=r"has more than 4 tokens, and a comparison of cut texts means nothing"):
        compared(model, ["The cat."], ["The cat sat on it."], max_length=4)
    with pytest.raises(BertcliError, match=r"--within-word does not apply to a target"):
        model.score(["The [MASK]."], within_word=True, target="The cat.")
