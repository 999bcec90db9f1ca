"""Read SQuAD's JSON, 1.1 and 2.0: articles of paragraphs with questions."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from bertcli.errors import BertcliError, quoted
from bertcli.files.labelled.fields import Fields
from bertcli.files.labelled.rows import LabelledText, LeftOut
from bertcli.files.labelled.tables import read_row
from bertcli.files.texts import Text
from bertcli.wings.evaluate.evaluators.evaluator import evaluator
from bertcli.wings.evaluate.options import Evaluate

PARAGRAPH = "context"  # the field whose value the questions of one paragraph share


class _Malformed(Exception):
    """The error for an object of the file without SQuAD's shape; its text is the mistake in a few words."""


def read_squad(file: str, options: Evaluate, left_out: LeftOut) -> Iterator[LabelledText]:
    """The questions of a file; their fields are their own and the article's, such as title. Errors: BertcliError."""
    answering = evaluator("answer")
    fields = Fields("question", PARAGRAPH, "answers", options.by, options.cluster)
    for number, article in enumerate(_articles(file), 1):
        try:
            for paragraph in _objects(article, "paragraphs"):
                for question in _objects(paragraph, "qas"):
                    values = {**article, **_values(question), PARAGRAPH: _field(paragraph, PARAGRAPH)}
                    location = f"{file}, question {quoted(question.get('id'))}"
                    yield read_row(Text("", location=location, label=values), answering, fields)
        except _Malformed as error:
            left_out.add(f"{file}, article {number} does not have the shape of SQuAD: {error}.")


def _articles(file: str) -> list[Any]:
    try:
        with open(file, encoding="utf-8") as stream:
            articles = json.load(stream)["data"]
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise BertcliError(f"{file}: not UTF-8 (there is a byte 0x{byte:02x}): save the file as UTF-8.") from None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        articles = None
    if not isinstance(articles, list):
        raise BertcliError(f'{file} is not SQuAD data: it must be JSON with "data", a list of articles.')
    return articles


def _field(value: Any, name: str) -> Any:
    """A field of an object. Errors: _Malformed where there is no such object or field."""
    if not isinstance(value, Mapping):
        raise _Malformed(f"{quoted(value)} is not an object with {name}")
    if name not in value:
        raise _Malformed(f"an object has no {name}")
    return value[name]


def _objects(value: Any, name: str) -> list[Any]:
    """A field that is a list. Errors: _Malformed."""
    found = _field(value, name)
    if not isinstance(found, list):
        raise _Malformed(f"{name} is {quoted(found)}, not a list")
    return found


def _values(question: Any) -> dict[str, Any]:
    answers = []
    text_of_question = _field(question, "question")
    if not question.get("is_impossible"):
        answers = [_field(answer, "text") for answer in _objects(question, "answers")]
    return {"question": text_of_question, "answers": answers}
