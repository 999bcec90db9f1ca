"""Evaluator of `answer`: exact match and F1 against people's answers, as SQuAD's official scripts count them.

Rajpurkar et al. 2016 (1.1) and 2018 (2.0, with questions that have no answer).
"""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

from bertcli.files.labelled.fields import FieldSpec, read_text, read_texts
from bertcli.model import Model
from bertcli.wings.evaluate.evaluators.evaluator import F1, Evaluator, FigureSpec
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Outcome, means_of, usable

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(answer: str) -> str:
    """Normalize an answer as SQuAD does: lower case, no punctuation, no articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def exact_match(answer: str, truth: str) -> float:
    """1 if both are equal once normalized, else 0."""
    return float(normalized(answer) == normalized(truth))


def f1(answer: str, truth: str) -> float:
    """2 · common words / all words of both, once normalized; if one has none, 1 where both have none."""
    found, true = normalized(answer).split(), normalized(truth).split()
    if not found or not true:
        return float(found == true)
    common = (Counter(found) & Counter(true)).total()
    return 2 * common / (len(found) + len(true))


def best_of(answer: str, truths: Sequence[str]) -> tuple[float, float]:
    """The best exact match and the best F1 over people's answers; if there are none, "" is right."""
    known = truths or [""]
    return max(exact_match(answer, truth) for truth in known), max(f1(answer, truth) for truth in known)


def evaluate(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Answer each question. If some questions of the data have no answer, the model may give none, too."""
    truths = [row.label for row in data.rows]
    answerable = np.array([*map(bool, truths)])
    records = model.answer(data.texts, no_answer=not answerable.all(), **options.window_options)
    found = [record["answers"][0]["answer"] if record.get("answers") else "" for record in records]
    exact, common = np.array([*map(best_of, found, truths)]).T

    figures = {"exact_match": exact, "f1": common}
    if not answerable.all():
        for name, chosen in (("answer", answerable), ("no_answer", ~answerable)):
            figures[f"exact_match:{name}"] = np.where(chosen, exact, np.nan)
            figures[f"f1:{name}"] = np.where(chosen, common, np.nan)
    return [
        Outcome(
            name=model.name,
            **means_of(figures),
            usable=usable(records),
            badness=1 - common,
            expected=[" / ".join(truth) or "no answer" for truth in truths],
            found=[answer or "no answer" for answer in found],
        )
    ]


def named(data: Labelled) -> list[str]:
    """The figures of these questions: all have an answer, or some have none."""
    return [name for name in FIGURES if ":" not in name or not all(row.label for row in data.rows)]


FIGURES = {
    "exact_match": FigureSpec("share of the answers that equal one of people's, but for case, articles, punctuation"),
    "f1": F1,
    "exact_match:answer": FigureSpec("exact_match of the questions that have an answer"),
    "f1:answer": FigureSpec("F1 of the questions that have an answer"),
    "exact_match:no_answer": FigureSpec("share of the questions without an answer for which the model gives none"),
    "f1:no_answer": FigureSpec("share of the questions without an answer for which the model gives none"),
}
EVALUATORS = {
    "answer": Evaluator(
        unit="questions",
        fields=(
            FieldSpec(("question",), read_text),
            FieldSpec(("context",), read_text),
            FieldSpec(("answers", "answer"), read_texts),
        ),
        figures=FIGURES,
        evaluate=evaluate,
        named=named,
        place=3,
    ),
}
