"""What a model did on labelled items: what figures are made of, and which items it did worst on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bertcli.evaluate.data import Item, Row
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.files.texts import Text, Texts
from bertcli.lean import lean_dataclass
from bertcli.report.progress import counted

if TYPE_CHECKING:
    from bertcli.evaluate.data import Labelled
    from bertcli.model import Model


class Curve(NamedTuple):
    """Points in a square from 0 to 1, in the order in which they are joined; `ideal`: its diagonal is."""

    title: str
    across: str
    up: str
    points: list[tuple[float, float]]
    ideal: bool = False


@lean_dataclass
class Outcome:
    """Arrays with an item on their first axis; `usable`: whether the model could do the item at all."""

    unit: ClassVar[str] = "texts"
    usable: NDArray[np.bool_]

    def only(self, items: Any) -> Self:
        """The same of some items."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: x[items] for name, x in arrays.items() if isinstance(x, np.ndarray)})

    def figures(self, counts: Numbers) -> Figures:
        """The figures [draw] where items count so often [draw, item]; the first is the one that a sentence says."""
        raise NotImplementedError

    @property
    def losses(self) -> Numbers:
        """How badly the model did on each item; at most 0 where it did well."""
        raise NotImplementedError

    def said(self, item: int) -> dict[str, Any]:
        """What is true of an item, and what the model found: {expected, found}."""
        raise NotImplementedError

    @property
    def curve(self) -> Curve | None:
        """What a page draws of it."""
        return None

    @property
    def details(self) -> dict[str, Any]:
        """What a record has beside figures."""
        return {}


class Judged(NamedTuple):
    """The outcome of a model, or of one way to store its vectors, whose `details` are said beside its name."""

    name: str
    outcome: Outcome
    details: Mapping[str, Any] = {}


class Task(NamedTuple):
    """`item` reads a row of the data, `judge` says what a model did on all items, `beside` what was done without one.

    `item` raises BertcliError for a row that cannot be used.
    """

    item: Callable[[Row], Item]
    judge: "Callable[[Model, Labelled, Evaluate], list[Judged]]"
    beside: "Callable[[Labelled, Evaluate], list[Judged]]" = lambda labelled, wanted: []


def usable(records: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Which records are no errors."""
    return np.array(["error" not in record for record in records], bool)


def listed(values: Sequence[Any]) -> NDArray[np.object_]:
    """Values that are no numbers, as an array."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def texts_of(texts: Sequence[tuple[str, str | None, str]]) -> Any:
    """Texts, second texts and places as a task reads them, counted by a progress bar."""
    rows = [Text(*text) for text in texts]
    return Texts(counted(rows, "evaluate", "texts", len(rows)), at_hand=True, count=len(rows))
