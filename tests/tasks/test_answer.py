"""answer against transformers' question-answering pipeline (tests/reference/tasks.json), and what it refuses."""

from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.pipelines import SAID, same
from hypothesis import given
from hypothesis import strategies as st
from reference import task_cases as cases

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.tasks.answer import AnswerOptions
from bertcli.tasks.compute.answer import ContextToken, ContextWindow, answers


@pytest.fixture(scope="module")
def reader(made: Made) -> Model:
    return bertcli.load(made(**cases.READER))


@pytest.mark.parametrize("setting", cases.ANSWER_SETTINGS)
def test_answer_equals_the_pipeline(setting: tuple[int, int, bool], reader: Model) -> None:
    top_k, longest, no_answer = setting
    questions, contexts = zip(*cases.QUESTIONS, strict=True)
    records = reader.answer(questions, contexts, top_k=top_k, max_answer_length=longest, no_answer=no_answer)
    first = cases.ANSWER_SETTINGS.index(setting) * len(cases.QUESTIONS)
    for record, expected in zip(records, SAID["answer"][first:][: len(records)], strict=True):
        assert list(record) == ["index", "question", "context", "answers"]
        same(record["answers"], expected)
        for one in record["answers"]:
            assert record["context"][one["start"] : one["end"]] == one["answer"]


def test_answer_reads_windows_of_384_tokens_that_share_128(made: Made) -> None:
    model = bertcli.load(made(head="qa", seed=306, sizes={"max_position_embeddings": 512}))
    context = cases.LONG_TEXT * 8
    assert len(model.tokenizer.encode([context])[0].ids) > 480
    assert model.answer(["Who?"], context, top_k=5) == model.answer(
        ["Who?"], context, top_k=5, max_length=384, stride=128
    )
    assert model.answer(["Who?"], context) != model.answer(["Who?"], context, max_length=512)


@given(question=st.text(max_size=20), context=st.text(max_size=80), scoring=st.sampled_from(["probability", "logits"]))
def test_answers_are_ranges_of_any_context(question: str, context: str, scoring: Any, reader: Model) -> None:
    (record,) = reader.answer([question], [context], top_k=9, no_answer=True, score=scoring, keep_going=True)
    if "error" in record:
        assert "is empty" in record["error"]
        return
    scores = [one["score"] for one in record["answers"]]
    assert scores == sorted(scores, reverse=True)
    texts = [one["answer"] for one in record["answers"]]
    assert texts == [context[one["start"] : one["end"]] for one in record["answers"]]
    assert len({text.lower() for text in texts if text}) == len([text for text in texts if text])
    assert scoring == "logits" or sum(scores) <= 1 + 1e-9


def test_answer_by_logits_compares_windows(reader: Model) -> None:
    question, context = cases.QUESTIONS[3]
    (record,) = reader.answer([question], context, score="logits", no_answer=True, top_k=500)
    scores = [one["score"] for one in record["answers"]]
    assert scores == sorted(scores, reverse=True)
    (empty,) = (one for one in record["answers"] if not one["answer"])
    assert empty == {"score": 0.0, "start": 0, "end": 0, "answer": ""}


def test_no_answer_of_a_context_is_as_likely_as_in_the_window_where_it_is_least(reader: Model) -> None:
    windows = ["the queen drank hot tea with", "a cat and the rain the"]
    question = "river"
    around = len(reader.tokenizer.encode([question], [""])[0].ids)

    def none_in(context: str) -> float:
        (record,) = reader.answer(
            [question], context, no_answer=True, top_k=500, max_length=around + 6, stride=0, max_answer_length=6
        )
        (empty,) = (one for one in record["answers"] if not one["answer"])
        return float(empty["score"])

    alone = [*map(none_in, windows)]
    assert max(alone) > 1.05 * min(alone)
    assert none_in(" ".join(windows)) == pytest.approx(min(alone), rel=1e-5)
    assert none_in(" ".join(reversed(windows))) == pytest.approx(min(alone), rel=1e-5)


def test_answer_finds_room_for_the_context_of_a_long_question(reader: Model) -> None:
    question = "river " * 36  # of 48 tokens three are special: nine are left, fewer than windows share otherwise
    (record,) = reader.answer([question], "The queen sold it to the king of France and went home. " * 3)
    assert record["answers"][0]["answer"]


@pytest.mark.parametrize(
    ("question", "context", "options", "message"),
    [
        ("river " * 45, "The queen.", {}, "The question of text 0 (.*) has 45 tokens, which leaves 0 of a window's 48"),
        ("Who?", "", {}, "The context of text 0 .* is empty"),
        ("", "The queen.", {}, "The question of text 0 .* is empty"),
        ("Who?", None, {}, r"has no context to find an answer in: give one \(--context\)"),
        ("Who?", "The queen.", {"score": "sum"}, "There is no score 'sum'; choose from probability, logits"),
        ("Who?", "The queen.", {"top_k": 0}, "top_k is 0; it must be at least 1"),
        ("Who?", "The queen.", {"stride": -1}, "must be at least 0"),
        ("Who?", "The queen.", {"stride": 44}, "give a stride below 4[0-9]"),
    ],
)
def test_answer_refuses(question: str, context: str | None, options: Any, message: str, reader: Model) -> None:
    with pytest.raises(BertcliError, match=message):
        reader.answer([question], [context], **options)


def test_answers_of_the_same_text_are_added_ignoring_case() -> None:
    places = [ContextToken(0, 2, (0, 2)), ContextToken(3, 5, (3, 5))]
    one = ContextWindow(np.log([0.2, 0.5, 0.3]), np.log([0.2, 0.5, 0.3]), places)
    (best, *_) = answers([one], "No nO", AnswerOptions(top_k=3, max_answer_length=1))
    assert best.score == pytest.approx(0.5 * 0.5 + 0.3 * 0.3)
    assert (best.start, best.end, best.answer) == (0, 2, "No")
    (best, *_) = answers([one, one], "No nO", AnswerOptions(top_k=1, max_answer_length=1, score="logits"))
    assert best.score == pytest.approx(2 * np.log(0.5 / 0.2))  # of logits the better one counts
