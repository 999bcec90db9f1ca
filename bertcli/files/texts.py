"""A text to work on, and texts from arguments and from Python."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.errors import BertcliError, quoted, quoted_object
from bertcli.lean import lean_dataclass

if TYPE_CHECKING:
    from bertcli.tokens import Tokens

Pairs = Iterable[str | None] | str | None  # second texts: one for each text, or a single one for all
STANDARD_INPUT = "-"  # where a file is named
END = object()
CHARACTERS_A_TOKEN = 4  # roughly, in English; it only affects how many texts are processed together


class Text(NamedTuple):
    """A text to work on, perhaps with a second one, and where it came from (for messages).

    `id` is the row's own, `label` what is true of it, if that is read. `error`, if there is one, says why the row
    cannot be used; the text is then empty.
    """

    text: str
    pair: str | None = None
    place: str | None = None
    id: str | int | None = None
    label: Any = None
    error: str | None = None


class Chunk(NamedTuple):
    """A part of a text: its number, and its first character and the one after its last in the text as given."""

    number: int
    start: int
    end: int


@dataclass(slots=True, eq=False, repr=False)  # not frozen, since there are many: made in a third of the time
class Item:
    """A text on its way, or a part of it: the number of the text in the input, the text, its tokens."""

    index: int
    text: Text
    tokens: "Tokens"
    chunk: Chunk | None = None

    @property
    def shown(self) -> str:
        """The text, or the part of it."""
        return self.text.text if self.chunk is None else self.text.text[self.chunk.start : self.chunk.end]

    @property
    def named(self) -> dict[str, Any]:
        """How a record begins: {index}, and where there is one the text's own id and the part's chunk, start, end."""
        id = {} if self.text.id is None else {"id": self.text.id}
        chunk = {} if self.chunk is None else dict(zip(("chunk", "start", "end"), self.chunk, strict=True))
        return {"index": self.index, **id, **chunk}

    @property
    def place(self) -> str:
        """What to call the text in a message."""
        return f"{self.text.place or f'text {self.index}'} ({quoted(self.text.text)})"


@lean_dataclass
class Failure:
    """A text that cannot be used, and why."""

    index: int
    text: Text
    error: str

    def record(self) -> dict[str, Any]:
        """{index, id, text, error}; no `id` if the row has none; `text` is None if the row could not be read."""
        text = None if self.text.error else self.text.text
        named = {} if self.text.id is None else {"id": self.text.id}
        return {"index": self.index, **named, "text": text, "error": self.error}


@dataclass(eq=False, repr=False)
class Texts:
    """An iterable of Text in input order; `waiting()` says whether the next one may take a while to arrive.

    `at_hand`: all are available, so reading ahead never waits, as it may with a pipe or an iterator that computes.
    `files` are those it reads, in order; None if one is a pipe, which a second run could not read again.
    `share()` is how much of them has been read, 0 to 1, or None if unknown; `count` how many texts there are, if known,
    and `read` how many have been read. `change` is made to each text.
    `shard`: (I, N) for the I-th of N contiguous parts alone, as many texts as in the others; windows are those of all
    texts, so that results are the same bytes, and the texts are read twice.
    """

    rows: Iterable[Text]
    waiting: Callable[[], bool] = lambda: False
    files: tuple[str, ...] | None = ()
    share: Callable[[], float | None] = lambda: None
    at_hand: bool = False
    count: int | None = None
    shard: tuple[int, int] | None = None
    change: Callable[[Text], Text] = lambda text: text
    read: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[Text]:
        for number, text in enumerate(map(self.change, self.rows), 1):
            self.read = number
            yield text

    def may_part(self, before: Text, after: Text) -> bool:
        """Whether a shard may end between two texts."""
        return True

    def grouped(self, tokens: int, span: int) -> Iterator[list[Text]]:
        """Texts in lists of about `tokens` tokens, doubling up to `span` times that; shorter where the input pauses.

        The sizes depend only on the texts, unless the input is a pipe that pauses: a run repeats bit for bit.
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


Values = Iterable[str] | Texts


def from_values(texts: Values, pairs: Pairs = None) -> Texts:
    """Texts given in Python: an iterable of strings, or one string; `pairs` likewise."""
    if isinstance(texts, Texts):
        return texts
    values = [texts] if isinstance(texts, str) else texts
    for what, argument in (("texts", values), ("pairs", "" if pairs is None else pairs)):
        if not isinstance(argument, Iterable):
            raise BertcliError(f"{what} is {quoted_object(argument)}, which is neither a text nor a list of texts.")
    if pairs is None or isinstance(pairs, str):
        return Texts((Text(_string(text), pairs) for text in values), at_hand=isinstance(values, Collection))
    at_hand = isinstance(values, Collection) and isinstance(pairs, Collection)
    return Texts(_paired(values, pairs), at_hand=at_hand)


def _paired(texts: Iterable[str], pairs: Iterable[str | None]) -> Iterator[Text]:
    for text, pair in zip_longest(texts, pairs, fillvalue=END):
        if text is END or pair is END:
            raise BertcliError(f"There are {'fewer' if pair is END else 'more'} pairs than texts.")
        yield Text(_string(text), pair if pair is None else _string(pair))


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise BertcliError(f"A text must be a string, but {quoted_object(value)} is not.")
    return value


def from_arguments(texts: Sequence[str], pair: str | None = None) -> Texts:
    """Texts given on the command line, each paired with `pair`."""
    for text in [*texts, pair or ""]:
        if not is_unicode(text):
            raise BertcliError(f"A text on the command line is not UTF-8: {quoted(text)}.")
    return Texts([Text(text, pair) for text in texts], at_hand=True, count=len(texts))


def is_unicode(text: str) -> bool:
    """False for a string with half a surrogate pair, which UTF-8 cannot represent."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
