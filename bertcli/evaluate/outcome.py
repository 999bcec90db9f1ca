"""What a model did on labelled items: what figures are made of, and which items it did worst on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bertcli.evaluate.metrics import Figures, Numbers


class Item(NamedTuple):
    """One labelled item: where it stands in the data, its texts, what is true of it, the group it belongs to."""

    place: str
    texts: tuple[str, ...]
    truth: Any = None
    group: str | None = None


@dataclass(frozen=True, eq=False)
class Outcome:
    """Arrays with an item on their first axis; `usable`: whether the model could do the item at all."""

    unit: ClassVar[str] = "texts"
    main: ClassVar[str] = ""  # the figure that is said in a sentence
    usable: NDArray[np.bool_]

    def only(self, items: Any) -> Self:
        """The same of some items."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: x[items] for name, x in arrays.items() if isinstance(x, np.ndarray)})

    def figures(self, counts: Numbers) -> Figures:
        """The figures [draw] where items count so often [draw, item]."""
        raise NotImplementedError

    @property
    def losses(self) -> Numbers:
        """How badly the model did on each item; at most 0 where it did well."""
        raise NotImplementedError

    def said(self, item: int) -> dict[str, Any]:
        """What is true of an item, and what the model found: {expected, found}."""
        raise NotImplementedError

    @property
    def details(self) -> dict[str, Any]:
        """What a record has beside figures."""
        return {}


class Judged(NamedTuple):
    """The outcome of a model, or of one way to store its vectors, whose `details` are said beside its name."""

    name: str
    outcome: Outcome
    details: Mapping[str, Any] = {}


Judge = Callable[[Any, Sequence[Item]], list[Judged]]


def usable(records: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Which records are no errors."""
    return np.array(["error" not in record for record in records], bool)
