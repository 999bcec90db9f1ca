"""answer: the ranges of a context that answer a question."""

from dataclasses import dataclass
from typing import Literal

from bertcli.files.texts import Pairs
from bertcli.tasks.options import Windows, option

Scoring = Literal["probability", "logits"]


@dataclass(frozen=True, eq=False)
class AnswerOptions(Windows):
    """Which answers are found, and how question and context are read; contexts: one for each question, or for all."""

    contexts: Pairs = None
    top_k: int | None = option(None, "K", "How many answers per question. (default: 1)", least=1)
    max_answer_length: int | None = option(None, "N", "Tokens of an answer, at most. (default: 15)", least=1)
    no_answer: bool = option(False, "", "Let no answer, an empty text, compete with the others.")
    score: Scoring = option(
        "probability", "NAME",
        "probability (default), or logits: start + end minus those of no answer, comparable across windows.",
    )  # fmt: skip
