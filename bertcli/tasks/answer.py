"""answer: the ranges of a context that answer a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.texts import Failure, Text, Texts, from_values
from bertcli.tasks.checks import check_choice, check_count, check_whole, head_of
from bertcli.tasks.run import results
from bertcli.tasks.spans import ContextWindow, Place, Scoring, Wanted, answers
from bertcli.tasks.task import Item, Options, Reading, Record, Records, RecordStream, Task, Window
from bertcli.tokens import Tokens

if TYPE_CHECKING:
    from bertcli.model import Model

SPAN = 5  # micro-batches in a window of the run, as in classify
LONGEST_ANSWER = 15  # tokens
LONGEST_WINDOW = 384  # tokens; with this and the overlap transformers' pipeline reads a context
MOST_OVERLAP = 128
CONTEXT = 1  # the side of the context, whose question is side 0


class AnswerOptions(Options, total=False):
    """The keywords of `answer`."""

    top_k: int | None
    max_answer_length: int | None
    no_answer: bool
    score: Scoring
    stride: int | None


def answer(
    model: Model,
    questions: Iterable[str] | Texts,
    contexts: Iterable[str | None] | str | None = None,
    *,
    top_k: int | None = None,
    max_answer_length: int | None = None,
    no_answer: bool = False,
    score: Scoring = "probability",
    stride: int | None = None,
    **options: Unpack[Options],
) -> RecordStream:
    """Records {index, question, context, answers: [{score, start, end, answer}, …]}, best answer first.

    contexts: one for each question, or a single one for all. start and end count characters of the context. The
    `top_k` (None: 1) best answers have at most `max_answer_length` tokens (None: 15); with `no_answer` the empty answer
    competes. score: see `bertcli.tasks.spans.Wanted`.

    Question and context are read in windows of `max_length` tokens (None: the model's limit, at most 384), of which
    `stride` tokens of the context (None: half, at most 128) overlap; so nothing is cut.
    The other options are those of `Reading`.
    """
    head_of(model, "qa", "answer")
    check_count("top_k", top_k)
    check_count("max_answer_length", max_answer_length)
    check_choice("score", score, Scoring)
    check_whole("stride", stride)
    if stride is not None and stride < 0:
        raise BertcliError(f"stride (--stride) is {stride}; it must be at least 0.")
    reading = Reading(**options, truncation="silent")
    wanted = Wanted(top_k or 1, max_answer_length or LONGEST_ANSWER, no_answer, score or "probability")
    task = _Answer(model, reading, SPAN, wanted, stride)
    return RecordStream(results(task, from_values(questions, contexts)))


@dataclass(frozen=True, eq=False)
class _Answer(Task[Records]):
    wanted: Wanted
    stride: int | None

    @cached_property
    def limit(self) -> int:
        """The number of tokens of a window."""
        own = super().limit
        return min(own, LONGEST_WINDOW) if self.reading.max_length is None else own

    def tokens(self, texts: Sequence[Text]) -> list[Tokens]:
        return self.model.tokenizer.encode([text.text for text in texts], [text.pair for text in texts])

    def check(self, item: Item) -> None:
        if item.text.pair is None:
            raise BertcliError(f"{item.place} has no context to find an answer in: give one (--context).")
        sides = item.tokens.sides
        for side, what in enumerate(("question", "context")):
            if side not in sides:
                raise BertcliError(f"The {what} of {item.place} is empty, so there is nothing to answer.")
        room = self._room(item.tokens)
        if room < 1 or (self.stride is not None and self.stride >= room):
            raise BertcliError(
                f"The question of {item.place} has {sides.count(0)} tokens, which leaves {max(0, room)} of a window's "
                f"{self.limit} for the context: shorten it, or change max_length or stride (--max-length, --stride)."
            )

    def _room(self, tokens: Tokens) -> int:
        """How many tokens of the context a window holds."""
        return self.limit - (len(tokens.ids) - tokens.sides.count(CONTEXT))

    def _windows(self, item: Item) -> list[Tokens]:
        overlap = min(self.limit // 2, MOST_OVERLAP) if self.stride is None else self.stride
        room = self._room(item.tokens)
        return item.tokens.windows(self.limit, overlap if overlap < room else room // 2)

    def compute(self, window: Window) -> Records:
        parts = [self._windows(item) for item in window.items]
        found = iter(self.token_logits("qa", [part for some in parts for part in some]))
        records = [
            self._record(item, [_context(part, next(found)) for part in some])
            for item, some in zip(window.items, parts, strict=True)
        ]
        records += map(_failed, window.failures)
        return Records(sorted(records, key=lambda record: int(record["index"])), window.progress)

    def _record(self, item: Item, windows: list[ContextWindow]) -> Record:
        context = item.text.pair or ""
        return {
            "index": item.index,
            "question": item.text.text,
            "context": context,
            "answers": [
                {"score": score, "start": start, "end": end, "answer": text}
                for score, start, end, text in answers(windows, context, self.wanted)
            ],
        }


def _failed(failure: Failure) -> Record:
    """{index, question, context, error}; question and context are None if the row could not be read."""
    text = failure.text
    question = None if text.error else text.text
    return {"index": failure.index, "question": question, "context": text.pair, "error": failure.error}


def _context(part: Tokens, rows: NDArray[np.float64]) -> ContextWindow:
    """The context's tokens of a window; a word's range is that of its tokens in the window."""
    offsets, numbers = part.offsets, part.words
    places = [place for place, side in enumerate(part.sides) if side == CONTEXT]
    words: dict[int | None, tuple[int, int]] = {}
    for place in places:
        number, (start, end) = numbers[place], offsets[place]
        if number is not None:
            words[number] = (words[number][0] if number in words else start, end)
    found = [Place(*offsets[place], words.get(numbers[place])) for place in places]
    start, end = rows[[0, *places]].T  # the first token, [CLS], stands for no answer
    return ContextWindow(start, end, found)
