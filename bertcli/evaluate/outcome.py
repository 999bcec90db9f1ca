"""A model's results on labelled texts: arrays that figures are made of, and which texts it did worst on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.evaluate import metrics
from bertcli.evaluate.bootstrap import FigureFacts
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.lean import lean_dataclass

Names = Sequence[str]
Arrays = Sequence[NDArray[Any]]


class Curve(NamedTuple):
    """Points in a square from 0 to 1, in the order in which they are joined; `ideal`: its diagonal is.

    names: what stands below each point; ranges: from where to where its value may lie; beside: more points, dashed;
    notes: what is said of each point.
    """

    title: str
    across: str
    up: str
    points: Iterable[tuple[float, float]]
    ideal: bool = False
    names: Sequence[str] = ()
    ranges: Sequence[tuple[float, float]] = ()
    beside: Sequence[Iterable[tuple[float, float]]] = ()
    notes: Sequence[str] = ()


class Details(NamedTuple):
    """Additions to the figures: those of each label {label, precision, recall, f1, support}, and [true][found]."""

    labels: Sequence[Mapping[str, Any]] = ()
    confusion: Sequence[Sequence[int]] = ()
    curve: Curve | None = None


class VectorStorage(NamedTuple):
    """A way to store vectors: the first numbers of each, their type, the bytes that a vector takes."""

    truncate_dim: int
    dtype: str
    bytes: int

    @property
    def title(self) -> str:
        return f"{self.truncate_dim} × {self.dtype}"


def no_details(columns: Names, *arrays: NDArray[Any]) -> Details:
    """No details: of an evaluator without labels and curves."""
    return Details()


def as_they_are(*arrays: NDArray[Any]) -> Arrays:
    """Arrays of two models that can be exchanged without a change."""
    return arrays


@lean_dataclass
class Outcome:
    """A model's results on each of some texts.

    arrays: with a text on their first axis; the second of a two-dimensional one is named by `columns`. Of these
    `figures_from(columns, counts, *arrays)` makes the figures [draw] where texts count so often [draw, text], the first
    of which is the one that a sentence says; `account(columns, *arrays)` says what their intervals need, and
    `details(columns, *arrays)` more of them. `exchangeable(*arrays)` are arrays that mean the same for every model,
    such as ranks where similarities have another scale.
    usable: whether the model could do a text at all. badness: how badly it did, at most 0 where it did well. expected,
    found: what is true of each text and what the model found, for people. storage: how its vectors are stored. orders:
    the documents of each query, by its id, with their scores, best first.
    """

    name: str
    figures_from: Callable[..., Figures]
    arrays: Arrays
    usable: NDArray[np.bool_]
    badness: Numbers
    expected: Sequence[str]
    found: Sequence[str]
    columns: Names = ()
    account: Callable[..., FigureFacts] = lambda columns, *arrays: FigureFacts()
    details: Callable[..., Details] = no_details
    exchangeable: Callable[..., Arrays] = as_they_are
    storage: VectorStorage | None = None
    orders: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)


class Results:
    """An outcome on some of its texts: what figures and comparisons are made of."""

    def __init__(self, outcome: Outcome, texts: NDArray[np.intp]) -> None:
        self.outcome = outcome
        self.name = outcome.name
        self.columns = outcome.columns
        self.arrays = [array[texts] for array in outcome.arrays]

    def figures(self, counts: Numbers) -> Figures:
        """The figures [draw] where these texts count so often [draw, text]."""
        return self.outcome.figures_from(self.columns, counts, *self.arrays)

    @cached_property
    def account(self) -> FigureFacts:
        """Facts that the figures' intervals need."""
        return self.outcome.account(self.columns, *self.arrays)

    @property
    def details(self) -> Details:
        """Labels, confusion matrix, curve."""
        return self.outcome.details(self.columns, *self.arrays)

    def beside(self, other: "Results") -> Callable[[Numbers], Figures] | None:
        """Make a function of counts [draw, text], of how often the other model's results are taken, that gives figures.

        Where a text counts 0 its own results are taken. None if the two have no figure in common.
        """
        columns = [*dict.fromkeys([*self.columns, *other.columns])]
        own, others = (
            [_with_columns(array, some.columns, columns) for array in some.outcome.exchangeable(*some.arrays)]
            for some in (self, other)
        )
        if self.outcome.figures_from is not other.outcome.figures_from:
            return None
        both = [np.concatenate(pair) for pair in zip(own, others, strict=False)]

        def figures(taken: Numbers) -> Figures:
            return self.outcome.figures_from(columns, np.concatenate([1 - taken, taken], axis=1), *both)

        return figures


def _with_columns(array: NDArray[Any], has: Names, names: Names) -> NDArray[Any]:
    """A two-dimensional array with these columns, zeros where it has none of the name; any other array as it is."""
    if array.ndim != 2 or [*has] == [*names]:
        return array
    places = {name: i for i, name in enumerate(has)}
    nothing = np.zeros(len(array), array.dtype)
    return np.stack([array[:, places[name]] if name in places else nothing for name in names], axis=1)


def mean_figures(columns: Names, counts: Numbers, values: Numbers) -> Figures:
    """Figures that are means over texts, from the values of each [text, figure], NaN where a text has none."""
    return metrics.means(columns, counts, *values.T)


def mean_account(columns: Names, values: Numbers) -> FigureFacts:
    """Facts that the intervals of such figures need."""
    return FigureFacts(item_values=dict(zip(columns, values.T, strict=True)))


def means_of(values: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The fields of an Outcome whose figures are means over texts, from the values of each [text]."""
    table = np.stack([np.asarray(column, np.float64) for column in values.values()], axis=1)
    return {"figures_from": mean_figures, "arrays": [table], "columns": [*values], "account": mean_account}


def usable(records: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """True for each record that is no error."""
    return np.array(["error" not in record for record in records], bool)
