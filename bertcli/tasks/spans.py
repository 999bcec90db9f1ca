"""From the start and end logits of a context's windows to answers.

    p_start = softmax(start logits), p_end = softmax(end logits), each over [CLS] and the context's tokens in the window
    score(i, j) = p_start[i] · p_end[j] for i ≤ j < i + longest

Equal to the question-answering pipeline of transformers 4.57, the last one, except that it fills up with spans of score
0 that are none (their end lies before their start) where a context has too few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from bertcli.tasks.activation import Numbers, softmax

Scoring = Literal["probability", "logits"]


class Place(NamedTuple):
    """Where a token of the context lies in it, in characters: its own range, and its word's if it is part of one."""

    start: int
    end: int
    word: tuple[int, int] | None


class ContextWindow(NamedTuple):
    """The logits of [CLS] and of the context's tokens [1 + token], and where these tokens lie."""

    start: Numbers
    end: Numbers
    places: Sequence[Place]


class Answer(NamedTuple):
    """A range of the context, or no answer: an empty text."""

    score: float
    start: int
    end: int
    text: str


class Wanted(NamedTuple):
    """How many answers of at most how many tokens, whether no answer is one, and how they are scored.

    logits: start + end - those of [CLS], which can be compared across windows; probabilities of different windows have
    different denominators.
    """

    top_k: int = 1
    longest: int = 15
    no_answer: bool = False
    scoring: Scoring = "probability"


def answers(windows: Sequence[ContextWindow], context: str, wanted: Wanted) -> list[Answer]:
    """The best answers in all windows, best first.

    A span is widened to whole words. Where several spans, perhaps of several windows, give the same text (ignoring
    case), their probabilities are added and the place is that of the first; of logits the best one counts.
    """
    found: dict[str, Answer] = {}
    for window in windows:
        for first, last, score in _best_spans(window, wanted):
            start, end = _widened(window.places[first], window.places[last])
            answer = Answer(score, start, end, context[start:end])
            known = found.setdefault(answer.text.lower(), answer)
            if known is answer:
                continue
            if wanted.scoring == "probability":
                found[answer.text.lower()] = known._replace(score=known.score + score)
            elif score > known.score:
                found[answer.text.lower()] = answer
    every = list(found.values())
    if wanted.no_answer:
        every.append(Answer(min(_scores_of_none(windows, wanted)), 0, 0, ""))
    return sorted(every, key=lambda answer: -answer.score)[: wanted.top_k]


def _best_spans(window: ContextWindow, wanted: Wanted) -> Iterator[tuple[int, int, float]]:
    """First and last token and the score of the window's best spans; more than are wanted, as some become the same."""
    if wanted.scoring == "probability":
        scores = np.multiply.outer(softmax(window.start)[1:], softmax(window.end)[1:])
    else:
        scores = np.add.outer(window.start[1:] - window.start[0], window.end[1:] - window.end[0])
    tokens = np.arange(len(window.places))
    length = tokens - tokens[:, None]  # less one
    firsts, lasts = np.nonzero((length >= 0) & (length < wanted.longest))
    values = scores[firsts, lasts]
    for index in np.argsort(-values, kind="stable")[: 2 * wanted.top_k + 10]:
        yield int(firsts[index]), int(lasts[index]), float(values[index])


def _widened(first: Place, last: Place) -> tuple[int, int]:
    if first.word is None or last.word is None:
        return first.start, last.end
    return first.word[0], last.word[1]


def _scores_of_none(windows: Sequence[ContextWindow], wanted: Wanted) -> Iterator[float]:
    """The score of the empty answer in each window."""
    for window in windows:
        if wanted.scoring == "logits":
            yield 0.0
        else:
            yield float(softmax(window.start)[0] * softmax(window.end)[0])
