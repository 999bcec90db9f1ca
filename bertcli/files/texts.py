"""`Text` and `Texts`: the input of a task, from command-line arguments and from Python. read/inputs.py reads files."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.errors import BertcliError, number_of, quoted, quoted_object

if TYPE_CHECKING:
    from bertcli.tokens import Tokens

logger = logging.getLogger("bertcli")
Pairs = Iterable[str | None] | str | None  # second texts: one for each text, or a single one for all
STANDARD_INPUT = "-"  # where a file is named
END = object()
NOTHING_KEPT: Mapping[str, Any] = {}
CHARACTERS_A_TOKEN = 4  # roughly, in English; it only affects how many texts are processed together


class Text(NamedTuple):
    """A text, perhaps with a second one, and its location in the input (file and line), for messages.

    id: from the row, if an id column is read. label: the true label, if a label column is read. error: why the row
    cannot be used; the text is then empty. kept: other fields of the row, which its record has, too. words: of a text
    that was given as its words, which has a space between them.
    """

    text: str
    pair: str | None = None
    location: str | None = None
    id: str | int | None = None
    label: Any = None
    error: str | None = None
    kept: Mapping[str, Any] = NOTHING_KEPT
    words: Sequence[str] | None = None

    def with_row(self, record: dict[str, Any]) -> dict[str, Any]:
        """A record of this text with its row's id, after the number, and with the fields that are kept, at the end."""
        if self.id is not None and "id" not in record:
            first: dict[str, Any] = {name: record[name] for name in ("index", "query", "corpus_id") if name in record}
            record = {**first, "id": self.id, **record}
        return {**record, **{name: value for name, value in self.kept.items() if name not in record}}


class Chunk(NamedTuple):
    """A part of a text: its number, and its range of characters in the text, end exclusive."""

    number: int
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False)  # not frozen, since there are many: made in a third of the time
class Item:
    """A tokenized text, or a part of one: the number of the text in the input, the text, its tokens."""

    index: int
    text: Text
    tokens: "Tokens"
    chunk: Chunk | None = None

    @property
    def chunk_text(self) -> str:
        """The text of its chunk, or the whole text without one."""
        return self.text.text if self.chunk is None else self.text.text[self.chunk.start : self.chunk.end]

    @property
    def named(self) -> dict[str, Any]:
        """The first fields of a record: {index}, the text's id if it has one, and chunk, start, end of a part."""
        id = {} if self.text.id is None else {"id": self.text.id}
        chunk = {} if self.chunk is None else dict(zip(("chunk", "start", "end"), self.chunk, strict=True))
        return {"index": self.index, **id, **chunk}

    @property
    def title(self) -> str:
        """The name of the text in a message."""
        return f"{self.text.location or f'text {self.index}'} ({quoted(self.text.text)})"


@dataclass(frozen=True, eq=False, repr=False)
class Failure:
    """A text that cannot be used, and the reason."""

    index: int
    text: Text
    error: str

    @property
    def located(self) -> str:
        """The reason, with the text's file and line."""
        location = self.text.location
        return self.error if not location or location in self.error else f"{location}: {self.error}"

    def record(self) -> dict[str, Any]:
        """{index, id, text, error}; no `id` if the row has none; `text` is None if the row could not be read."""
        text = None if self.text.error else self.text.text
        named = {} if self.text.id is None else {"id": self.text.id}
        return {"index": self.index, **named, "text": text, "error": self.error}


@dataclass(eq=False, repr=False)
class Texts:
    """An iterable of Text in input order.

    waiting()     true while the next text is not available yet: a pipe has paused
    at_hand       all texts are available, so reading ahead never waits, as it may with a pipe or an iterator
    files         the files it reads, in order; None if one is a pipe, which a second run could not read again
    share_read()  the share of the files that has been read, 0 to 1; None if unknown
    count         the number of texts; None if unknown
    with_ids      texts have ids: from a column, or because the format of a file gives them (FASTA)
    kept          the names of other fields that are kept, of which a row may lack some
    read          the number of texts that have been read
    empty         how many of them are empty, and `first_empty`: the first of these, by its number
    change        a function that is applied to each text
    way_on        ends the message on a text that cannot be used: how to go on without it
    """

    rows: Iterable[Text]
    waiting: Callable[[], bool] = lambda: False
    files: tuple[str, ...] | None = ()
    share_read: Callable[[], float | None] = lambda: None
    at_hand: bool = False
    count: int | None = None
    with_ids: bool = False
    kept: tuple[str, ...] = ()
    change: Callable[[Text], Text] = lambda text: text
    way_on: str = ""
    read: int = field(default=0, init=False)
    empty: int = field(default=0, init=False)
    first_empty: tuple[int, Text] | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[Text]:
        self.read, self.empty, self.first_empty = 0, 0, None
        for index, text in enumerate(map(self.change, self.rows)):
            self.read = index + 1
            if not text.error and self.is_empty(text):
                self.empty += 1
                self.first_empty = self.first_empty or (index, text)
            yield text

    def in_memory(self) -> "Texts":
        """Read all texts, so that they can be read again."""
        rows = list(self)
        return Texts(rows, at_hand=True, count=len(rows))

    def is_empty(self, text: Text) -> bool:
        """True if there is nothing in a text but perhaps blanks."""
        return not text.text.strip()

    def log_empty(self) -> None:
        """Log one note if files or a pipe hold no texts, or if some texts are empty."""
        if self.read == 0 and self.files != ():
            logger.info("there are no texts in %s.", ", ".join(self.files or ["the input"]))
        if self.first_empty is not None:
            index, text = self.first_empty
            count = f"{self.empty:,} of {number_of(self.read, 'text')}"
            first = text.location or f"text {index}"
            logger.info("%s %s.", count, f"is empty: {first}" if self.empty == 1 else f"are empty; the first: {first}")

    def grouped(self, tokens: int, span: int) -> Iterator[list[Text]]:
        """Group texts in lists of about `tokens` tokens, doubling up to `span` times that; shorter if a pipe pauses.

        Without pauses the sizes depend only on the texts, so that a run can be repeated bit for bit.
        """
        group: list[Text] = []
        size, budget = 0, tokens
        for text in self:
            group.append(text)
            size += 3 + (len(text.text) + len(text.pair or "")) // CHARACTERS_A_TOKEN
            if size >= budget or self.waiting():
                yield group
                group, size, budget = [], 0, min(2 * budget, span * tokens)
        if group:
            yield group


# Of a text that is given as a row, the fields that may hold its words: those of nearly all data sets of entities.
WORD_FIELDS = ("tokens", "words")
Value = str | Mapping[str, Any]
Values = Value | Iterable[Value] | Texts


def is_one(texts: Any) -> bool:
    """True for a single text: a string, or a row with its words."""
    return isinstance(texts, str | Mapping)


def of_words(row: Mapping[str, Any]) -> Text | None:
    """The text of a row that has a list of its words, {"tokens": ["Anna", "left"]}; None for another row."""
    words = None if "text" in row else next((row[name] for name in WORD_FIELDS if name in row), None)
    if not isinstance(words, list | tuple) or not words or not all(isinstance(word, str) for word in words):
        return None
    return Text(" ".join(words), words=tuple(words))


def from_values(texts: Values, pairs: Pairs = None) -> Texts:
    """Make Texts from Python: an iterable of strings, or one string; `pairs` likewise.

    A text may be a row with its words: {"tokens": ["Anna", "left"]}.
    """
    if isinstance(texts, Texts):
        return texts
    values: Iterable[Any] = [texts] if is_one(texts) else texts
    for what, argument in (("texts", values), ("pairs", "" if pairs is None else pairs)):
        if not isinstance(argument, Iterable):
            raise BertcliError(f"{what} is {quoted_object(argument)}, which is neither a text nor a list of texts.")
    if pairs is None or isinstance(pairs, str):
        return Texts((_text(text, pairs) for text in values), at_hand=isinstance(values, Collection))
    at_hand = isinstance(values, Collection) and isinstance(pairs, Collection)
    return Texts(_paired(values, pairs), at_hand=at_hand)


def _paired(texts: Iterable[Value], pairs: Iterable[str | None]) -> Iterator[Text]:
    for text, pair in zip_longest(texts, pairs, fillvalue=END):
        if text is END or pair is END:
            raise BertcliError(f"There are {'fewer' if pair is END else 'more'} pairs than texts.")
        yield _text(text, pair if pair is None else _string(pair))


def _text(value: object, pair: str | None) -> Text:
    if not isinstance(value, Mapping):
        return Text(_string(value), pair)
    text = of_words(value)
    if text is None:
        raise BertcliError(f'A text must be a string, or {{"tokens": [its words]}}, but {quoted_object(value)} is not.')
    return text._replace(pair=pair)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise BertcliError(f"A text must be a string, but {quoted_object(value)} is not.")
    return value


def from_arguments(texts: Sequence[str], pair: str | None = None, way_on: str = "") -> Texts:
    """Make Texts from command-line arguments, each paired with `pair`."""
    for text in [*texts, pair or ""]:
        if not is_unicode(text):
            raise BertcliError(f"A text on the command line is not UTF-8: {quoted(text)}.")
    # Without a text that is alone, nothing is left to go on with.
    way_on = way_on if len(texts) > 1 else ""
    return Texts([Text(text, pair) for text in texts], at_hand=True, count=len(texts), way_on=way_on)


def is_unicode(text: str) -> bool:
    """False for a string with half a surrogate pair, which UTF-8 cannot represent."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
