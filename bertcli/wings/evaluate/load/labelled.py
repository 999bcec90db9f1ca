"""Labelled: the data as it was read, rows with their labels, and the count of rows that could not be used."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bertcli.files.labelled.rows import WAY_ON, LeftOut
from bertcli.files.texts import Text, Texts
from bertcli.report.progress import counted

Scores = Mapping[str, float]  # by ids of documents


class Relevance(NamedTuple):
    """A query's id, the gain of each judged document, the documents found with their scores, and texts."""

    id: str
    gains: Scores
    found: Scores
    documents: Mapping[str, str] = {}


class Rated(NamedTuple):
    """The candidates of a row, one of each system, and the references that each is compared with."""

    candidates: Sequence[str]
    references: Sequence[str]


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
