"""Outcome: a model's results on labelled texts, as an evaluator returns them; figures are functions of its arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.report.charts import Curve
from bertcli.statistics import metrics
from bertcli.statistics.intervals import FigureFacts
from bertcli.statistics.metrics import Figures, Numbers

Names = Sequence[str]
Arrays = Sequence[NDArray[Any]]


class Details(NamedTuple):
    """Additions to the figures, each for tasks that have it.

    labels: {label, precision, recall, f1, support} for each label. confusion: counts [true][found]. absent: labels of
    the model that are neither true nor found, and so have no figures.
    """

    labels: Sequence[Mapping[str, Any]] = ()
    confusion: Sequence[Sequence[int]] = ()
    curve: Curve | None = None
    absent: Sequence[str] = ()


class VectorStorage(NamedTuple):
    """A way to store vectors: the first `truncate_dim` numbers of each, as `dtype`, in `bytes` bytes a vector."""

    truncate_dim: int
    dtype: str
    bytes: int

    @property
    def title(self) -> str:
        return f"{self.truncate_dim} × {self.dtype}"


def no_details(columns: Names, *arrays: NDArray[Any]) -> Details:
    """The details of an evaluator without labels and curves: none."""
    return Details()


def as_they_are(*arrays: NDArray[Any]) -> Arrays:
    """The `exchangeable` of an outcome whose arrays mean the same for every model: they stay unchanged."""
    return arrays


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """A model's results on each of some texts.

    arrays: [text] or [text, column]; `columns` names the columns.
    figures_from(columns, counts, *arrays): the figures [draw], where each text counts `counts` [draw, text] times. The
        first figure is the one that the summary's sentence has.
    facts(columns, *arrays): what the figures' intervals need to know.
    details(columns, *arrays): labels, confusion matrix, curve.
    exchangeable(*arrays): arrays that mean the same for every model, for the permutation test; ranks in place of
        similarities, for one, since similarities of two models have different scales.
    usable [text]: False where the model gave an error. badness [text]: how badly it did; at most 0 where it did well.
    expected, found: the true answer and the model's, for people. storage: how its vectors are stored.
    orders: by a query's id its documents with their scores, best first.
    texts: the outcome's own texts, where they are not those of the rows. signature: the line by which its figures are
        cited. of_texts: a record of each text, for metrics that are wanted text by text.
    readable: of each text, records of what --redact would leave readable of its entities.
    """

    name: str
    figures_from: Callable[..., Figures]
    arrays: Arrays
    usable: NDArray[np.bool_]
    badness: Numbers
    expected: Sequence[str]
    found: Sequence[str]
    columns: Names = ()
    facts: Callable[..., FigureFacts] = lambda columns, *arrays: FigureFacts()
    details: Callable[..., Details] = no_details
    exchangeable: Callable[..., Arrays] = as_they_are
    storage: VectorStorage | None = None
    orders: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)
    texts: Sequence[str] = ()
    signature: str = ""
    of_texts: Sequence[Mapping[str, Any]] = ()
    readable: Sequence[Sequence[Mapping[str, Any]]] = ()


class Results:
    """An outcome restricted to some of its texts; figures and comparisons are computed from it."""

    def __init__(self, outcome: Outcome, texts: NDArray[np.intp]) -> None:
        self.outcome = outcome
        self.name = outcome.name
        self.columns = outcome.columns
        self.arrays = [array[texts] for array in outcome.arrays]

    def figures(self, counts: Numbers) -> Figures:
        """The figures [draw], where each text counts `counts` [draw, text] times."""
        return self.outcome.figures_from(self.columns, counts, *self.arrays)

    @cached_property
    def facts(self) -> FigureFacts:
        """Facts that the figures' intervals need."""
        return self.outcome.facts(self.columns, *self.arrays)

    @cached_property
    def details(self) -> Details:
        """Labels, confusion matrix, curve."""
        return self.outcome.details(self.columns, *self.arrays)

    def beside(self, other: "Results") -> Callable[[Numbers], Figures] | None:
        """Return a function from choices [draw, text] to figures: 1 takes the other model's result, 0 this one's.

        None if the two outcomes compute different figures. Used by the permutation test.
        """
        if self.outcome.figures_from is not other.outcome.figures_from:
            return None
        columns = [*dict.fromkeys([*self.columns, *other.columns])]
        ours, theirs = self._exchangeable(columns), other._exchangeable(columns)
        # The other model's texts follow one's own.
        both = [np.concatenate(pair) for pair in zip(ours, theirs, strict=False)]

        def figures(taken: Numbers) -> Figures:
            counts = np.concatenate([1 - taken, taken], axis=1)
            return self.outcome.figures_from(columns, counts, *both)

        return figures

    def _exchangeable(self, columns: Names) -> list[NDArray[Any]]:
        """The arrays that mean the same for every model, with these columns."""
        return [_with_columns(array, self.columns, columns) for array in self.outcome.exchangeable(*self.arrays)]


def _with_columns(array: NDArray[Any], has: Names, names: Names) -> NDArray[Any]:
    """Reorder an array [text, column] from columns `has` to `names`, with zeros for new ones; others stay unchanged."""
    if array.ndim != 2 or [*has] == [*names]:
        return array
    numbers = {name: column for column, name in enumerate(has)}
    nothing = np.zeros(len(array), array.dtype)
    columns = [array[:, numbers[name]] if name in numbers else nothing for name in names]
    return np.stack(columns, axis=1)


def mean_figures(columns: Names, counts: Numbers, values: Numbers) -> Figures:
    """The `figures_from` of figures that are means over texts: values [text, figure], NaN where a text has none."""
    return metrics.means(columns, counts, *values.T)


def mean_facts(columns: Names, values: Numbers) -> FigureFacts:
    """The `facts` of figures that are means over texts."""
    return FigureFacts(item_values=dict(zip(columns, values.T, strict=True)))


def means_of(values: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The arguments of an Outcome whose figures are means over texts, from each figure's values [text]."""
    columns = [np.asarray(of_figure, np.float64) for of_figure in values.values()]
    return {
        "figures_from": mean_figures,
        "arrays": [np.stack(columns, axis=1)],
        "columns": [*values],
        "facts": mean_facts,
    }


def usable(records: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """The `usable` of an outcome [text]: True for each record without an error."""
    return np.array(["error" not in record for record in records], bool)
