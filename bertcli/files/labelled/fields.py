"""The fields of a table's rows: the names that each may have, and what it may hold, else ValueError.

tables.py reads tables with them; a task says which fields its rows have (`RowsOfTask`).
"""

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from bertcli.errors import quoted
from bertcli.files.labelled.rows import TaggedWords
from bertcli.files.texts import is_unicode

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


def read_label(value: Any) -> str | list[str]:
    """The name or number of a label, or a list of such."""
    if isinstance(value, list):
        return [name if isinstance(name, str) else json.dumps(name) for name in value]
    return value if isinstance(value, str) else json.dumps(value)


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
        """Raise ValueError if the lists of a row are empty, or have not one length."""
        listed = self.text if self.fields.second is None else self.second
        name = self.fields.second or self.fields.text
        if not listed:
            raise ValueError(f"the list {quoted(name)} is empty.")
        if len(listed) != len(self.label):
            raise ValueError(
                f"{name} and {self.fields.label} must be two lists of one length, and have {len(listed):,} and "
                f"{len(self.label):,} items."
            )


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
WORDS = FieldSpec(("tokens", "words"), read_texts)
TAGS = ("tags", "ner_tags", "labels")


class ShapeOfRows(Protocol):
    """A way in which rows are given: the fields of a text, of a second text, and of a label.

    parts: makes these three of a row.
    """

    @property
    def fields(self) -> tuple[FieldSpec, FieldSpec, FieldSpec]: ...

    @property
    def parts(self) -> Callable[[Row], Parts]: ...


class RowsOfTask(ShapeOfRows, Protocol):
    """What a task says of the rows of a table.

    place: where its fields are tried, if the task is not named; None: nowhere. of_any_names: its fields may have any
    names. other_shapes: other ways in which its rows may be given.
    """

    @property
    def other_shapes(self) -> Sequence[ShapeOfRows]: ...

    @property
    def place(self) -> int | None: ...

    @property
    def of_any_names(self) -> bool: ...


class TableOptions(Protocol):
    """What a request says of a table: its task, and the names of its fields; None where they are told from it."""

    @property
    def task(self) -> str | None: ...

    @property
    def column(self) -> str | None: ...

    @property
    def pair_column(self) -> str | None: ...

    @property
    def label_column(self) -> str | None: ...

    @property
    def candidate_column(self) -> Sequence[str] | None: ...

    @property
    def by(self) -> str | None: ...

    @property
    def cluster(self) -> str | None: ...

    @property
    def no_header(self) -> bool: ...

    @property
    def delimiter(self) -> str | None: ...
