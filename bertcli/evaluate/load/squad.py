"""SQuAD's json, 1.1 and 2.0: articles of paragraphs with questions."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bertcli.errors import BertcliError
from bertcli.errors import shown as quoted
from bertcli.evaluate.load.labelled import LabelledText, LeftOut
from bertcli.evaluate.load.tables import Fields, read_row
from bertcli.evaluate.options import Evaluate
from bertcli.files.texts import Text

PARAGRAPH = "context"  # the field whose value the questions of one paragraph share


def read_squad(file: str, options: Evaluate, left_out: LeftOut) -> Iterator[LabelledText]:
    """The questions of a file; their fields are their own and the article's, such as title. Errors: BertcliError."""
    fields = Fields("question", PARAGRAPH, "answers", options.by, options.cluster)
    for number, article in enumerate(_articles(file), 1):
        try:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    values = {**article, **_values(question), PARAGRAPH: paragraph["context"]}
                    place = f"{file}, question {quoted(question.get('id'))}"
                    yield read_row(Text("", place=place, label=values), "answer", fields)
        except (TypeError, KeyError, AttributeError) as error:
            left_out.add(f"{file}, article {number}: not as SQuAD has it ({error} is missing or of another type).")


def _articles(file: str) -> list[Any]:
    try:
        with open(file, encoding="utf-8") as stream:
            articles = json.load(stream)["data"]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        articles = None
    if not isinstance(articles, list):
        raise BertcliError(f'{file} is no data as SQuAD has it: it is no JSON with "data", a list of articles.')
    return articles


def _values(question: Mapping[str, Any]) -> dict[str, Any]:
    answers = [] if question.get("is_impossible") else [answer["text"] for answer in question["answers"]]
    return {"question": question["question"], "answers": answers}
