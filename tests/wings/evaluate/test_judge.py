"""What is made of models' answers, with models that answer as the test wants."""

from typing import Any

import numpy as np
import pytest

from bertcli.files.labelled.rows import LeftOut
from bertcli.files.texts import Text
from bertcli.wings.evaluate.evaluation import Evaluation, summarize
from bertcli.wings.evaluate.evaluators.answers import best_of
from bertcli.wings.evaluate.evaluators.evaluator import evaluator
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate


class Answering:
    """A model that gives these records, whatever it is asked."""

    def __init__(self, name: str, records: list[dict[str, Any]]) -> None:
        self.name, self.asked = name, {}  # type: ignore[var-annotated]
        self._records = records

    def __getattr__(self, task: str) -> Any:
        def answer(texts: Any, **options: Any) -> list[dict[str, Any]]:
            self.asked = options
            assert len([*texts]) == len(self._records)
            return self._records

        return answer


def filled(*words: str) -> dict[str, Any]:
    return {"masks": [{"predictions": [{"token_str": word} for word in words]}]}


def evaluate(data: Labelled, models: list[Any], options: Evaluate) -> Evaluation:
    return summarize(
        data, [outcome for model in models for outcome in evaluator(data.task).evaluate(model, data, options)]
    )


@pytest.fixture(autouse=True)
def _losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The models here have no network, of which a loss could come."""
    monkeypatch.setattr(
        "bertcli.wings.evaluate.evaluators.masked.true_word_losses",
        lambda model, data, options, chosen: np.ones(len(data.rows)),
    )


def labelled(task: str, *rows: Text) -> Labelled:
    return Labelled("data.jsonl", task, "", list(rows), LeftOut(keep_going=True))


BLANKS = [Text(f"{i} [MASK]", None, f"line {i}", label=["Tea", "coffee"]) for i in range(3)]


def test_words_are_compared_without_case_and_spaces() -> None:
    model: Any = Answering("m", [filled(" TEA"), filled("milk", "Coffee "), filled("milk")])
    found = evaluate(labelled("fill-mask", *BLANKS), [model], Evaluate(k=[1, 2]))
    (model,) = found.record["models"]
    values = {name: figure["value"] for name, figure in model["metrics"].items()}
    expected = {"accuracy@1": 1 / 3, "accuracy@2": 2 / 3, "mrr": 1 / 2, "loss": 1, "loss_sum": 3, "perplexity": np.e}
    assert values == pytest.approx(expected)
    assert [one["place"] for one in model["worst"]] == ["line 2", "line 1"]


def test_what_one_model_could_not_use_is_left_out_for_both() -> None:
    bad = {"error": "too long"}
    models: Any = [
        Answering("a", [bad, filled("tea"), filled("tea")]),
        Answering("b", [filled("tea"), bad, filled("milk")]),
    ]
    found = evaluate(labelled("fill-mask", *BLANKS), models, Evaluate())
    assert (found.record["count"], found.record["left_out"]) == (1, 2)
    assert [model["metrics"]["accuracy@1"]["value"] for model in found.record["models"]] == [1, 0]


def test_no_answer_competes_only_where_some_question_has_none() -> None:
    answered = [{"answers": [{"answer": "The king"}]}, {"answers": [{"answer": ""}]}]
    for truths, has_none in (((("the king",), ()), True), ((("the king",), ("tea",)), False)):
        items = [Text("Who?", "The king.", f"question {i}", label=truth) for i, truth in enumerate(truths)]
        model: Any = Answering("m", answered)
        found = evaluate(labelled("answer", *items), [model], Evaluate())
        assert model.asked["no_answer"] is has_none
        assert found.record["models"][0]["metrics"]["exact_match"]["value"] == (1 if has_none else 0.5)


def test_the_answer_that_suits_best_counts() -> None:
    assert best_of("hot tea", ["tea", "a hot tea"]) == (1, 1)
    assert best_of("hot tea", ["milk", "tea"]) == pytest.approx((0, 2 / 3))
    assert best_of("", []) == (1, 1)
    assert best_of("tea", []) == (0, 0)
