"""Entities of a text as data give them, by characters: as spaCy, doccano and records of tag say it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bertcli.errors import quoted
from bertcli.files.labelled.fields import Parts, Row

# The names of a span's parts: ours and spaCy's, doccano's.
STARTS, ENDS = ("start", "start_offset"), ("end", "end_offset")
SPAN_LABELS = ("label", "entity_group", "entity", "type")


class GivenSpan(NamedTuple):
    """An entity as data give it, in characters; text: what it says of itself, if that is there."""

    start: int
    end: int
    label: str
    text: str | None


class EntitiesOfText(NamedTuple):
    """The label of a text for `tag`, where the text is not given as words: its entities."""

    spans: list[GivenSpan]


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
