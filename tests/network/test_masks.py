"""Masks that are filled together, and masks whose true words are given: the cases where a shortcut would show."""

import itertools
import json
from pathlib import Path

import pytest
from conftest import Made
from helpers.checkpoints import make

import bertcli
from bertcli.model import Model
from bertcli.tasks.parts.joint import BEAM

WORDS = ["tea", "cat", "king", "milk", "river", "house"]


@pytest.fixture
def mlm(made: Made) -> Model:
    return bertcli.load(made(head="pretraining", seed=7))


def best_for_the_first(model: Model, text: str, words: list[str]) -> tuple[str, float]:
    """The text with its first mask filled, and how probable that is."""
    (record,) = model.fill_mask([text], targets=words, top_k=1)
    (found,) = record["masks"][0]["predictions"]
    return found["sequence"], found["score"]


def test_the_best_filling_may_begin_with_a_word_that_is_not_the_best(mlm: Model) -> None:
    expected = {}
    for first, second in itertools.product(WORDS, repeat=2):
        half, score = best_for_the_first(mlm, "[MASK] [MASK]", [first])
        whole, share = best_for_the_first(mlm, half, [second])
        expected[whole] = score * share
    greedy, _ = best_for_the_first(mlm, best_for_the_first(mlm, "[MASK] [MASK]", WORDS)[0], WORDS)
    best = max(expected, key=expected.__getitem__)
    assert expected[best] > 1.1 * expected[greedy]
    (record,) = mlm.fill_mask(["[MASK] [MASK]"], targets=WORDS, joint=True, top_k=1)
    assert [mask["predictions"][0]["sequence"] for mask in record["masks"]] == [best, best]
    assert record["masks"][0]["predictions"][0]["score"] == pytest.approx(expected[best], rel=1e-4)


def test_as_many_fillings_as_are_wanted(mlm: Model) -> None:
    (record,) = mlm.fill_mask(["[MASK] drank [MASK]"], joint=True, top_k=2 * BEAM)
    assert [len({one["sequence"] for one in mask["predictions"]}) for mask in record["masks"]] == [2 * BEAM] * 2


def test_a_target_is_cut_as_its_text_is(tmp_path: Path) -> None:
    """From the left, where what is kept of a text is not where it was."""
    folder = make(tmp_path / "model", head="mlm", seed=7)
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    settings["truncation_side"] = "left"
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    model = bertcli.load(folder)
    for (text, pair, target), (kept, kept_pair, kept_target) in (
        (("one two the [MASK] sat", None, "one two the cat sat"), ("the [MASK] sat", None, "the cat sat")),
        (("the [MASK]", "a cup of hot tea", "the king"), ("the [MASK]", "hot tea", "the king")),
        (("she saw the big [MASK]", "hot tea", "she saw the big dog"), ("big [MASK]", "hot tea", "big dog")),
    ):
        limit = len(model.tokenizer.encode([kept], [kept_pair])[0].ids)
        (cut,) = model.score([text], pair, target=target, max_length=limit, truncation="silent")
        (alone,) = model.score([kept], kept_pair, target=kept_target)
        assert cut["truncated"]
        assert cut["tokens"] == alone["tokens"]
