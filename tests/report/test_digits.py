"""A float32 is written with the fewest digits that read back as it, at every door."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.terminal import bertcli
from hypothesis import example, given
from hypothesis import strategies as st
from reference import task_cases as cases

import bertcli as library
from bertcli.report.digits import MOST, short, short_rows

SENTENCES = ("-m", "bert-mini-sentence", "hot tea", "cold milk")
PRINTED = (
    ("encode", *SENTENCES),
    ("encode", *SENTENCES, "--pooling", "none"),
    ("similarity", *SENTENCES),
    ("similarity", *SENTENCES, "--top-k", "1"),
    ("keywords", *SENTENCES),
    ("classify", "hot tea"),
    ("fill-mask", "hot [MASK]"),
    ("score", "hot tea"),
    ("neighbors", "tea"),
    ("explain", "hot tea"),
    ("lens", "hot [MASK]"),
    ("heads", "hot tea", "--ablate"),
    ("heads", "hot tea", "--layer", "3"),
    ("heads", "hot tea", "--rollout", "1"),
    ("patch", "good tea", "bad tea", "--direction", "both"),
    ("diff", "bert-mini-mlm", "--versus", "bert-mini-sentiment", "tea"),
    ("trace", "tea", "--stats"),
    ("search", "tea", "-i", "texts.txt"),
)


def digits_of(number: str) -> int:
    """How many significant digits a number has as it is written."""
    return len(re.sub(r"e.*|[-.]", "", number).lstrip("0").rstrip("0"))


@example([51141472.0, 16777213.0, 9999999.0])
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_rows_are_written_as_numpy_writes_a_float32(numbers: list[float]) -> None:
    rows = np.array(numbers, np.float32)
    written = short_rows(rows)
    np.testing.assert_array_equal(np.array(written, np.float32), rows)
    for number, single in zip(written, rows, strict=True):
        usual = single == 0 or abs(single) > 2e-38
        assert digits_of(repr(number)) <= (digits_of(str(single)) if usual else MOST)


def test_numbers_beyond_float32_keep_their_size() -> None:
    given = {
        "a": 0.768590414524078,
        "b": [1e300 / 3, 1e-60 / 3],
        "c": True,
        "d": None,
        "e": 3,
        "f": "0.768590414524078",
    }
    assert short(given) == {**given, "a": 0.7685904, "b": [3.33333333e299, 3.33333333e-61]}
    assert short([float("inf")]) == [float("inf")]
    assert str(short_rows(np.array([[np.nan, np.inf, 0.1]], np.float32))) == "[[nan, inf, 0.1]]"


@pytest.mark.parametrize("arguments", PRINTED, ids=" ".join)
def test_commands_print_at_most_nine_digits(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("texts.txt").write_text("hot tea\ncold milk\n")
    for form in ("json", "csv"):
        printed = bertcli(*arguments, "--format", form)
        assert printed.status == 0
        numbers = re.findall(r"-?\d+\.\d+(?:e[-+]?\d+)?", printed.out)
        assert numbers
        assert [number for number in numbers if digits_of(number) > MOST] == []


def test_tags_answers_and_ranks_have_at_most_nine_digits_and_rows_keep_theirs(made: Made, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text('{"text": "The king drinks hot tea in Paris.", "weight": 0.7685904145240781}\n')
    tagged = bertcli("tag", "-m", made(**cases.TAGGER), "-i", file, "--keep", "weight", "--format", "jsonl")
    (record,) = tagged.records
    assert record["weight"] == 0.7685904145240781, "what the row had is not ours to shorten"
    scores: list[Any] = [one["score"] for one in record["entities"]]
    reader = library.load(made(**cases.READER))
    scores += [one["score"] for one in reader.answer("Who drinks?", "The king drinks hot tea.")["answers"]]
    assert scores
    assert [score for score in scores if digits_of(repr(score)) > MOST] == []
    assert json.loads(json.dumps(scores)) == scores
