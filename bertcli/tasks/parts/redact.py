"""Redact a text: replace each entity by its label in brackets, or by a given word (tag --redact)."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.files.texts import Failure, Item
from bertcli.tasks.running.task import Record
from bertcli.tasks.tag import TagOptions, only_of
from bertcli.tokens.words import is_unspaced

# Characters of a redacted text: ten times those of the longest text that is taken.
LONGEST_RESULT = 20_000_000
# Kinds of characters, where a text is searched for words.
LETTER, INVISIBLE, UNSPACED_LETTER, JOINER, PERCENT, OTHER = "l", "i", "u", "j", "p", "o"
# Signs that part no word where a letter or digit stands on either side: O’Neill's, Zürich-Nord, john_smith, 3.14.
JOINERS = "-'’·.\u2010\u2011_"
# A word. Between two letters or digits there may be one joiner, and any number of invisible characters.
RUN = re.compile(f"{LETTER}(?:{INVISIBLE}*(?:{JOINER}{INVISIBLE}*)?{LETTER})*{PERCENT}?")


# Characters of an answer that count as one prediction.
CHARACTERS_OF_A_PREDICTION = 100


class Found(NamedTuple):
    """An entity, or a piece of one, in a text: its characters, its type, and how likely it is."""

    start: int
    end: int
    label: str
    score: float
    continues: bool = False  # the entity of the piece before it, if that is of the same type


class Hidden(NamedTuple):
    """A range of characters to replace; `longest`: the length of the entity that gives the label."""

    start: int
    end: int
    label: str
    longest: int

    @property
    def record(self) -> Record:
        """Its label and characters."""
        return {"label": self.label, "start": self.start, "end": self.end}


class Redaction(NamedTuple):
    """The entities to replace: of these labels (None: any), with at least this score.

    word: what replaces them; None: their label in brackets. keep_text: records have the text and its words, too.
    """

    word: str | None = None
    only: Collection[str] | None = None
    threshold: float | None = None
    keep_text: bool = False

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text with zero bytes, between whose letters a model finds no names."""
        if "\0" in item.text.text and not self.keep_text:
            title = item.text.location or f"text {item.index}"
            raise BertcliError(f"{title}: a zero byte, as UTF-16 has them: save the file as UTF-8.")

    def applied(
        self, record: Record, item: Item, entities: Iterable[Found], words: Iterable[tuple[int, int]]
    ) -> Record:
        """The record of a text with {redacted, hidden: [{label, start, end}]} and, unless kept, without its words.

        hidden: the characters of the text that are replaced, in order. words: as `hidden_parts` takes them.
        Errors: BertcliError if the result would be longer than LONGEST_RESULT.
        """
        text = item.text.text
        hidden = self.hidden_parts(text, entities, words)
        if sum(len(self.replacement(part.label)) for part in hidden) + len(text) > LONGEST_RESULT:
            title = item.text.location or f"Text {item.index}"
            raise BertcliError(
                f"{title} has {len(hidden):,} entities, and the text that replaces them is too long for so many: give "
                "a shorter redact_with (--redact-with), or split the text."
            )
        if not self.keep_text:
            record = {name: value for name, value in record.items() if name != "text"}
            for entity in record["entities"]:
                del entity["word"]
        return {**record, "redacted": self.replaced(text, hidden), "hidden": [part.record for part in hidden]}

    def failed(self, failure: Failure) -> Record:
        """The record of a text that cannot be used; unless texts are kept without it, and what may quote it."""
        if self.keep_text:
            return failure.record()
        title = failure.text.location or f"text {failure.index}"
        named = {} if failure.text.id is None else {"id": failure.text.id}
        return {
            "index": failure.index,
            **named,
            "error": f"{title} cannot be used; without --keep-going it is said why.",
        }

    def hidden_parts(self, text: str, entities: Iterable[Found], words: Iterable[tuple[int, int]] = ()) -> list[Hidden]:
        """The ranges of a text to replace, in order; the spaces around entities stay.

        words: the characters of each word, as the tokenizer parts the text. An entity that covers a part of a word
        hides all of it (`whole_words`). Entities that overlap are one replacement, with the label of the longest; so
        are those of one label that adjoin, and pieces of one entity with the space between them.
        """
        chosen = [entity for entity in entities if self._chosen(entity)]
        whole = whole_words(text, words) if chosen else []
        return _together(text, [(_widened(entity, whole), entity.end - entity.start) for entity in chosen])

    def replacement(self, label: str) -> str:
        """What stands for an entity of a label."""
        return f"[{label}]" if self.word is None else self.word

    def replaced(self, text: str, hidden: Sequence[Hidden]) -> str:
        """The text with its hidden parts replaced."""
        replacements = [self.replacement(part.label) for part in hidden]
        pieces, end = [], 0
        for part, replacement in zip(hidden, replacements, strict=True):
            pieces += [text[end : part.start], replacement]
            end = part.end
        return "".join([*pieces, text[end:]])

    def predictions(self, most: int) -> int:
        """Count what a long word adds to the size of a text with at most so many entities, as predictions."""
        return most * (len(self.word or "") // CHARACTERS_OF_A_PREDICTION)

    def _chosen(self, entity: Found) -> bool:
        is_chosen = self.only is None or entity.label in self.only
        return is_chosen and entity.score >= (self.threshold or 0.0)


def redaction_of(options: TagOptions, names: Mapping[str, str], whose: str) -> Redaction | None:
    """What a request asks to replace; None without --redact.

    names: the label of entities for each name that --only may give. whose: begins the message, as "the model has".
    Errors: BertcliError for another name, with which the entities that were meant would stay in the text.
    """
    if not options.redact:
        return None
    only = only_of(options)
    for name in only or ():
        if name not in names:
            known = ", ".join(map(quoted, dict.fromkeys(names.values())))
            raise BertcliError(f"{whose} no label {quoted(name)} (--only): choose from {known}.")
    labels = None if only is None else frozenset(names[name] for name in only)
    return Redaction(options.redact_with, labels, options.threshold, options.keep_text)


def whole_words(text: str, words: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The characters that belong together, in order: the tokenizer's words, and runs of letters and digits (RUN).

    Runs, because a tokenizer may part what people read as one word, at a digit or at a mark over a letter. Where its
    word is more than that, only a part is taken: without the signs around a word, and no whole sentence in scripts
    without spaces.
    """
    kinds = "".join(map(_kind, text))
    spans = [match.span() for match in RUN.finditer(kinds)]
    within = re.compile(f"{LETTER}[^{UNSPACED_LETTER}]*{LETTER}|{LETTER}")
    for start, end in words:
        spans += [match.span() for match in within.finditer(kinds, start, end)]
    whole: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if whole and start < whole[-1][1]:
            whole[-1] = whole[-1][0], max(end, whole[-1][1])
        else:
            whole.append((start, end))
    return whole


@lru_cache(1 << 16)
def _kind(character: str) -> str:
    """The kind of a character: LETTER (also a mark or a digit), INVISIBLE, UNSPACED_LETTER, …, else OTHER."""
    category = unicodedata.category(character)
    if character in JOINERS:
        return JOINER
    if character in "%‰":
        return PERCENT
    if category == "Cf":
        return INVISIBLE
    if category[0] not in "LMN":
        return OTHER
    return UNSPACED_LETTER if is_unspaced(character) else LETTER


def _widened(entity: Found, words: Sequence[tuple[int, int]]) -> Found:
    """The entity with all of the words that it covers a part of."""
    first = bisect_right(words, entity.start, key=lambda word: word[1])
    last = bisect_left(words, entity.end, key=lambda word: word[0])
    covered = words[first:last] if entity.start < entity.end else []
    start = min([entity.start, *(word[0] for word in covered[:1])])
    end = max([entity.end, *(word[1] for word in covered[-1:])])
    return entity._replace(start=start, end=end)


def _together(text: str, widened: Iterable[tuple[Found, int]]) -> list[Hidden]:
    """Join entities that overlap or adjoin into ranges to replace, in the order of the text.

    widened: each entity, widened to whole words, and the number of characters that it had before.
    """
    hidden: list[Hidden] = []
    for entity, length in sorted(widened):
        covered = text[entity.start : entity.end]
        start, end = entity.start + len(covered) - len(covered.lstrip()), entity.start + len(covered.rstrip())
        if start >= end:
            continue
        last = hidden[-1] if hidden else Hidden(0, 0, "", 0)
        between = text[last.end : start]
        same = entity.label == last.label and (not between or (entity.continues and between.isspace()))
        if start >= last.end and not same:
            hidden.append(Hidden(start, end, entity.label, length))
        else:
            label = entity.label if length > last.longest else last.label
            hidden[-1] = Hidden(last.start, max(end, last.end), label, max(length, last.longest))
    return hidden
