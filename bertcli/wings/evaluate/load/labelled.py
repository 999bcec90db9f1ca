"""Labelled: the data as it was read, rows with their labels, and the count of rows that could not be used."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.texts import Text, Texts
from bertcli.report.progress import counted

T = TypeVar("T")
Flags = NDArray[np.bool_]
Scores = Mapping[str, float]  # by ids of documents
WAY_ON = " (--keep-going leaves such rows out.)"  # ends the message on a text that a task cannot use


class LeftOut:
    """The count of rows that cannot be used; without --keep-going the first one raises."""

    def __init__(self, keep_going: bool) -> None:
        self._keep_going = keep_going
        self.count = 0
        self.first = ""

    def add(self, why: str) -> None:
        """Count a row that is wrong. Errors: BertcliError, if rows are not to be left out."""
        self._refuse(why)
        self.skip(why)

    def skip(self, why: str) -> None:
        """Count a row that is left out although it has no mistake."""
        self.count += 1
        self.first = self.first or why.rstrip(".")

    def read_or_skip(self, rows: Sequence[Text], read: Callable[[Text], T], instead: T) -> tuple[list[T], Flags]:
        """Read each row for one model: the values, `instead` where there is none, and which rows have one.

        `read` raises ValueError for a row that this model cannot use. Errors: BertcliError as `add`; that the row is
        left out is counted with the model's other ones.
        """
        found = []
        usable = np.ones(len(rows), bool)
        for i, row in enumerate(rows):
            try:
                found.append(read(row))
            except ValueError as error:
                why = f"{row.location}: {error}"
                self._refuse(why)
                self.first = self.first or why.rstrip(".")
                found.append(instead)
                usable[i] = False
        return found, usable

    def _refuse(self, why: str) -> None:
        if not self._keep_going:
            raise BertcliError(f"{why.rstrip('.')}: mend it, or leave such rows out (--keep-going).")


class Relevance(NamedTuple):
    """A query's id, the gain of each judged document, the documents found with their scores, and texts."""

    id: str
    gains: Scores
    found: Scores
    documents: Mapping[str, str] = {}


class TaggedWords(NamedTuple):
    """The label of a text for `tag`: its words, and a tag for each."""

    words: list[str]
    tags: list[str]


class Rated(NamedTuple):
    """The candidates of a row, one of each system, and the references that each is compared with."""

    candidates: Sequence[str]
    references: Sequence[str]


class LabelledText(NamedTuple):
    """A text with its label (`text.label`), and the values of the fields that --by and --cluster name."""

    text: Text
    group: str | None = None
    cluster: str | None = None


class Labelled(NamedTuple):
    """Labelled data with its task, and the reason for this task in a few words. corpus: documents to search.

    groups and clusters: what each row belongs to; empty if they were not asked for. note: what should be said of it.
    """

    file: str
    task: str
    why: str
    rows: list[Text]
    left_out: LeftOut
    corpus: Any = None
    groups: Sequence[str] = ()
    clusters: Sequence[str] = ()
    note: str = ""

    @property
    def texts(self) -> Texts:
        """The rows as a task reads them, counted by a progress bar."""
        return texts_of(self.rows)


def texts_of(rows: Sequence[Text]) -> Texts:
    """Texts as a task reads them, counted by a progress bar."""
    return Texts(counted(rows, "evaluate", "texts", len(rows)), at_hand=True, count=len(rows), way_on=WAY_ON)
