"""Which fields of a row are read: the text, perhaps its second text and its id, and what is kept of it.

rows.py and files/parquet.py read rows with it; the options of commands name the fields (cli/inputs.py).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from bertcli.errors import quoted
from bertcli.files.texts import NOTHING_KEPT, WORD_FIELDS, Text, is_unicode

DEFAULT_COLUMN = "text"  # of --column
MOST_NAMES = 20  # of fields that a message lists


class Field(NamedTuple):
    """A named field of a row, the option that chooses it, and the types that it may have."""

    name: str
    option: str
    accepts: Literal["a text", "a text or whole number", "anything"] = "a text"

    def holds(self, value: object) -> bool:
        """True if a value has a type that the field may have; a text may be a list of its words."""
        if self.accepts == "anything":
            return True
        if isinstance(value, str):
            return is_unicode(value)
        if isinstance(value, list) and self.accepts == "a text":
            return bool(value) and all(isinstance(word, str) and is_unicode(word) for word in value)
        return self.accepts != "a text" and type(value) is int

    def lacking(self, names: Sequence[str]) -> str:
        """Describe the error if this field is not among `names`, or is there more than once."""
        if self.name in names:
            return f"there is more than one field {quoted(self.name)}: rename one of them."
        fields = ", ".join(map(quoted, names[:MOST_NAMES])) or "none"
        hint = f" (choose one with {self.option})" if self.option else ""
        return f"there is no field {quoted(self.name)}; fields are {fields}{hint}."


# What records of pairs call the second text.
OWN_PAIR = "text_pair"


class RowColumns(NamedTuple):
    """The fields to read: the text, perhaps its pair and id; `fixed_pair` is a pair for every text.

    keep: further fields that a record of the text has; of rows that differ, keep_all takes those that are there.
    whole: the label is a dict of all fields of the row. own_pair: a field text_pair, as records call it, is the pair
    where no other is named. header: the first row of a .csv or .tsv file names the columns; without a header they are
    called 1, 2, 3. headerless: the command has an option for that. delimiter: between the fields of a .csv or .tsv file
    (default: by ending). or_words: a row that has no such text may have its words. as_written: the label is a KeptRow.
    """

    text: Field | None = None
    pair: Field | None = None
    id: Field | None = None
    fixed_pair: str | None = None
    whole: bool = False
    own_pair: bool = False
    header: bool = True
    delimiter: str | None = None
    headerless: bool = True
    as_written: bool = False
    keep: tuple[Field, ...] = ()
    keep_all: bool = False
    or_words: bool = False

    def in_row(self, names: Collection[str]) -> "RowColumns":
        """The columns of a row with fields of these names: the words of a text that is not there, if they may be read.

        Only where fields can be lists: in JSON lines and .parquet.
        """
        if not self.or_words or self.text is None or self.text.name in names:
            return self
        words = next((name for name in WORD_FIELDS if name in names), None)
        return self if words is None else self._replace(text=self.text._replace(name=words))

    @property
    def needed(self) -> list[Field]:
        """The fields that a row must have, the text's first."""
        return [*self.fields, *(() if self.keep_all else self.keep)]

    @property
    def fields(self) -> list[Field]:
        """The fields to look up, the text's first."""
        return [field for field in self[:3] if field is not None]

    def row(self, location: str, values: Mapping[str, Any]) -> Text:
        """Make a Text from a row's fields by name; a Text with an error if a field is missing or cannot be used."""
        id = values.get(self.id.name) if self.id else None
        if self.id and not self.id.holds(id):
            id = None
        # With keep_all words of another row may be kept, which are this one's text.
        keep = [field for field in self.keep if not (self.keep_all and self.text and field.name == self.text.name)]
        kept = {field.name: values.get(field.name) for field in keep} if keep else NOTHING_KEPT
        for field in self.needed:
            if field.name not in values:
                return unusable(location, field.lacking([*values]), id)
            if not field.holds(values[field.name]):
                why = f"the field {quoted(field.name)} is {quoted(values[field.name])}, which is not {field.accepts}."
                return unusable(location, why, id)._replace(kept=kept)
        given = values[self.text.name] if self.text else ""
        pair = text_of(values[self.pair.name]) if self.pair else self.fixed_pair
        if pair is None and self.own_pair and isinstance(values.get(OWN_PAIR), str):
            pair = values[OWN_PAIR] or None
        words = tuple(given) if isinstance(given, list) else None
        return Text(text_of(given), pair, location, id, values if self.whole else None, kept=kept, words=words)


def text_of(value: Any) -> Any:
    """A text as it is; of a list of words the text that has a space between them."""
    return " ".join(value) if isinstance(value, list) else value


def columns_named(text: str | None = None, id: str | None = None) -> RowColumns:
    """The columns of texts and their ids, by their names; the options of commands choose them."""
    of_text = Field(DEFAULT_COLUMN if text is None else text, "--column")
    of_id = None if id is None else Field(id, "--id-column", "a text or whole number")
    return RowColumns(of_text, id=of_id, or_words=text is None)


THE_TEXT = columns_named()


class KeptRow(NamedTuple):
    """A row as it stands in its file, for who writes it again.

    names: the header's, of which the last may have no value; of JSON lines the keys. delimiter: "" for JSON lines.
    """

    names: Sequence[str]
    values: Sequence[Any]
    delimiter: str


def unusable(location: str, why: str, id: str | int | None = None) -> Text:
    """Make the Text of a row that cannot be used."""
    return Text("", location=location, id=id, error=f"{location}: {why}")
