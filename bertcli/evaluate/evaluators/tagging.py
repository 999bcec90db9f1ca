"""tag: entities found in words, exactly as long and of the same type as they should be, as seqeval's strict mode."""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import metrics
from bertcli.evaluate.load.tables import TAG, Labelled, LeftOut
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Details, Outcome, usable
from bertcli.evaluate.words import WordPlaces
from bertcli.files.lines import Line, LineFile
from bertcli.files.texts import Text
from bertcli.model import Model

logger = logging.getLogger("bertcli")
Tags = Sequence[str]
DOCUMENT, END = "-DOCSTART-", Line("", "", "")
CLOSED = ("BIOES", "BILOU")  # schemes in which a tag says where an entity ends
SAME = str.maketrans("LU", "ES")  # BILOU's prefixes for those of BIOES
COLUMN_ENDS = re.compile(r"[ \t]+")
TYPES = 0xE000  # the first of the characters that stand for types
SCHEMES = {  # an entity, in tags that are a prefix and a character for their type; seqeval's strict mode, Nakayama 2018
    # B only parts neighbors of one type, and an entity of one B is none where another type's B follows
    "IOB1": r"I(.)(?:I\1)*|(?<=[IB](.))B\2(?:(?:I\2)+|(?!B(?!\2)))",
    "IOB2": r"B(.)(?:I\1)*",
    "BIOES": r"S.|B(.)(?:I\1)*E\1",
}
SCHEMES["BILOU"] = SCHEMES["BIOES"]  # L and U are written E and S before entities are looked for


class Entity(NamedTuple):
    """A type, the first word and the one after the last."""

    type: str
    start: int
    end: int


def entities(tags: Tags, scheme: str) -> set[Entity]:
    """The entities of a sentence, from the tag of each word."""
    types = sorted({tag[2:] for tag in tags})
    written = "".join(tag[0].translate(SAME) + chr(TYPES + types.index(tag[2:])) for tag in tags)
    found = re.finditer(SCHEMES[scheme], written)
    return {Entity(types[ord(match[0][1]) - TYPES], match.start() // 2, match.end() // 2) for match in found}


def told_scheme(sentences: Iterable[Tags]) -> str:
    """How tags are written.

    BILOU has L or U, and BIOES has E or S. Without these it is IOB1 if entities begin, but none with B (which in IOB1
    only parts neighbors of one type), else IOB2.
    """
    every = [(before, tag) for tags in sentences for before, tag in zip(["O", *tags], tags, strict=False) if tag != "O"]
    prefixes = {tag[0] for _, tag in every}
    if prefixes & {"L", "U"}:
        return "BILOU"
    if prefixes & {"E", "S"}:
        return "BIOES"
    return "IOB1" if {tag[0] for before, tag in every if before[2:] != tag[2:]} == {"I"} else "IOB2"


def judge(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """The tag of a word is that of its first piece; a text is its words with a space between."""
    words = [row.label[0] for row in data.rows]
    read = partial(_renamed, labels=model.config.labels, names=wanted.labels or {})
    gold, fits = data.left_out.what_fits(data.rows, read, list[str]())
    records = model.tag(data.texts, aggregation="none", ignore=(), **wanted.windowed)
    guessed = [_tags(some, record.get("entities", ())) for some, record in zip(words, records, strict=True)]
    scheme, own = wanted.scheme or told_scheme(gold), told_scheme([[*filter(TAG.fullmatch, model.config.labels)]])
    own = own if own in CLOSED else told_scheme(guessed)
    note = "tags are read as %s in the data, as %s in what %s says (--scheme: the data's)."
    logger.info(note, scheme, own, model.name)
    true, said = [entities(tags, scheme) for tags in gold], [entities(tags, own) for tags in guessed]
    both = [a & b for a, b in zip(true, said, strict=True)]
    types = sorted({entity.type for some in (*true, *said) for entity in some})
    arrays = right, found, there = [counted(some, types) for some in (both, said, true)]
    losses = (found + there - 2 * right).sum(axis=1)
    expected, spelled = ([*map(_spelled, every, words)] for every in (true, said))
    make, details = partial(figures, types), partial(_of_types, types)
    return [Outcome(model.name, make, arrays, usable(records) & fits, losses, expected, spelled, details)]


def figures(types: Sequence[str], counts: Numbers, *arrays: Numbers) -> Figures:
    """From how many entities of each type are right, found, there: micro averages, the mean over types, F1 by type."""
    sums = metrics.Sums(*(counts @ some for some in arrays))
    precision, recall, f1 = sums.together.scores
    averages = {"f1": f1, "precision": precision, "recall": recall, "macro_f1": sums.averages()["macro_f1"]}
    return averages | {f"f1:{kind}": figure for kind, figure in zip(types, sums.scores[2].T, strict=True)}


def _of_types(types: Sequence[str], *arrays: Numbers) -> Details:
    return Details(metrics.Sums(*(some.sum(axis=0, keepdims=True) for some in arrays)).by_label(types))


def counted(sentences: Iterable[Iterable[Entity]], types: Sequence[str]) -> Numbers:
    """How many entities of each type there are [sentence, type]."""
    numbers = (Counter(entity.type for entity in some) for some in sentences)
    return np.array([[count[kind] for kind in types] for count in numbers], float)


def _renamed(row: Text, labels: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The tags of a row with types as the model calls them. Errors: ValueError for a type that it lacks."""
    known, tags = {label.partition("-")[2] for label in labels} - {""}, list[str]()
    for tag in row.label[1]:
        kind = names.get(tag[2:], tag[2:])
        if kind not in ("", "O", *known):
            raise ValueError(
                f"the type {shown(kind)} is not one of this model's: {', '.join(sorted(known))} "
                "(--labels A=B says which one is meant, A=O that it is none)."
            )
        tags.append("O" if kind in ("", "O") else tag[:2] + kind)
    return tags


def _tags(words: Sequence[str], pieces: Iterable[Any]) -> Tags:
    """The tag of each word, which is that of its first piece; O for a word without one."""
    places = WordPlaces(words)
    tags: dict[int, str] = {}
    for piece in pieces:
        number = places.number(piece["start"], piece["end"])
        label = piece["entity"]
        tags.setdefault(number, label if TAG.fullmatch(label) else "O")
    return [tags.get(number, "O") for number in range(len(words))]


def _spelled(some: Iterable[Entity], words: Sequence[str]) -> str:
    ordered = sorted(some, key=lambda entity: entity.start)
    return "; ".join(f"{' '.join(words[entity.start : entity.end])} ({entity.type})" for entity in ordered) or "none"


# ------------------------------------------------------------------------------------------------------------- reading


def read_columns(file: str, left_out: LeftOut, wanted: Evaluate, any_tag: bool) -> Iterator[Text]:
    """CoNLL: a word a line, its tag in the last column; an empty line ends a sentence.

    Other columns are named by their numbers, from 1. In CoNLL-U words are in the second and tags in the fourth, and a
    line that does not begin with a number is a comment, or no word of its own.
    """
    of_conllu = file.lower().endswith((".conllu", ".conllu.gz"))
    word = _column(file, "column", wanted, 2 if of_conllu else 1) - 1
    tag = _column(file, "label_column", wanted, 4 if of_conllu else 0) - 1
    known = re.compile(r"\S+") if any_tag else TAG
    words: list[str] = []
    tags: list[str] = []
    place = bad = ""
    for line in chain(LineFile(file), [END]):
        cells = cells_of(line.text)
        if not cells or cells[0] == DOCUMENT:
            if bad:
                left_out.add(bad)
            elif words:
                yield Text(" ".join(words), None, place, label=(words, tags))
            words, tags, bad = [], [], ""
        elif (of_conllu and not cells[0].isdecimal()) or (any_tag and cells[0] == "#" and not words):
            continue
        elif len(cells) > max(1, word, tag) and known.fullmatch(cells[tag]):
            place = place if words else line.place
            words.append(cells[word])
            tags.append(cells[tag])
        elif not cells[0].startswith("#"):
            bad = bad or line.error or f"{line.place}: {shown(line.text)} has no word and a tag such as O or B-PER."


def cells_of(line: str) -> list[str]:
    """The columns of a line: spaces and tabs part them. A no-break space is part of a word, as in "10 000"."""
    return [cell for cell in COLUMN_ENDS.split(line) if cell]


def _column(file: str, name: str, wanted: Evaluate, usual: int) -> int:
    """The number of a column that is asked for, from 1, or the usual one."""
    given = getattr(wanted, name)
    if given is None:
        return usual
    if not given.isdecimal() or given == "0":
        option = name.replace("_", "-")
        raise BertcliError(f"{file} has columns without names: give the number of one, from 1 (--{option}).")
    return int(given)


def looks_tagged(file: str) -> bool:
    """Whether the first lines of a file have a tag in their last column."""
    some = [cells_of(line.text) for line in islice(LineFile(file), 20)]
    cells = [one for one in some if one and one[0] != DOCUMENT]
    return bool(cells) and all(len(one) > 1 and TAG.fullmatch(one[-1]) for one in cells)
