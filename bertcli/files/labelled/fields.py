"""The fields of a table's rows: the names that each may have, and what it may hold, else ValueError.

tables.py reads tables with them; a task says which fields its rows have (`RowsOfTask`).
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from bertcli.errors import quoted
from bertcli.files.labelled.rows import EntitiesOfText, GivenSpan, TaggedWords
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


# The names of a span's parts: ours and spaCy's, doccano's.
STARTS, ENDS = ("start", "start_offset"), ("end", "end_offset")
SPAN_LABELS = ("label", "entity_group", "entity", "type")


def read_spans(value: Any) -> list[GivenSpan]:
    """A list of entities: {start, end, label}, as spaCy, doccano and records of tag say it, or three values."""
    if not isinstance(value, list):
        raise ValueError(f"{quoted(value)} is no list of entities.")
    spans = []
    for given in value:
        if isinstance(given, list) and len(given) == 3:
            start, end, label = given
            text = None
        elif isinstance(given, dict):
            start, end, label = (_first(given, names) for names in (STARTS, ENDS, SPAN_LABELS))
            text = given.get("text")
        else:
            raise ValueError(f"{quoted(given)} is no entity such as {{start, end, label}}.")
        is_range = type(start) is int and type(end) is int and 0 <= start < end
        if not is_range or not isinstance(label, str) or not label:
            raise ValueError(f"{quoted(given)} is no entity such as {{start, end, label}}.")
        spans.append(GivenSpan(start, end, label, text if isinstance(text, str) else None))
    return spans


def _first(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((given[name] for name in names if name in given), None)


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


def entities_of_text(row: Row) -> Parts:
    """The text of a row, and its entities. Errors: ValueError for one that does not lie in the text."""
    text = row.text
    for start, end, label, own_text in row.label:
        if end > len(text):
            raise ValueError(f"the {label} of characters {start} to {end} ends after the text, which has {len(text)}.")
        if own_text is not None and own_text != text[start:end]:
            raise ValueError(
                f"the {label} {quoted(own_text)} is not at characters {start} to {end}, where there is "
                f"{quoted(text[start:end])}: count characters, not bytes."
            )
    return text, None, EntitiesOfText(row.label)


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
