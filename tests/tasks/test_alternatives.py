"""classify's candidates and choices against transformers (tests/reference/tasks.json), and what they refuse."""

from typing import Any

import pytest
from conftest import Made
from helpers.pipelines import SAID
from reference import task_cases as cases

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model

TEXTS = tuple(filter(None, cases.PREMISES))  # the pipeline refuses an empty text


@pytest.fixture(scope="module")
def judge(made: Made) -> Model:
    return bertcli.load(made(**cases.INFERENCE))


@pytest.fixture(scope="module")
def chooser(made: Made) -> Model:
    return bertcli.load(made(**cases.CHOOSER))


def scores(record: dict[str, Any]) -> dict[str, float]:
    found = [(label["label"], label["score"]) for label in record["labels"]]
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    return dict(found)


@pytest.mark.parametrize("template", range(len(cases.TEMPLATES)))
@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize(("place", "checkpoint"), [("last", cases.INFERENCE), ("first", cases.ENTAILMENT_FIRST)])
def test_candidates_equal_the_pipeline(
    place: str, checkpoint: Any, multi_label: bool, template: int, made: Made
) -> None:
    model = bertcli.load(made(**checkpoint))
    expected = iter(SAID[f"candidates.{place}.{template}.{multi_label}"])
    for candidates in (cases.CANDIDATES, cases.CANDIDATES[:1]):
        records = model.classify(
            TEXTS, candidates=candidates, template=cases.TEMPLATES[template], multi_label=multi_label,
            truncation="silent",
        )  # fmt: skip
        for record in records:
            assert list(record) == ["index", "text", "text_pair", "truncated", "labels"]
            assert scores(record) == pytest.approx(next(expected), abs=1e-5)
        assert [record["truncated"] for record in records] == [False, True]


def test_candidates_of_an_empty_text_are_scored(judge: Model) -> None:
    (record,) = judge.classify([""], candidates="tea,money")
    assert sum(scores(record).values()) == pytest.approx(1)


def test_choices_equal_the_model(chooser: Model) -> None:
    records = chooser.classify(cases.PREMISES, choices=cases.CHOICES, truncation="silent")
    for record, expected in zip(records, SAID["choices"], strict=True):
        assert scores(record) == pytest.approx(dict(zip(cases.CHOICES, expected, strict=True)), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": ""}, "There is an empty candidate"),
        ({"candidates": []}, "There is no candidate to score"),
        ({"candidates": 3}, "candidates is 3, which is not a list"),
        ({"candidates": "tea, hot,tea"}, "The candidate 'tea' occurs more than once"),
        ({"candidates": ["tea", 3]}, "There is an empty candidate"),
        ({"candidates": "tea", "choices": ["tea"]}, "exclude each other"),
        ({"choices": ["tea"]}, "classify --choices needs a multiple-choice head"),
        ({"candidates": "tea", "max_length": 6}, "There is no room"),
    ],
)
def test_candidates_refuse(options: Any, message: str, judge: Model) -> None:
    with pytest.raises(BertcliError, match=message):
        judge.classify(["Hot tea."], **options)


def test_candidates_need_labels_with_entailment(made: Made) -> None:
    model = bertcli.load(made(head="classifier", id2label={0: "bad", 1: "good"}))
    with pytest.raises(BertcliError, match=r"need a model that tells entailment .* are 'bad', 'good'"):
        model.classify(["Hot tea."], candidates="tea")


def test_candidates_and_choices_are_for_single_texts(judge: Model, chooser: Model) -> None:
    with pytest.raises(BertcliError, match="are for single texts"):
        judge.classify(["tea"], ["hot"], candidates="tea")
    with pytest.raises(BertcliError, match="There is an empty choice"):
        chooser.classify(["tea"], choices=["a", " "])
