"""What a request may cost: the bounds of a door (`DoorLimits`), and the sizes compared with them before work.

What multiplies is multiplied: texts by candidates and the template around them, masks by words, tokens by widths. Of a
text alone a task counts what it computes (`Task.cost`) and what it answers (`Task.predictions`). The shell and Python
have no bounds; a server's are in wings/serve/service.py, an assistant's in wings/agents/tools.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError

if TYPE_CHECKING:
    from bertcli.files.texts import Item, Text
    from bertcli.tasks.running.task import Task

# Options that are lists, also as a text with commas.
LISTS = ("candidates", "targets", "choices", "labels")
# Of a vector, in float32.
BYTES_OF_A_NUMBER = 4
# Characters that take as long to tokenize as a small model takes to compute one token.
CHARACTERS_OF_COST = 32


class TooMuch(BertcliError):
    """A request larger than its door allows. code: a word for programs, which a server's answer has."""

    def __init__(self, why: str, code: str) -> None:
        super().__init__(why)
        self.code = code


class DoorLimits(NamedTuple):
    """The bounds of a door, all of one request; None: it has none.

    texts        their number
    characters   of one text: the tokenizers library takes 200 to 450 bytes for each
    entries      of an option that is a list: candidates, targets, labels
    in_options   characters of all options, each alternative with the template around it
    tokens       computed
    predictions  in the answer; a long one counts as several
    vectors      bytes of the vectors that are held to compare texts by
    files        bytes of the files that are read, unpacked
    """

    texts: int | None = None
    characters: int | None = None
    entries: int | None = None
    in_options: int | None = None
    tokens: int | None = None
    predictions: int | None = None
    vectors: int | None = None
    files: int | None = None


NO_LIMITS = DoorLimits()


def over(size: int, most: int | None) -> bool:
    """True if there is a bound, and the size is above it."""
    return most is not None and size > most


def check_texts(texts: Sequence["Text"], limits: DoorLimits) -> None:
    """Refuse too many texts, and texts that take too much memory to tokenize. Errors: TooMuch."""
    if over(len(texts), limits.texts):
        raise too_many_texts(len(texts), limits.texts)
    for index, text in enumerate(texts):
        for side in (text.text, text.pair or ""):
            if over(len(side), limits.characters):
                why = f"The text at index {index} has {len(side):,} characters, more than {limits.characters:,}"
                raise TooMuch(f"{why}: split it.", "too_long")


def check_options(options: Mapping[str, Any], texts: Sequence["Text"], limits: DoorLimits) -> int:
    """Refuse options that multiply the texts too much; return the characters of all options.

    options: those that were given, by their names. Errors: TooMuch.
    """
    lists = {name: names_in(value) for name, value in options.items() if name in LISTS or isinstance(value, tuple)}
    for name, entries in lists.items():
        if over(len(entries), limits.entries):
            why = f"{name} has {len(entries):,} entries, more than {limits.entries:,}"
            raise TooMuch(f"{why}: send fewer.", "too_many_candidates")
    alternatives = lists.get("candidates", lists.get("choices", ()))
    # Each alternative is put into the template, in each of its places.
    template = str(options.get("template") or "")
    places = max(1, template.count("{}"))
    of_alternatives = sum(len(template) + places * len(entry) for entry in alternatives)
    of_options = of_alternatives
    for name, value in options.items():
        parts = lists.get(name, (value,))
        of_options += sum(len(part) for part in parts if isinstance(part, str))
    if over(of_options, limits.in_options):
        why = f"The parameters have {of_options:,} characters, more than {limits.in_options:,}"
        raise TooMuch(f"{why}: shorten them.", "too_many_tokens")
    of_texts = sum(len(text.text) + len(text.pair or "") for text in texts)
    characters = max(1, len(alternatives)) * of_texts + len(texts) * of_alternatives
    check_tokens(characters // CHARACTERS_OF_COST, limits)
    return of_options


class Cost:
    """What a request computes and answers, counted while its texts are tokenized.

    Errors: TooMuch, as soon as it is more than the bounds of its door.
    """

    def __init__(self, limits: DoorLimits) -> None:
        self.limits = limits
        self.tokens = self.predictions = self.vectors = 0

    def add(self, task: "Task[Any]", items: Iterable["Item"], *, held: bool = False) -> list[int]:
        """Count items, and return the tokens that are computed for each.

        held: their token vectors are not answered, but held to compare texts by.
        """
        costs: list[int] = []
        for item in items:
            costs.append(task.cost(item))
            self.tokens += costs[-1]
            check_tokens(self.tokens, self.limits)
            if held:
                self._hold(task, item)
            else:
                self.answer(task.predictions(item))
        return costs

    def answer(self, predictions: int) -> None:
        """Count predictions of the answer."""
        self.predictions += predictions
        if over(self.predictions, self.limits.predictions):
            why = f"The answer would have at least {self.predictions:,} predictions, more than"
            raise TooMuch(f"{why} {self.limits.predictions:,}: ask for fewer.", "too_many_predictions")

    def _hold(self, task: Any, item: "Item") -> None:
        self.vectors += len(item.tokens.ids) * task.width * BYTES_OF_A_NUMBER
        if over(self.vectors, self.limits.vectors):
            why = f"The token vectors would take {self.vectors:,} bytes, more than {self.limits.vectors:,}"
            raise TooMuch(f"{why}: send fewer or shorter documents.", "too_many_predictions")


def check_files(files: Iterable[str], limits: DoorLimits) -> None:
    """Refuse files that are too large together, unpacked. Errors: TooMuch; BertcliError for one that is missing."""
    if limits.files is None:
        return
    from bertcli.files.read.line_reader import unpacked_size  # late: it brings gzip, and every task imports this file

    size = 0
    for file in files:
        check_wanted()
        size += unpacked_size(file, limits.files - size)
        if size > limits.files:
            why = f"These files have more than {limits.files:,} bytes, unpacked"
            raise TooMuch(f"{why}: name fewer.", "too_large")


def most_vectors(width: int, limits: DoorLimits) -> int | None:
    """Count the vectors of this width that may be held; None: any number."""
    return None if limits.vectors is None else limits.vectors // (width * BYTES_OF_A_NUMBER)


def too_many_texts(count: int, most: int | None) -> TooMuch:
    """Make the error for more texts than a request may have."""
    return TooMuch(f"There are {count:,} texts, more than {most:,}: send fewer at once.", "too_many")


def check_tokens(tokens: int, limits: DoorLimits) -> None:
    """Refuse more tokens than a request may compute. Errors: TooMuch."""
    if over(tokens, limits.tokens):
        why = f"The request takes at least {tokens:,} tokens to compute, more than {limits.tokens:,}"
        raise TooMuch(f"{why}: send fewer or shorter texts.", "too_many_tokens")


def names_in(value: Any) -> list[str]:
    """The entries of an option that is a list, or a text with commas."""
    if isinstance(value, str):
        return value.split(",")
    return [str(entry) for entry in value] if isinstance(value, Iterable) else []
