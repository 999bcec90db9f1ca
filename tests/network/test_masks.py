"""Masks that are filled together, and masks whose true words are given: the cases where a shortcut would show."""

from pathlib import Path

import pytest
from conftest import Made
from helpers.checkpoints import make
from helpers.json_files import read_json, write_json

import bertcli
from bertcli.model import Model
from bertcli.tasks.parts.joint import BEAM


@pytest.fixture
def mlm(made: Made) -> Model:
    return bertcli.load(made(head="pretraining", seed=7))


def test_as_many_fillings_as_are_wanted(mlm: Model) -> None:
    (record,) = mlm.fill_mask(["[MASK] drank [MASK]"], joint=True, top_k=2 * BEAM)
    assert [len({one["sequence"] for one in mask["predictions"]}) for mask in record["masks"]] == [2 * BEAM] * 2


def test_a_target_is_cut_as_its_text_is(tmp_path: Path) -> None:
    """From the left, where what is kept of a text is not where it was."""
    folder = make(tmp_path / "model", head="mlm", seed=7)
    settings = read_json(folder / "tokenizer_config.json")
    settings["truncation_side"] = "left"
    write_json(folder / "tokenizer_config.json", settings)
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
