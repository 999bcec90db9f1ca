"""Models judged on labelled data: which task it is, what each model did, figures with intervals, differences."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import data
from bertcli.evaluate.data import Item, Labelled, LeftOut, Row
from bertcli.evaluate.intervals import SEED, Difference, Figure, differences, figures_of
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Judged, Task
from bertcli.files.lines import Line, LineFile
from bertcli.model import Model

TAGGED = (".conll", ".iob", ".iob2", ".bio")  # files of words and tags, as are others whose lines end in tags
WORST = 20  # items that are listed
HOMES = {  # the module of each task
    "classification": "classification",
    **dict.fromkeys(("sts", "pairs", "triplets"), "similarity"),
    **dict.fromkeys(("fill-mask", "score"), "masked"),
    **dict.fromkeys(("retrieval", "rank"), "ranking"),
    "tag": "tagging",
    "answer": "answers",
}


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
    """Labelled data from a file or folder. Errors: BertcliError, with file and line, for what cannot be used."""
    left_out = LeftOut(wanted.keep_going)
    task, why, corpus, rows = _source(file, wanted, left_out)
    how = _task("retrieval" if corpus else task)
    items = []
    for row in rows:
        try:
            items.append(how.item(row))
        except BertcliError as error:
            left_out.add(str(error))
    labelled = Labelled(file, task, why, items, left_out, corpus)
    if corpus and task == "rank":
        from bertcli.evaluate.ranking import with_candidates

        return with_candidates(labelled, wanted)
    return labelled


def _source(file: str, wanted: Evaluate, left_out: LeftOut) -> tuple[str, str, Any, Iterable[Row]]:
    """The task, why it is this one, the corpus if there is one, and the rows."""
    ending = data.ending_of(file)
    if os.path.isdir(file):
        from bertcli.evaluate.collection import read_folder

        return wanted.task or "retrieval", "it is a folder with a corpus", *read_folder(file, wanted, left_out)
    if ending == ".json":
        from bertcli.evaluate.answers import read_squad

        return "answer", "it is a file as SQuAD's", None, read_squad(file, wanted.by, left_out)
    if ending in data.TABLES and (ending != ".tsv" or wanted.task != "tag"):
        return _table(file, wanted, left_out)
    if wanted.by is not None:
        raise BertcliError(f"{file} has no named fields, of which one could say the group: leave out --by.")
    if wanted.run is not None:
        from bertcli.evaluate.collection import read_judgements

        return "retrieval", "there is a run for it", None, read_judgements(file, left_out)
    from bertcli.evaluate.tagging import looks_tagged, read_columns

    if wanted.task == "tag" or (wanted.task is None and (ending in TAGGED or looks_tagged(file))):
        return "tag", "its lines end in tags", None, read_columns(file, left_out)
    lines = (Row(line.place, (line.text, None, None)) for line in LineFile(file) if not _is_bad(line, left_out))
    return "score", "it has a text a line", None, lines


def _is_bad(line: Line, left_out: LeftOut) -> bool:
    if line.error:
        left_out.add(line.error)
    return bool(line.error)


def _table(file: str, wanted: Evaluate, left_out: LeftOut) -> tuple[str, str, Any, Iterable[Row]]:
    names = data.field_names(file)
    task, fields = data.told(file, names, wanted)
    if wanted.by is not None and wanted.by not in names:
        raise BertcliError(f"{file} has no field {shown(wanted.by)} (--by); choose from {', '.join(names)}.")
    rows = list(data.rows(file, fields, wanted.by, left_out))
    if wanted.task is None and task == "fill-mask" and not any("mask" in str(row.values[0]).lower() for row in rows):
        task = "classification"
    if wanted.task is None and task == "sts":
        task = data.by_values(str(fields[2]), [row.values[2] for row in rows])
    why = "its fields are " + ", ".join(shown(name) for name in fields if name is not None)
    return task, why, None, rows


def _task(name: str) -> Task:
    found: Task = import_module(f"bertcli.evaluate.{HOMES[name]}").TASKS[name]
    return found


def evaluate(labelled: Labelled, models: Iterable[Model], wanted: Evaluate) -> Evaluation:
    """What models are worth on this data. Errors: BertcliError."""
    if not labelled.items:
        raise BertcliError(f"{labelled.file} has no texts that can be used, so there is nothing to judge.")
    task = _task(labelled.task)
    judged = [*task.beside(labelled, wanted), *(one for model in models for one in task.judge(model, labelled, wanted))]
    kept = np.flatnonzero(np.logical_and.reduce([one.outcome.usable for one in judged]))
    if not len(kept):
        raise BertcliError(f"No text of {labelled.file} could be used by every model.")
    items = [labelled.items[i] for i in kept]
    verdicts = [_verdict(one._replace(outcome=one.outcome.only(kept)), items) for one in judged]
    if labelled.corpus:
        labelled.corpus.tell(entry for verdict in verdicts for entry in verdict.worst)
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
