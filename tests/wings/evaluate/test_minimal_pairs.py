"""`bertcli evaluate --task minimal-pairs`, and what `score --pairs` answers."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Made
from helpers.json_files import write_json_lines
from helpers.recorded import recorded
from helpers.terminal import bertcli
from wings.evaluate.test_tasks import judged

import bertcli as library

RECORDED = recorded("pairs.json")
PAIRS = """better,worse,kind
The cat sits on the mat.,The cat sit on the mat.,agreement
He was reading.,He were reading.,agreement
It rained.,It rained.,same
"""
TASK = ("--task", "minimal-pairs")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.csv"
    file.write_text(PAIRS)
    return file


def test_pairs_are_summed_up_for_all_and_by_group(pairs: Path) -> None:
    record = judged(pairs, *TASK, "--by", "kind")
    assert (record["task"], record["count"]) == ("minimal-pairs", 3)
    (model,) = record["models"]
    texts = ["The cat sits on the mat.", "He was reading.", "The cat sit on the mat.", "He were reading."]
    sums = [sum(token["log_prob"] for token in scored["tokens"]) for scored in library.load().score(texts)]
    gains = [sums[0] - sums[2], sums[1] - sums[3], 0]
    assert [*model["metrics"]] == ["preferred", "mean_difference"]
    assert model["metrics"]["preferred"]["value"] == pytest.approx(2.5 / 3), "equal ones half"
    low, high = model["metrics"]["preferred"]["low"], model["metrics"]["preferred"]["high"]
    assert 0.2 < low < 0.83 < high < 1
    assert model["by"]["agreement"]["preferred"]["value"] == 1
    assert model["by"]["agreement"]["preferred"]["low"] == pytest.approx(0.3424, abs=1e-4), "Wilson's, of 2 of 2"
    assert model["by"]["same"]["preferred"]["low"] is None
    assert "fewer than two pairs" in model["by"]["same"]["preferred"]["reason"]
    assert model["worst"] == [], "no pair in which the second is likelier"
    assert model["metrics"]["mean_difference"]["value"] == pytest.approx(np.mean(gains), abs=1e-5)
    assert model["by"]["same"]["mean_difference"]["value"] == 0


@pytest.mark.parametrize("metric", ["pll", "within-word", "shared"])
def test_scores_are_those_of_minicons_and_crows_pairs(made: Made, tmp_path: Path, metric: str) -> None:
    rows = [{"better": a, "worse": b} for a, b in RECORDED["pairs"]]
    file = tmp_path / "pairs.jsonl"
    write_json_lines(file, rows)
    record = judged(file, *TASK, "--metric", metric, "-m", made(head="mlm"))
    figures = record["models"][0]["metrics"]
    gains = np.array([first - second for first, second in RECORDED[metric]])
    assert figures["mean_difference"]["value"] == pytest.approx(gains.mean(), abs=2e-5)
    preferred = np.where(np.abs(gains) < 1e-6, 0.5, gains > 0)
    assert figures["preferred"]["value"] == pytest.approx(preferred.mean())


def test_the_table_and_the_page_say_what_the_figures_do_not_show(pairs: Path, tmp_path: Path) -> None:
    page = tmp_path / "pairs.html"
    assert bertcli("evaluate", pairs, *TASK, "--by", "kind", "-o", page).status == 0
    caution = "not what a model built on this one will do"
    assert caution in bertcli("evaluate", pairs, *TASK).out
    assert caution in page.read_text()


def test_other_columns_are_named_and_two_models_compared(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("a,b\nThe cat sits.,The cat sit.\nHe was.,He were.\n")
    record = judged(file, *TASK, "--column", "a", "--pair-column", "b", "-m", "bert-mini-mlm", "-m", "bert-mini-mlm")
    assert record["count"] == 2
    assert [one["metric"] for one in record["differences"]] == ["preferred", "mean_difference"]


def test_messages_name_the_fields_of_pairs_and_no_reason_for_a_task_that_was_given(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("good,bad\nThe cat sits.,The cat sit.\n")
    error = bertcli("evaluate", file, "--task", "minimal-pairs").error
    assert "does not have the fields of minimal-pairs (better, worse); its fields are 'good', 'bad'" in error
    file.write_text("better,worse\nThe cat sits.,The cat sit.\n")
    assert bertcli("evaluate", file).error.endswith("which fit only one that is chosen: give --task minimal-pairs.")
    file.write_text("better,worse,kind\nThe cat sits.,The cat sit.,verb\nHe was here.,He were here.,noun\n")
    left = bertcli("evaluate", file, "--task", "minimal-pairs", "--by", "kind")
    assert "because its fields are" not in left.err
    assert "No interval for preferred, mean_difference: of fewer than two pairs nothing can be told" in left.out
    assert "about others (noun)." in " ".join(left.out.split())


def test_a_pair_that_is_too_long_is_named_with_the_option_that_leaves_it_out(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text(f"better,worse\nIt rained.,It rain.\n{'tea ' * 300},coffee\n")
    error = bertcli("evaluate", file, *TASK).error
    assert f"A text of {file}, line 3 ('tea tea" in error
    assert error.endswith("a comparison of cut texts means nothing: shorten it. (--keep-going leaves such rows out.)")
    (model,) = judged(file, *TASK, "--keep-going")["models"]
    assert model["metrics"]["preferred"]["n"] == 1
