"""answer: answers found in contexts against those that people gave, as the official scripts of SQuAD count them.

Rajpurkar et al. 2016 (1.1) and 2018 (2.0, with questions that have no answer).
"""

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import metrics
from bertcli.evaluate.data import Item, Labelled, LeftOut, Row, text
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Judged, Outcome, Task, listed, texts_of, usable
from bertcli.lean import lean_dataclass
from bertcli.model import Model

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(answer: str) -> str:
    """In lower case, without punctuation and articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", answer.lower().translate(PUNCTUATION)).split())


def exact_match(answer: str, truth: str) -> float:
    """1 if both are the same once normalized."""
    return float(normalized(answer) == normalized(truth))


def f1(answer: str, truth: str) -> float:
    """2 · common words / all words of both, once normalized; if one has none, 1 where both have none."""
    found, true = normalized(answer).split(), normalized(truth).split()
    if not found or not true:
        return float(found == true)
    common = (Counter(found) & Counter(true)).total()
    return 2 * common / (len(found) + len(true))


def best_of(answer: str, truths: Sequence[str]) -> tuple[float, float]:
    """Exact match and F1, each with the answer of people that suits it best; without any the empty one is right."""
    known = truths or [""]
    return max(exact_match(answer, truth) for truth in known), max(f1(answer, truth) for truth in known)


@lean_dataclass
class Answered(Outcome):
    """Exact match and F1 of each question, and whether it has an answer."""

    unit: ClassVar[str] = "questions"
    exact: Numbers
    f1: Numbers
    answerable: NDArray[np.bool_]
    truths: Any
    found: Any

    def figures(self, counts: Numbers) -> Figures:
        parts = {"": np.ones(len(self.f1), bool)}
        if not self.answerable.all():
            parts |= {":answer": self.answerable, ":no_answer": ~self.answerable}
        found = {}
        for suffix, part in parts.items():
            some = counts * part
            defined = some.any(axis=1)
            for name, values in (("exact_match", self.exact), ("f1", self.f1)):
                found[name + suffix] = np.where(defined, metrics.mean(values, some), np.nan)
        return found

    @property
    def losses(self) -> Numbers:
        return 1 - self.f1

    def said(self, item: int) -> dict[str, Any]:
        return {"expected": " / ".join(self.truths[item]) or "no answer", "found": self.found[item] or "no answer"}


def judge(model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """The best answer to each question; none is one of them where some questions have none."""
    items = labelled.items
    has_none = not all(item.truth for item in items)
    texts = texts_of([(item.texts[0], item.texts[1], item.place) for item in items])
    records = model.answer(texts, no_answer=has_none, **wanted.windowed)
    found = [record["answers"][0]["answer"] if record.get("answers") else "" for record in records]
    exact, partly = np.array([best_of(answer, item.truth) for answer, item in zip(found, items, strict=True)]).T
    truths = [item.truth for item in items]
    outcome = Answered(usable(records), exact, partly, np.array([*map(bool, truths)]), listed(truths), listed(found))
    return [Judged(model.name, outcome)]


def _item(row: Row) -> Item:
    question, context, answers = row.values
    answers = answers.get("text") if isinstance(answers, dict) else answers
    answers = [answers] if isinstance(answers, str) else answers
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise BertcliError(f"{row.place}: the answers {shown(row.values[2])} are no list of texts.")
    return Item(row.place, (text(row, question), text(row, context)), tuple(answers), row.group)


def read_squad(file: str, by: str | None, left_out: LeftOut) -> Iterator[Row]:
    """The questions of SQuAD's json; `by`: a field of an article, such as title. Errors: BertcliError."""
    try:
        with open(file, encoding="utf-8") as stream:
            articles = json.load(stream)["data"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise BertcliError(f"{file} is no data as SQuAD has it ({type(error).__name__}): give its json.") from None
    for number, article in enumerate(articles, 1):
        try:
            group = None if by is None else str(article[by])
            for paragraph in article["paragraphs"]:
                for entry in paragraph["qas"]:
                    answers = [] if entry.get("is_impossible") else [answer["text"] for answer in entry["answers"]]
                    place = f"{file}, question {shown(entry.get('id'))}"
                    yield Row(place, (entry["question"], paragraph["context"], answers), group)
        except (TypeError, KeyError, AttributeError) as error:
            left_out.add(f"{file}, article {number}: not as SQuAD has it ({error} is missing or of another kind).")


TASKS = {"answer": Task(_item, judge)}
