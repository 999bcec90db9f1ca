"""tag: entities found in words, exactly as long and of the same type as they should be.

What an entity is depends on how tags are written. The patterns are those of seqeval's strict mode (Nakayama 2018): two
neighboring prefixes (. is any), and = where their types are to be the same, ! where not, * where it does not matter.
"""

import logging
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import metrics
from bertcli.evaluate.data import Item, Labelled, LeftOut, Row
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Judged, Outcome, Task, listed, texts_of, usable
from bertcli.files.lines import LineFile
from bertcli.lean import lean_dataclass
from bertcli.model import Model

logger = logging.getLogger("bertcli")
Tags = Sequence[str]
TAG = re.compile(r"O|[BIESLU]-\S+")
DOCUMENT = "-DOCSTART-"
SAME = str.maketrans("LU", "ES")  # BILOU's prefixes for those of BIOES


class Scheme(NamedTuple):
    """Where an entity begins, goes on, and is over."""

    begins: str
    continues: str
    ends: str


SCHEMES = {
    "IOB1": Scheme("OI* II! BI* IB= BB=", "BI= II=", "II! IO* IB* BO* BI! BB="),
    "IOB2": Scheme(".B*", "BI= II=", "IO* II! IB* BO* BI! BB*"),
    "BIOES": Scheme(".B* .S*", "BI= BE= II= IE=", "S.* E.*"),
}


class Entity(NamedTuple):
    """A type, the first word and the one after the last."""

    type: str
    start: int
    end: int


def entities(tags: Tags, scheme: str) -> set[Entity]:
    """The entities of a sentence, from the tag of each word."""
    rules, every = SCHEMES[scheme], [*map(_parts, tags), ("O", "")]
    found, i, before = set(), 0, ("O", "")
    while i < len(every):
        start = i
        if _fits(rules.begins, before, every[i]):
            i += 1
            while _fits(rules.continues, every[i - 1], every[i]):
                i += 1
            if _fits(rules.ends, every[i - 1], every[i]):
                found.add(Entity(every[start][1], start, i))
        else:
            i += 1
        before = every[i - 1]
    return found


def _parts(tag: str) -> tuple[str, str]:
    return tag[0].translate(SAME), tag[2:]


def _fits(patterns: str, before: tuple[str, str], after: tuple[str, str]) -> bool:
    same = before[1] == after[1]
    return any(
        rule[0] in (".", before[0]) and rule[1] in (".", after[0]) and (rule[2] == "*" or (rule[2] == "=") == same)
        for rule in patterns.split()
    )


def told_scheme(sentences: Iterable[Tags]) -> str:
    """How tags are written: with E and S; else IOB1 if entities begin, but none with B, which only parts neighbors."""
    begins = {"I": 0, "B": 0}
    for tags in sentences:
        before = ("O", "")
        for tag in map(_parts, tags):
            prefix, kind = tag
            if prefix in "ES":
                return "BIOES"
            if prefix != "O" and (before[0] == "O" or before[1] != kind):
                begins[prefix] += 1
            before = tag
    return "IOB1" if begins["I"] and not begins["B"] else "IOB2"


@lean_dataclass
class Found(Outcome):
    """How many entities of each type are right, found, and there [sentence, type]."""

    unit: ClassVar[str] = "sentences"
    right: Numbers
    found: Numbers
    there: Numbers
    expected_words: Any
    found_words: Any
    types: Sequence[str]

    def figures(self, counts: Numbers) -> Figures:
        """Micro averages, the mean over types that occur, and F1 by type."""
        sums = [counts @ values for values in (self.right, self.found, self.there)]
        micro = metrics.label_figures(*(values.sum(axis=1) for values in sums))
        by_type = metrics.label_figures(*sums)[2].T
        macro = metrics.averaged(*sums)["macro_f1"]
        figures = {"f1": micro[2], "precision": micro[0], "recall": micro[1], "macro_f1": macro}
        return figures | {f"f1:{kind}": f1 for kind, f1 in zip(self.types, by_type, strict=True)}

    @property
    def losses(self) -> Numbers:
        """How many entities are missing or too many."""
        return np.asarray((self.found + self.there - 2 * self.right).sum(axis=1))

    def said(self, item: int) -> dict[str, Any]:
        return {"expected": self.expected_words[item], "found": self.found_words[item]}


def judge(model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """The tag of a word is that of its first piece; a text is its words with a space between."""
    items, renamed = labelled.items, wanted.labels or {}
    words = [item.truth[0] for item in items]
    known = {label.partition("-")[2] for label in model.config.labels} - {""}
    gold = [[_renamed(tag, renamed) for tag in item.truth[1]] for item in items]
    for item, tags in zip(items, gold, strict=True):
        for kind in (tag[2:] for tag in tags if tag != "O"):
            if kind not in known:
                raise BertcliError(
                    f"{item.place}: the type {shown(kind)} is not one of this model's: {', '.join(sorted(known))} "
                    "(--labels A=B says which one is meant, A=O that it is none)."
                )
    texts = texts_of([(item.texts[0], None, item.place) for item in items])
    records = model.tag(texts, aggregation="none", ignore=(), **wanted.windowed)
    guessed = [_tags(some, record.get("entities", ())) for some, record in zip(words, records, strict=True)]
    scheme = wanted.scheme or told_scheme(gold)
    own = (
        "BIOES" if any(label[:2] in ("E-", "S-", "L-", "U-") for label in model.config.labels) else told_scheme(guessed)
    )
    logger.info(
        "tags are read as %s in the data, as %s in what %s says (--scheme: the data's).", scheme, own, model.name
    )
    true = [entities(tags, scheme) for tags in gold]
    said = [entities(tags, own) for tags in guessed]
    types = sorted({entity.type for some in (*true, *said) for entity in some})
    both = [a & b for a, b in zip(true, said, strict=True)]
    right, found, there = (_counted(some, types) for some in (both, said, true))
    expected, guesses = (
        listed([_spelled(some, text) for some, text in zip(every, words, strict=True)]) for every in (true, said)
    )
    return [Judged(model.name, Found(usable(records), right, found, there, expected, guesses, types))]


def _renamed(tag: str, names: Any) -> str:
    name = names.get(tag[2:], tag[2:])
    return "O" if name in ("", "O") else f"{tag[:2]}{name}"


def _tags(words: Sequence[str], pieces: Iterable[Any]) -> list[str]:
    """The tag of each word from those of pieces, which say where in the text they are; O for a word without."""
    ends = list(accumulate(len(word) + 1 for word in words))
    tags: dict[int, str] = {}
    for piece in pieces:
        label = piece["entity"]
        tags.setdefault(bisect_right(ends, piece["end"] - 1), label if TAG.fullmatch(label) else "O")
    return [tags.get(number, "O") for number in range(len(words))]


def _counted(sentences: Sequence[set[Entity]], types: Sequence[str]) -> Numbers:
    counts = np.zeros((len(sentences), len(types)))
    for row, some in zip(counts, sentences, strict=True):
        for entity in some:
            row[types.index(entity.type)] += 1
    return counts


def _spelled(some: Iterable[Entity], words: Sequence[str]) -> str:
    ordered = sorted(some, key=lambda entity: entity.start)
    return "; ".join(f"{' '.join(words[entity.start : entity.end])} ({entity.type})" for entity in ordered) or "none"


def _item(row: Row) -> Item:
    words, _, tags = row.values
    if not isinstance(words, list) or not isinstance(tags, list) or len(words) != len(tags):
        raise BertcliError(f"{row.place}: tokens and tags must be two lists of one length.")
    for word, tag in zip(words, tags, strict=True):
        if not isinstance(word, str) or not isinstance(tag, str) or not TAG.fullmatch(tag):
            raise BertcliError(f"{row.place}: the tag {shown(tag)} of {shown(word)} is neither O nor like B-PER.")
    return Item(row.place, (" ".join(words),), (words, tags), row.group)


def read_columns(file: str, left_out: LeftOut) -> Iterator[Row]:
    """CoNLL: a word a line, its tag in the last column; an empty line ends a sentence."""
    words: list[str] = []
    tags: list[str] = []
    place, bad = "", ""
    for line in LineFile(file):
        cells = line.text.split()
        if not cells or cells[0] == DOCUMENT:
            yield from _sentence(place, words, tags, bad, left_out)
            words, tags, bad = [], [], ""
        elif len(cells) > 1 and TAG.fullmatch(cells[-1]):
            place = place if words else line.place
            words.append(cells[0])
            tags.append(cells[-1])
        elif not cells[0].startswith("#"):
            bad = bad or line.error or f"{line.place}: {shown(line.text)} has no word and a tag such as O or B-PER."
    yield from _sentence(place, words, tags, bad, left_out)


def _sentence(place: str, words: list[str], tags: list[str], bad: str, left_out: LeftOut) -> Iterator[Row]:
    if bad:
        left_out.add(bad)
    elif words:
        yield Row(place, (words, None, tags))


def looks_tagged(file: str) -> bool:
    """Whether the first lines of a file have a tag in their last column."""
    some = [line.text.split() for _, line in zip(range(20), LineFile(file), strict=False)]
    cells = [one for one in some if one and one[0] != DOCUMENT]
    return bool(cells) and all(len(one) > 1 and TAG.fullmatch(one[-1]) for one in cells)


TASKS = {"tag": Task(_item, judge)}
