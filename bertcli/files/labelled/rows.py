"""Labelled rows: a text with its label, the words of a sentence with their tags, and the count of rows left out."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.texts import Text

T = TypeVar("T")
Flags = NDArray[np.bool_]
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


class TaggedWords(NamedTuple):
    """The label of a text for `tag`: its words, and a tag for each."""

    words: list[str]
    tags: list[str]


class LabelledText(NamedTuple):
    """A text with its label (`text.label`), and the values of the fields that --by and --cluster name."""

    text: Text
    group: str | None = None
    cluster: str | None = None


def cluster_numbers(names: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Each row's cluster as a number from 0."""
    _, numbers = np.unique([*names], return_inverse=True)
    return np.asarray(numbers, np.intp)
