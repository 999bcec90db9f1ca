"""The fields of a table's rows: the names that each may have, and what it may hold, else ValueError.

tables.py reads tables with them; each evaluator says which fields its rows have.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bertcli.errors import quoted
from bertcli.files.texts import is_unicode
from bertcli.wings.evaluate.load.labelled import TaggedWords

# ------------------------------------------------------------------------------- what a field may hold


def read_text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str) or not is_unicode(value):
        raise ValueError(f"{quoted(value)} is not a text.")
    return value


def read_texts(value: Any) -> list[str]:
    """One text or a list of them; also as SQuAD's answers have them, below "text"."""
    values = value.get("text") if isinstance(value, dict) else value
    if isinstance(values, str):
        values = [values]
    if not isinstance(values, list):
        raise ValueError(f"{quoted(value)} is neither a text nor a list of texts.")
    return [read_text(each) for each in values]


def read_number(value: Any) -> float:
    """A finite number."""
    number = number_or_nan(value)
    if not math.isfinite(number):
        raise ValueError(f"the score {quoted(value)} is not a number.")
    return number


# ------------------------------------------------------------------------------------------------------------- fields


def number_or_nan(value: Any) -> float:
    """A number, NaN for anything else."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


class FieldSpec(NamedTuple):
    """A field of a task's rows: the names that it may have, and the function that reads its value."""

    names: tuple[str, ...]
    read: Callable[[Any], Any]
    optional: bool = False


class Fields(NamedTuple):
    """The names of a table's fields: text, second text and label (None where there is none), group and cluster."""

    text: str | None
    second: str | None
    label: str | None
    group: str | None = None
    cluster: str | None = None


class Row(NamedTuple):
    """A row's values of a task's fields, None where it has none; `fields` has their names, for messages.

    others: further candidates (bertscore).
    """

    text: Any
    second: Any
    label: Any
    fields: Fields
    location: str
    others: Sequence[str] = ()

    def check_lengths(self) -> None:
        """Raise ValueError if the lists of a row have not one length."""
        if len(self.second or self.text) != len(self.label):
            name = self.fields.second or self.fields.text
            raise ValueError(f"{name} and {self.fields.label} must be two lists of one length.")


# The text, the second text and the label that are made of a row.
Parts = tuple[str, str | None, Any]


def as_it_is(row: Row) -> Parts:
    """The text, the second text and the label of a row."""
    return row.text, row.second, row.label


def tagged_words(row: Row) -> Parts:
    """The text of a row's words, which are a list, and these with their tags."""
    row.check_lengths()
    return " ".join(row.text), None, TaggedWords(row.text, row.label)


# Fields of several tasks. NOTHING: the task has no such field.
TEXT = FieldSpec(("text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review"), read_text)
SECOND = FieldSpec(("text_pair", "sentence2", "text2", "hypothesis", "question2", "answer"), read_text)
LABEL = ("label", "labels", "score", "similarity_score", "similarity", "class")
NOTHING = FieldSpec((), read_text, optional=True)
