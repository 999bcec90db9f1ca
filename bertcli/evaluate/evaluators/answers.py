"""answer: answers found in contexts against those that people gave, as the official scripts of SQuAD count them.

Rajpurkar et al. 2016 (1.1) and 2018 (2.0, with questions that have no answer).
"""

import json
import re
import string
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate.load.tables import Labelled, LeftOut, read_row
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Outcome, means_of, usable
from bertcli.files.texts import Text
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


def judge(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """The best answer to each question; that there is none is one of them where some questions have none."""
    truths = [row.label for row in data.rows]
    answerable = np.array([*map(bool, truths)])
    records = model.answer(data.texts, no_answer=not answerable.all(), **wanted.windowed)
    found = [record["answers"][0]["answer"] if record.get("answers") else "" for record in records]
    exact, common = np.array([*map(best_of, found, truths)]).T
    figures = {"exact_match": exact, "f1": common}
    if not answerable.all():
        for part, of_part in (("answer", answerable), ("no_answer", ~answerable)):
            figures |= {
                f"exact_match:{part}": np.where(of_part, exact, np.nan),
                f"f1:{part}": np.where(of_part, common, np.nan),
            }
    expected = [" / ".join(truth) or "no answer" for truth in truths]
    said = [answer or "no answer" for answer in found]
    return [Outcome(model.name, *means_of(figures), usable(records), 1 - common, expected, said)]


def read_squad(file: str, by: str | None, left_out: LeftOut) -> Iterator[Text]:
    """The questions of SQuAD's json; `by`: a field of an article, such as title. Errors: BertcliError."""
    try:
        with open(file, encoding="utf-8") as stream:
            articles = json.load(stream)["data"]
        if not isinstance(articles, list):
            raise TypeError
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        raise BertcliError(
            f'{file} is no data as SQuAD has it: it is no JSON with "data", a list of articles.'
        ) from None
    for number, article in enumerate(articles, 1):
        try:
            for paragraph in article["paragraphs"]:
                for entry in paragraph["qas"]:
                    answers = [] if entry.get("is_impossible") else [answer["text"] for answer in entry["answers"]]
                    fields = {"question": entry["question"], "context": paragraph["context"], "answers": answers}
                    row = Text("", place=f"{file}, question {shown(entry.get('id'))}", label={**article, **fields})
                    yield read_row(row, "answer", [*fields], by)
        except (TypeError, KeyError, AttributeError) as error:
            left_out.add(f"{file}, article {number}: not as SQuAD has it ({error} is missing or of another kind).")
