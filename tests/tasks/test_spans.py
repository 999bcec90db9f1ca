"""How start and end logits become answers, against a search through every span."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.ranking import ROUNDING
from bertcli.tasks.answer import AnswerOptions
from bertcli.tasks.compute.answer import ContextToken, ContextWindow, Span, answers

CONTEXT = "a b c d e f g h"
LOGITS = st.floats(-5, 5)


def window(start: list[float], end: list[float], first: int = 0) -> ContextWindow:
    """A window whose tokens are the context's letters from `first` on; the first logits are those of [CLS]."""
    places = [ContextToken(2 * i, 2 * i + 1, (2 * i, 2 * i + 1)) for i in range(first, first + len(start) - 1)]
    return ContextWindow(np.array(start), np.array(end), places)


@given(st.lists(st.tuples(LOGITS, LOGITS), min_size=2, max_size=9), st.integers(1, 8), st.integers(1, 6))
def test_answers_are_the_best_of_all_spans(logits: list[tuple[float, float]], longest: int, top_k: int) -> None:
    start, end = (np.array(column) for column in zip(*logits, strict=True))
    found = answers([window(list(start), list(end))], CONTEXT, AnswerOptions(top_k=top_k, max_answer_length=longest))
    p, q = np.exp(start) / np.exp(start).sum(), np.exp(end) / np.exp(end).sum()
    every = sorted((p[i] * q[j] for i in range(1, len(p)) for j in range(i, min(len(p), i + longest))), reverse=True)
    scores = [answer.score for answer in found]  # scores that differ by rounding alone have no order
    assert scores == pytest.approx(every[:top_k], rel=1e-6, abs=ROUNDING * every[0])
    for answer in found:
        first, last = answer.start // 2 + 1, answer.end // 2 + 1
        assert answer.score == pytest.approx(p[first] * q[last])
        assert answer.answer == CONTEXT[answer.start : answer.end]


def test_answers_of_the_same_text_are_added_ignoring_case() -> None:
    places = [ContextToken(0, 2, (0, 2)), ContextToken(3, 5, (3, 5))]
    one = ContextWindow(np.log([0.2, 0.5, 0.3]), np.log([0.2, 0.5, 0.3]), places)
    (best, *_) = answers([one], "No nO", AnswerOptions(top_k=3, max_answer_length=1))
    assert best.score == pytest.approx(0.5 * 0.5 + 0.3 * 0.3)
    assert (best.start, best.end, best.answer) == (0, 2, "No")
    (best, *_) = answers([one, one], "No nO", AnswerOptions(top_k=1, max_answer_length=1, score="logits"))
    assert best.score == pytest.approx(2 * np.log(0.5 / 0.2))  # of logits the better one counts


def test_answers_are_widened_to_whole_words() -> None:
    places = [ContextToken(0, 2, (0, 6)), ContextToken(2, 6, (0, 6)), ContextToken(7, 9, None)]
    one = ContextWindow(np.array([0.0, 0.0, 9.0, 0.0]), np.array([0.0, 0.0, 9.0, 0.0]), places)
    assert answers([one], "unable to", AnswerOptions())[0].answer == "unable"
    other = ContextWindow(np.array([0.0, 0.0, 9.0, 0.0]), np.array([0.0, 0.0, 0.0, 9.0]), places)
    assert answers([other], "unable to", AnswerOptions())[0].answer == "able to"  # one end is no word


def test_no_answer_competes_with_its_smallest_score() -> None:
    sure, unsure = window([9.0, 0.0], [9.0, 0.0]), window([1.0, 0.0], [1.0, 0.0], first=1)
    p = np.exp(1.0) / (np.exp(1.0) + 1)
    found = answers([sure, unsure], CONTEXT, AnswerOptions(top_k=3, no_answer=True))
    assert found[0]._replace(score=0.0) == Span(0.0, 0, 0, "")
    assert found[0].score == pytest.approx(p * p)
    assert answers([sure, unsure], CONTEXT, AnswerOptions(no_answer=False))[0].answer == "b"
    by_logits = answers([sure, unsure], CONTEXT, AnswerOptions(top_k=3, no_answer=True, score="logits"))
    assert [(answer.answer, answer.score) for answer in by_logits] == [("", 0.0), ("b", -2.0), ("a", -18.0)]
