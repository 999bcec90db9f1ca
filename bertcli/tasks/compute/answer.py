"""answer: the ranges of a context that answer a question.

    p_start = softmax(start logits), p_end = softmax(end logits), each over [CLS] and the context's tokens in a window
    score(i, j) = p_start[i] · p_end[j] for i ≤ j < i + longest

Equal to the last question-answering pipeline of transformers (4.57), but for one thing: where a context has fewer
answers than were asked for, the pipeline fills up with spans of score 0 whose end lies before their start.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError
from bertcli.files.texts import Failure, Item, Text
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.tasks.answer import SPEC, AnswerOptions, Scoring
from bertcli.tasks.parts.scores import softmax
from bertcli.tasks.running.batches import Numbers, check_needs, logits_of_each
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.tokens import Tokens
from bertcli.tokens.text_words import word_numbers
from bertcli.tokens.windows import tokens_in_windows, windows_of

LONGEST_ANSWER = 15  # tokens
LONGEST_WINDOW = 384  # tokens; with this and the overlap transformers' pipeline reads a context
MOST_OVERLAP = 128
# Spans that take about as long as a token of a small model.
SPANS_OF_A_TOKEN = 4
CONTEXT = 1  # the side of the context, whose question is side 0


def plan(model: LoadedModel, options: AnswerOptions) -> RecordTask:
    """Make the task. Errors: BertcliError for a model without the head."""
    check_needs(model, SPEC.needs(options))
    return _Answer(model, options.read_options, replace(options, contexts=None))  # which may not pickle


@dataclass(frozen=True, eq=False, repr=False)
class _Answer(RecordTask):
    options: AnswerOptions

    @cached_property
    def limit(self) -> int:
        """The number of tokens of a window."""
        model_limit = super().limit
        return min(model_limit, LONGEST_WINDOW) if self.read_options.max_length is None else model_limit

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.model.tokenizer.encode([text.text for text in texts], [text.pair for text in texts])

    def check(self, item: Item) -> None:
        if item.text.pair is None:
            raise BertcliError(f"{item.title} has no context to find an answer in: give one (--context).")
        sides = item.tokens.sides
        for side, what in enumerate(("question", "context")):
            if side not in sides:
                raise BertcliError(f"The {what} of {item.title} is empty, so there is nothing to answer.")
        room, stride = self._room(item.tokens), self.options.stride or 0
        if room <= stride:
            advice = f"give a stride below {room}" if room > 0 else "shorten it"
            raise BertcliError(
                f"The question of {item.title} has {sides.count(0)} tokens, which leaves {max(0, room)} of a window's "
                f"{self.limit} for the context: {advice}, or raise max_length."
            )

    def _room(self, tokens: Tokens) -> int:
        """Count the tokens of the context that fit into a window."""
        return self.limit - (len(tokens.ids) - tokens.sides.count(CONTEXT))

    def _overlap(self, tokens: Tokens) -> int:
        """Count the tokens of the context that a window shares with the next one."""
        overlap = min(self.limit // 2, MOST_OVERLAP) if self.options.stride is None else self.options.stride
        room = self._room(tokens)
        return overlap if overlap < room else room // 2

    def cost(self, item: Item) -> int:
        tokens = tokens_in_windows(item.tokens, self.limit, self._overlap(item.tokens))
        windows = -(-tokens // self.limit)
        spans = min(_spans_read(self.options), self.limit * self._longest)
        return tokens + windows * spans // SPANS_OF_A_TOKEN

    def predictions(self, item: Item) -> int:
        """Count the answers; a long one counts as several."""
        return (self.options.top_k or 1) * -(-self._longest // LONGEST_ANSWER)

    @property
    def _longest(self) -> int:
        """The most tokens that an answer can have."""
        return min(self.options.max_answer_length or LONGEST_ANSWER, self.limit)

    def records(self, items: list[Item]) -> Iterator[Record]:
        of_items = [windows_of(item.tokens, self.limit, self._overlap(item.tokens)) for item in items]
        all_windows = [window for windows in of_items for window in windows]
        logits = iter(logits_of_each(self.model, "qa", all_windows, self.read_options.batch_tokens))
        for item, windows in zip(items, of_items, strict=True):
            context = item.text.pair or ""
            best = answers([_context(context, window, next(logits)) for window in windows], context, self.options)
            records = [answer._asdict() for answer in best]
            yield {"index": item.index, "question": item.text.text, "context": context, "answers": records}

    def failed(self, failure: Failure) -> Record:
        """{index, question, context, error}; question and context are None if the row could not be read."""
        text = failure.text
        question = None if text.error else text.text
        return {"index": failure.index, "question": question, "context": text.pair, "error": failure.error}


def _context(context: str, window: Tokens, rows: Numbers) -> "ContextWindow":
    """Collect the context's tokens in a window; the range of a word covers its tokens in the window only."""
    offsets, numbers = window.offsets, word_numbers(context, window, CONTEXT)
    positions = [position for position, side in enumerate(window.sides) if side == CONTEXT]
    words: dict[int | None, tuple[int, int]] = {}
    for position in positions:
        number, (start, end) = numbers[position], offsets[position]
        if number is not None:
            words[number] = (words[number][0] if number in words else start, end)
    tokens = [ContextToken(*offsets[position], words.get(numbers[position])) for position in positions]
    start, end = rows[[0, *positions]].T  # the first token, [CLS], stands for no answer
    return ContextWindow(start, end, tokens)


# --------------------------------------------------------------------------------------------------- spans


class ContextToken(NamedTuple):
    """A token's range of characters in the context, and its word's, if it is part of one."""

    start: int
    end: int
    word: tuple[int, int] | None


class ContextWindow(NamedTuple):
    """A window: the logits of [CLS] and of the context's tokens [1 + token], and the tokens' ranges."""

    start: Numbers
    end: Numbers
    places: Sequence[ContextToken]


class Span(NamedTuple):
    """A range of the context, or no answer: an empty text."""

    score: float
    start: int
    end: int
    answer: str


def answers(windows: Sequence[ContextWindow], context: str, options: AnswerOptions) -> list[Span]:
    """Choose the best answers in all windows, best first.

    A span is widened to whole words. If several spans, perhaps of several windows, have the same text (ignoring case),
    their probabilities are added, and the range is the first one's; of logits the best one counts.
    """
    by_text: dict[str, Span] = {}
    least = float("inf")
    for window in windows:
        check_wanted()
        of_window = _scores(window, options.score)
        least = min(least, float(of_window[0, 0]))
        for first, last in _best_spans(of_window[1:, 1:], options):
            start, end = _widened(window.places[first], window.places[last])
            candidate = Span(float(of_window[1 + first, 1 + last]), start, end, context[start:end])
            earlier = by_text.setdefault(candidate.answer.lower(), candidate)
            if earlier is not candidate and options.score != "logits":
                by_text[candidate.answer.lower()] = earlier._replace(score=earlier.score + candidate.score)
            elif candidate.score > earlier.score:
                by_text[candidate.answer.lower()] = candidate
    answers = list(by_text.values())
    if options.no_answer:
        # The span at [CLS] of the window in which it is least likely: no window may have the answer.
        answers.append(Span(least, 0, 0, ""))
    order = best_first(np.array([answer.score for answer in answers]), options.top_k or 1)
    return [answers[number] for number in order]


def _scores(window: ContextWindow, scoring: Scoring) -> Numbers:
    """Score each span from a first token [1 + token] to a last [1 + token]; the span at [CLS] means no answer.

    Probabilities of different windows have different denominators; logits less those of [CLS] can be compared.
    """
    if scoring == "logits":
        start, end = window.start - window.start[0], window.end - window.end[0]
        return np.asarray(np.add.outer(start, end))
    return np.multiply.outer(softmax(window.start), softmax(window.end))


def _best_spans(scores: Numbers, options: AnswerOptions) -> list[tuple[int, int]]:
    """List first and last token of the best spans."""
    tokens = np.arange(len(scores))
    # From the first token of a span (down) to its last (across): its length less 1.
    distances = tokens - tokens[:, None]
    longest = options.max_answer_length or LONGEST_ANSWER
    spans = np.argwhere((distances >= 0) & (distances < longest))
    best = best_first(scores[tuple(spans.T)], _spans_read(options))
    return [(first, last) for first, last in spans[best].tolist()]


def _spans_read(options: AnswerOptions) -> int:
    """The number of spans read in a window: more than requested, since some have equal texts."""
    return 2 * (options.top_k or 1) + 10


def _widened(first: ContextToken, last: ContextToken) -> tuple[int, int]:
    if first.word is None or last.word is None:
        return first.start, last.end
    return first.word[0], last.word[1]
