"""Labelled texts: which task they are for, told from their fields, and each row as a Text, with what is true of it."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, shown
from bertcli.evaluate.options import Evaluate
from bertcli.files.inputs import rows_in
from bertcli.files.rows import Wanted, unusable
from bertcli.files.texts import Text, Texts, is_unicode
from bertcli.report.progress import counted

T = TypeVar("T")
Flags = NDArray[np.bool_]
Scores = Mapping[str, float]  # by ids of documents


class LeftOut:
    """Rows that cannot be used: an error at the first, or (keep_going) counted."""

    def __init__(self, keep_going: bool) -> None:
        self._keep_going = keep_going
        self.count = 0
        self.first = ""

    def add(self, why: str) -> None:
        """Errors: BertcliError, if rows are not to be left out."""
        self._refuse(why)
        self.skip(why)

    def skip(self, why: str) -> None:
        """Count a row that says nothing, though nothing is wrong with it."""
        self.count += 1
        self.first = self.first or why.rstrip(".")

    def what_fits(self, rows: Sequence[Text], read: Callable[[Text], T], instead: T) -> tuple[list[T], Flags]:
        """What `read` makes of each row for one model, and which it can use: `instead` of a row that it cannot.

        Errors: BertcliError as `add`; that the row is left out is counted with the model's other ones.
        """
        found, fits = [], np.ones(len(rows), bool)
        for i, row in enumerate(rows):
            try:
                found.append(read(row))
            except ValueError as error:
                self._refuse(why := f"{row.place}: {error}")
                self.first = self.first or why.rstrip(".")
                found.append(instead)
                fits[i] = False
        return found, fits

    def _refuse(self, why: str) -> None:
        if not self._keep_going:
            raise BertcliError(f"{why.rstrip('.')}: mend it, or leave such rows out (--keep-going).")


class Labelled(NamedTuple):
    """Data with its task, and in a few words why it is this one; `corpus`: what queries look in.

    A row's `label` is what is true of it, its `id` the group that it belongs to.
    """

    file: str
    task: str
    why: str
    rows: list[Text]
    left_out: LeftOut
    corpus: Any = None

    @property
    def texts(self) -> Texts:
        """The rows as a task reads them, counted by a progress bar."""
        return texts_of(self.rows)


def texts_of(rows: Sequence[Text]) -> Texts:
    """Texts as a task reads them, counted by a progress bar."""
    return Texts(counted(rows, "evaluate", "texts", len(rows)), at_hand=True, count=len(rows))


# ------------------------------------------------------------------------------- what a field may hold, else ValueError


def text(value: Any) -> str:
    """A text."""
    if not isinstance(value, str) or not is_unicode(value):
        raise ValueError(f"{shown(value)} is not a text.")
    return value


def texts(value: Any) -> list[str]:
    """One text or a list of them; also as SQuAD's answers have them, below "text"."""
    found = value.get("text") if isinstance(value, dict) else value
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list):
        raise ValueError(f"{shown(value)} is neither a text nor a list of texts.")
    return [text(one) for one in found]


def tags(value: Any) -> list[str]:
    """A list of tags."""
    for tag in (found := texts(value)):
        if not TAG.fullmatch(tag):
            raise ValueError(f"the tag {shown(tag)} is neither O nor like B-PER.")
    return found


def names(value: Any) -> list[str]:
    """A list of names, which may be numbers."""
    return texts([str(one) if isinstance(one, int) else one for one in value] if isinstance(value, list) else value)


def words(value: Any) -> list[str]:
    """A word, or a list of words that are as good."""
    if not value:
        raise ValueError(f"{shown(value)} is neither a word nor a list of words.")
    return texts(value)


def number(value: Any) -> float:
    """A finite number."""
    found = _number(value)
    if not math.isfinite(found):
        raise ValueError(f"the score {shown(value)} is not a number.")
    return found


def numbers(value: Any) -> list[float]:
    """A list of numbers."""
    return [number(one) for one in (value if isinstance(value, list) else [value])]


def truth(value: Any) -> float:
    """0 or 1."""
    if (found := number(value)) not in (0, 1):
        raise ValueError(f"the label {shown(value)} is neither 0 nor 1.")
    return found


def label(value: Any) -> str | list[str]:
    """The name or number of a label, or a list of such."""
    if isinstance(value, list):
        return [name if isinstance(name, str) else json.dumps(name) for name in value]
    return value if isinstance(value, str) else json.dumps(value)


# --------------------------------------------------------------------------------------------------------- the tasks


class Part(NamedTuple):
    """A field of a task's rows: the names that it may have, and what makes a value of what stands there."""

    names: tuple[str, ...]
    read: Callable[[Any], Any]
    optional: bool = False


class Relevance(NamedTuple):
    """What is known of a query: its id, the gain of each judged document, what was found with its scores, and texts."""

    id: str
    gains: Scores
    found: Scores
    documents: Mapping[str, str] = {}


class Shape(NamedTuple):
    """What a task's rows are called, and their fields: a text, a second one, what is true of them."""

    unit: str
    parts: tuple[Part, Part, Part]


TEXT = Part(("text", "sentence", "sentence1", "text1", "premise", "question1", "question", "review"), text)
SECOND = Part(("text_pair", "sentence2", "text2", "hypothesis", "question2", "answer"), text)
LABEL = ("label", "labels", "score", "similarity_score", "similarity", "class")
SCORES = ("score", "similarity_score", "similarity")
NOTHING, UNKNOWN = Part((), text, optional=True), Part((), text)
SHAPES = {
    "triplets": Shape(
        "triplets",
        (
            Part(("anchor", "query", "text"), text),
            Part(("positive", "near"), text),
            Part(("negative", "far"), text),
        ),
    ),
    "rank": Shape(
        "queries",
        (Part(("query",), text), Part(("documents", "passages"), texts), Part(("labels", "relevance"), numbers)),
    ),
    "tag": Shape("sentences", (Part(("tokens", "words"), texts), NOTHING, Part(("tags", "ner_tags", "labels"), tags))),
    "words": Shape("words", (Part(("tokens", "words"), texts), NOTHING, Part(("tags", "ner_tags", "labels"), names))),
    "answer": Shape(
        "questions", (Part(("question",), text), Part(("context",), text), Part(("answers", "answer"), texts))
    ),
    "sts": Shape("pairs", (TEXT, SECOND, Part(LABEL, number))),
    "pairs": Shape("pairs", (TEXT, SECOND, Part(LABEL, truth))),
    "fill-mask": Shape("texts", (TEXT, NOTHING, Part(("word", "accepted", "target", *LABEL), words))),
    "classification": Shape("texts", (TEXT, SECOND._replace(optional=True), Part(LABEL, label))),
    "score": Shape("texts", (TEXT, NOTHING, NOTHING)),
    "retrieval": Shape("queries", (UNKNOWN, NOTHING, NOTHING)),
}
OF_ANY_NAMES = ("sts", "pairs", "classification", "score")  # tasks of fields that --column and the like may name
TAG = re.compile(r"O|[BIESLU]-\S+")
VECTORS, FOUND = ("sts", "pairs", "triplets", "retrieval"), ("retrieval", "rank")
OF_TASKS = {  # the options that only some tasks have
    **dict.fromkeys(("truncate_dim", "dtype"), VECTORS),
    "run": FOUND,
    "vectors": ("retrieval",),
    "k": (*FOUND, "fill-mask"),
    "scheme": ("tag",),
    "labels": ("classification", "tag"),
}


def table(file: str, wanted: Evaluate, any_tag: bool) -> tuple[str, str, list[Text]]:
    """The task of a table, why it is this one, and its rows. Errors: BertcliError."""
    rows = [*rows_in([file], Wanted(whole=True), keep_going=True)]
    good = [row.label for row in rows if not row.error]
    known = good[0] if good else {}
    task, names = _told(file, [*known], wanted) if good else ("score", [None] * 3)
    if good and wanted.by not in (None, *known):
        raise _unknown(file, wanted.by, "by", known)
    if wanted.task is None and task == "fill-mask":
        task = task if any("mask" in str(values.get(names[0])).lower() for values in good) else "classification"
    if wanted.task is None and task == "sts":
        task = _of_values(str(names[2]), [values.get(names[2]) for values in good])
    kind = "words" if any_tag else task
    why = f"its fields are {', '.join(shown(name) for name in names if name is not None)}"
    return task, why, [row if row.error else read_row(row, kind, names, wanted.by) for row in rows]


def _unknown(file: str, name: str | None, option: str, known: Iterable[str]) -> BertcliError:
    return BertcliError(f"{file} has no field {shown(name)} (--{option}); choose from {', '.join(map(shown, known))}.")


def read_row(row: Text, task: str, names: Sequence[str | None], by: str | None) -> Text:
    """A row from the fields of these names, and the group's; a Text with an error where they have no such values."""
    place = str(row.place)
    missing = next((name for name in (*names, by) if name is not None and row.label.get(name) is None), None)
    if missing is not None:
        return unusable(place, f"there is no {shown(missing)}.")
    named = zip(SHAPES[task].parts, names, strict=True)
    try:
        values: list[Any] = [None if name is None else part.read(row.label[name]) for part, name in named]
        text, pair, label = values
        if task in ("tag", "words", "rank") and len(pair or text) != len(label):
            raise ValueError(f"{names[1] or names[0]} and {names[2]} must be two lists of one length.")
    except ValueError as error:
        return unusable(place, str(error))
    if task in ("tag", "words"):
        text, label = " ".join(text), (text, label)
    if task == "rank":
        ids = [f"{i:06d}" for i in range(len(pair))]
        gains, documents = (dict(zip(ids, some, strict=True)) for some in (label, pair))
        label, pair = Relevance(place, gains, {id: -int(id) for id in ids}, documents), None
    return Text(text, pair, place, None if by is None else row.label[by], label)


def _told(file: str, names: Sequence[str], wanted: Evaluate) -> tuple[str, list[str | None]]:
    """The task, and the fields of its rows: the first whose fields are all there, those asked for in their places."""
    asked = (wanted.column, wanted.pair_column, wanted.label_column)
    for option, name in zip(("column", "pair-column", "label-column"), asked, strict=True):
        if name not in (None, *names):
            raise _unknown(file, name, option, names)
    for task in [wanted.task] if wanted.task else SHAPES:
        parts = SHAPES[task].parts
        if wanted.task is None and task not in OF_ANY_NAMES and not {*asked} <= {None}.union(*(p.names for p in parts)):
            continue
        choices = [part.names if given is None else [given] for part, given in zip(parts, asked, strict=True)]
        chosen = [next((name for name in some if name in names), None) for some in choices]
        if all(name or (part.optional and not given) for name, part, given in zip(chosen, parts, asked, strict=True)):
            return task, chosen
    what = f"not have the fields of {wanted.task}" if wanted.task else "not say by its fields what the task is"
    raise BertcliError(
        f"{file} does {what}; they are {', '.join(map(shown, names[:20]))}: name them with --column, "
        f"--pair-column and --label-column{'' if wanted.task else ', and the task with --task'}."
    )


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _of_values(name: str, values: Sequence[Any]) -> str:
    """The task of pairs of texts, by the name and the values of their label."""
    found = [*filter(math.isfinite, map(_number, values))]
    if 2 * len(found) <= len(values):  # some may be mistakes
        return "classification"
    if {*found} <= {0.0, 1.0}:
        return "pairs"
    whole = all(value.is_integer() for value in found)
    return "classification" if whole and name not in SCORES else "sts"
