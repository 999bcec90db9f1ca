"""The pairs of texts that the view patch reads with -i: clean and corrupted, perhaps with what each is asked about."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bertcli.errors import BertcliError, quoted

# Usual names of the fields of the clean and the corrupted text, those of the view's own records first.
CLEAN = ("a", "clean", "text")
CORRUPTED = ("b", "corrupted", "text_pair")
# Fields that say for a pair what the options of these names say for all.
ASKED = ("word", "foil", "label")


class TextPair(NamedTuple):
    """A clean text `a` and a corrupted text `b`; word, foil, label: what this pair is asked about, None if nothing.

    location: the file and line, for messages; "" for a pair from Python.
    """

    a: str
    b: str
    word: str | None = None
    foil: str | None = None
    label: str | None = None
    location: str = ""


def read_pairs(file: str) -> list[TextPair]:
    """Read the pairs of a file with named fields; of standard input (`-`), too, as its first line shows.

    Errors: BertcliError, with file and line, for a row that has no two texts.
    """
    from bertcli.files.read.inputs import rows_in
    from bertcli.files.read.rows import RowColumns

    rows = [*rows_in([file], RowColumns(whole=True, headerless=False), rows_piped=True)]
    if not rows:
        raise BertcliError(f"{file} has no pairs of texts: it is empty.")
    if rows[0].label is None:
        raise BertcliError(
            f"{file} has no named fields: give a .csv, .tsv, .jsonl or .parquet file with fields a and b (--input)."
        )
    return [_pair(str(row.location), row.label) for row in rows]


def _pair(location: str, fields: Mapping[str, Any]) -> TextPair:
    texts = []
    for names in (CLEAN, CORRUPTED):
        name = next((name for name in names if name in fields), None)
        if name is None:
            known = ", ".join(map(quoted, fields))
            raise BertcliError(
                f"{location}: there is no field {names[0]} (or {', '.join(names[1:])}); fields are {known}: name the "
                "clean text a and the corrupted text b."
            )
        if not isinstance(fields[name], str):
            raise BertcliError(f"{location}: the field {quoted(name)} is {quoted(fields[name])}, which is not a text.")
        texts.append(fields[name])
    return TextPair(texts[0], texts[1], **_asked(location, fields), location=location)


def _asked(location: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """The values of the fields ASKED that the pair has."""
    asked = {}
    for name in ASKED:
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise BertcliError(f"{location}: the field {quoted(name)} is {quoted(value)}, which is not a text.")
        if value:
            asked[name] = value
    return asked


def as_pairs(pairs: Sequence[Sequence[str | None]]) -> list[TextPair]:
    """Pairs from Python: (a, b), (a, b, word), (a, b, word, foil) or TextPair.

    Errors: BertcliError for anything else.
    """
    if isinstance(pairs, str) or not isinstance(pairs, Sequence):
        raise BertcliError("patch_pairs() takes a list of pairs (a, b) of texts.")
    made = []
    for number, pair in enumerate(pairs):
        is_pair = not isinstance(pair, str) and isinstance(pair, Sequence) and 2 <= len(pair) <= len(TextPair._fields)
        if not is_pair or not all(isinstance(value, str) or (value is None and i > 1) for i, value in enumerate(pair)):
            raise BertcliError(
                f"Pair {number} is {quoted(pair)}: give two texts, (a, b), perhaps with a word and a foil."
            )
        made.append(TextPair(*pair))  # type: ignore[arg-type]  # checked above
    if not made:
        raise BertcliError("There are no pairs of texts.")
    return made
