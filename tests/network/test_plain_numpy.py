"""BERT in plain NumPy, the page that a newcomer reads first, computes what bertcli computes."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from conftest import Made
from helpers.near import assert_near

import bertcli

EXAMPLE = Path(__file__).parents[1] / "examples" / "bert_in_numpy.py"


@pytest.mark.parametrize("segments", [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]])
def test_plain_numpy_gives_the_same_numbers(made: Made, segments: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    plain, folder, ids = import_module("bert_in_numpy"), made(head="pretraining", tied="absent"), [2, 17, 4, 9, 3]
    weights, config = plain.opened(folder)
    states = plain.encoder(ids, segments, weights, config)
    fast = bertcli.load(folder).outputs([ids], [segments])
    assert_near(states, fast["hidden"][0], 1e-5)
    expected = plain.softmax(fast["mlm"][0])
    assert_near(plain.masked_language_model(states, weights, config), expected, 1e-5)


def test_plain_numpy_fills_the_mask_of_the_bundled_model() -> None:
    folder, text = EXAMPLE.parents[2] / "sample_weights" / "bert-mini-mlm", "She poured a cup of hot [MASK]."
    command = [sys.executable, str(EXAMPLE), str(folder), text]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    best = bertcli.load("bert-mini-mlm").fill_mask([text])[0]["masks"][0]["predictions"]
    assert lines == [f"{one['score']:.4f}  {one['token_str']}" for one in best]
