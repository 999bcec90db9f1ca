"""Models judged on labelled data: which task it is, what each model did, figures with intervals, differences."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import data
from bertcli.evaluate.data import LeftOut
from bertcli.evaluate.intervals import SEED, Difference, Figure, differences, figures_of
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Item, Judged
from bertcli.model import Model

WORST = 20  # items that are listed
HOMES = {"classification": "classification"}


class Labelled(NamedTuple):
    """Data with its task, and in a few words why it is this one."""

    file: str
    task: str
    why: str
    items: list[Item]
    left_out: LeftOut


@dataclass(frozen=True)
class Verdict:
    """A model's figures, those of every group, and the items it did worst on."""

    judged: Judged
    figures: dict[str, Figure]
    by: dict[str, dict[str, Figure]]
    worst: list[dict[str, Any]]

    @property
    def record(self) -> dict[str, Any]:
        by = {group: _records(figures) for group, figures in self.by.items()}
        details = {**self.judged.details, **self.judged.outcome.details}
        return {"model": self.judged.name, "metrics": _records(self.figures), "by": by, **details, "worst": self.worst}


def _records(figures: dict[str, Figure]) -> dict[str, Any]:
    return {name: figure.record for name, figure in figures.items()}


@dataclass(frozen=True)
class Evaluation:
    """What `bertcli evaluate` reports; the first model is the one that others are compared with."""

    labelled: Labelled
    count: int
    left_out: int
    models: list[Verdict]
    differences: list[Difference]

    @property
    def record(self) -> dict[str, Any]:
        """The JSON record."""
        return {
            "task": self.labelled.task,
            "data": self.labelled.file,
            "count": self.count,
            "left_out": self.left_out,
            "seed": SEED,
            "models": [verdict.record for verdict in self.models],
            "differences": [difference.record for difference in self.differences],
        }


def read(file: str, wanted: Evaluate) -> Labelled:
    """Labelled data from a file. Errors: BertcliError, with file and line, for what cannot be used."""
    left_out = LeftOut(wanted.keep_going)
    if data.ending_of(file) not in data.TABLES:
        raise BertcliError(f"{file}: the ending of a file of labelled texts must be {', '.join(data.TABLES)}.")
    task, fields = data.told(file, data.field_names(file), wanted)
    rows = list(data.rows(file, fields, wanted.by, left_out))
    if wanted.task is None and task == "fill-mask" and not any("mask" in str(row.values[0]).lower() for row in rows):
        task = "classification"
    if wanted.task is None and task == "sts":
        task = data.by_values(str(fields[2]), [row.values[2] for row in rows])
    truth, items = _home(task).truth, []
    for row in rows:
        *texts, label = row.values
        try:
            strings = tuple(_text(row.place, text) for text in texts if text is not None)
            items.append(Item(row.place, strings, truth(row.place, strings, label), row.group))
        except BertcliError as error:
            left_out.add(str(error))
    why = "its fields are " + ", ".join(shown(name) for name in fields if name is not None)
    return Labelled(file, task, why, items, left_out)


def _text(place: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BertcliError(f"{place}: {shown(value)} is not a text.")
    return value


def _home(task: str) -> Any:
    """The module of a task, which has `truth` and `judge`."""
    return import_module(f"bertcli.evaluate.{HOMES[task]}")


def evaluate(labelled: Labelled, models: Iterable[Model], wanted: Evaluate) -> Evaluation:
    """What models are worth on this data. Errors: BertcliError."""
    if not labelled.items:
        raise BertcliError(f"{labelled.file} has no texts that can be used, so there is nothing to judge.")
    judged = [one for model in models for one in _home(labelled.task).judge(model, labelled.items, wanted)]
    kept = np.flatnonzero(np.logical_and.reduce([one.outcome.usable for one in judged]))
    if not len(kept):
        raise BertcliError(f"No text of {labelled.file} could be used by every model.")
    items = [labelled.items[i] for i in kept]
    verdicts = [_verdict(one._replace(outcome=one.outcome.only(kept)), items) for one in judged]
    first = verdicts[0]
    between = [
        difference
        for other in verdicts[1:]
        for difference in differences(first.judged.name, first.figures, other.judged.name, other.figures)
    ]
    left_out = labelled.left_out.count + len(labelled.items) - len(items)
    return Evaluation(labelled, len(items), left_out, verdicts, between)


def _verdict(judged: Judged, items: Sequence[Item]) -> Verdict:
    outcome = judged.outcome
    groups: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        if item.group is not None:
            groups.setdefault(item.group, []).append(number)
    by = {}
    for group, members in sorted(groups.items()):
        some = outcome.only(np.array(members))
        by[group] = figures_of(some.figures, len(members))
    losses = outcome.losses
    worst = [
        {
            "place": items[i].place,
            **dict(zip(("text", "text_pair", "text_third"), items[i].texts, strict=False)),
            **outcome.said(i),
        }
        for i in np.argsort(-losses, kind="stable")[:WORST].tolist()
        if losses[i] > 0
    ]
    return Verdict(judged, figures_of(outcome.figures, len(items)), by, worst)


def check_bound(evaluation: Evaluation, name: str, least: float) -> None:
    """Raise BertcliError if a model's figure falls short."""
    for verdict in evaluation.models:
        if name not in verdict.figures:
            raise BertcliError(
                f"There is no figure {shown(name)} (--at-least); choose from {', '.join(verdict.figures)}."
            )
        value = verdict.figures[name].value
        if not value >= least:
            raise BertcliError(f"{name} of {verdict.judged.name} is {value:.4f}, less than {least:g} (--at-least).")
