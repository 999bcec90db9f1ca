"""What a model did on labelled texts: arrays that figures are made of, and which texts it did worst on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.evaluate import metrics
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.lean import lean_dataclass


class Curve(NamedTuple):
    """Points in a square from 0 to 1, in the order in which they are joined; `ideal`: its diagonal is.

    names: what stands below each point; ranges: from where to where its value may lie; beside: more points, dashed.
    """

    title: str
    across: str
    up: str
    points: Iterable[tuple[float, float]]
    ideal: bool = False
    names: Sequence[str] = ()
    ranges: Sequence[tuple[float, float]] = ()
    beside: Sequence[Iterable[tuple[float, float]]] = ()


class Details(NamedTuple):
    """What is said beside figures: those of each label {label, precision, recall, f1, support}, and [true][found]."""

    labels: Sequence[Mapping[str, Any]] = ()
    confusion: Sequence[Sequence[int]] = ()
    curve: Curve | None = None


class Way(NamedTuple):
    """How vectors are stored: the first numbers of each, their type, what a vector takes."""

    truncate_dim: int
    dtype: str
    bytes: int

    @property
    def title(self) -> str:
        return f"{self.truncate_dim} × {self.dtype}"


@lean_dataclass
class Outcome:
    """What a model did on each of some texts.

    `make(counts, *arrays)` gives figures [draw] where texts count so often [draw, text]; the first is the one that a
    sentence says. arrays: with a text on their first axis; `details(*arrays)` says more of them.
    usable: whether the model could do a text at all. losses: how badly it did, at most 0 where it did well. expected,
    found: what is true of each text and what the model found, for people. way: how its vectors are stored. orders: the
    documents of each query, by its id, with their scores, best first.
    """

    name: str
    make: Callable[..., Figures]
    arrays: Sequence[NDArray[Any]]
    usable: NDArray[np.bool_]
    losses: Numbers
    expected: Sequence[str]
    found: Sequence[str]
    details: Callable[..., Details] = lambda *arrays: Details()
    way: Way | None = None
    orders: Mapping[str, Sequence[tuple[str, float]]] = field(default_factory=dict)

    def figures(self, counts: Numbers, texts: NDArray[np.intp]) -> Figures:
        """The figures [draw] of some texts that count so often [draw, text]."""
        return self.make(counts, *(array[texts] for array in self.arrays))


def means_of(values: Mapping[str, NDArray[Any]]) -> tuple[Callable[..., Figures], list[NDArray[Any]]]:
    """What makes figures that are means over texts, from the values of each [text], NaN where a text has none."""
    return partial(metrics.means, [*values]), [*values.values()]


def usable(records: Sequence[Mapping[str, Any]]) -> NDArray[np.bool_]:
    """Which records are no errors."""
    return np.array(["error" not in record for record in records], bool)
