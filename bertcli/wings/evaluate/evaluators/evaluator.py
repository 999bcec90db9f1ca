"""An evaluator, whole: a task of `bertcli evaluate`, its rows, its figures, its options, and what computes it.

Each file of this folder has its own as EVALUATORS; TASKS in options.py names the files.
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import NamedTuple

from bertcli.files.labelled.fields import FieldSpec, Parts, Row, as_it_is
from bertcli.model import Model
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import RANKS, TASKS, Evaluate
from bertcli.wings.evaluate.outcome import Outcome


class FigureSpec(NamedTuple):
    """A figure's meaning in a line. less_is_better: None if neither higher nor lower is better."""

    explanation: str
    less_is_better: bool | None = False


# A figure of several tasks.
F1 = FigureSpec("harmonic mean of precision and recall")


class RowShape(NamedTuple):
    """Another way in which rows of a task are given: their fields, and what makes text and label of their values."""

    fields: tuple[FieldSpec, FieldSpec, FieldSpec]
    parts: Callable[[Row], Parts]


class Evaluator(NamedTuple):
    """The evaluator of a task.

    unit           the name of what is counted, in the plural
    fields         those of a row in a table: its text, its second text, its label
    figures        by their names in the record, where K stands for a rank (--k) and TYPE for a type of entities
    named          the figures' names for some data, where they depend on it
    evaluate       runs a model on the data; the first figure of its outcome is the main one
    place          a table is for the first task whose fields it has, in the order of places; None: --task chooses it
    of_any_names   --column and the like may name other fields without --task
    parts          makes text, second text and label from a row's values. It raises ValueError for a wrong one
    other_shapes   other ways in which rows are given
    options        the options that only some tasks have and this one does
    ranks          the usual ranks K
    before         evaluates what is known without a model
    sample         the bundled model for it; None: there is none
    fitting        a model for it, if there is no sample and no command of the task's name
    """

    unit: str
    fields: tuple[FieldSpec, FieldSpec, FieldSpec]
    figures: Mapping[str, FigureSpec]
    evaluate: Callable[[Model, Labelled, Evaluate], list[Outcome]]
    named: Callable[[Labelled], Iterable[str]] | None = None
    place: int | None = None
    of_any_names: bool = False
    parts: Callable[[Row], Parts] = as_it_is
    other_shapes: tuple[RowShape, ...] = ()
    options: tuple[str, ...] = ()
    ranks: tuple[int, ...] = RANKS
    before: Callable[[Labelled, Evaluate], list[Outcome]] = lambda data, options: []
    sample: str | None = None
    fitting: str = "one that was made for it"


def evaluator(task: str) -> Evaluator:
    """The evaluator of a task."""
    of_file: dict[str, Evaluator] = import_module(f"{__package__}.{TASKS[task]}").EVALUATORS
    return of_file[task]


def evaluators() -> dict[str, Evaluator]:
    """All evaluators by their tasks."""
    return {task: evaluator(task) for task in TASKS}
