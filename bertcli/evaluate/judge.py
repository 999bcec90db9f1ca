"""Models judged on labelled data: which task it is, what each model did, figures with intervals, differences."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import answers, classification, masked, ranking, similarity, tagging
from bertcli.evaluate.collection import TREC, read_folder, read_queries
from bertcli.evaluate.data import SHAPES, Labelled, LeftOut, table
from bertcli.evaluate.intervals import SEED, Difference, Figure, differences, figures_of
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Details, Outcome
from bertcli.files.formats import ending_of
from bertcli.files.inputs import takes_columns
from bertcli.files.lines import LineFile
from bertcli.files.rows import Wanted, text_lines
from bertcli.files.texts import Text
from bertcli.model import Model

TAGGED = (".conll", ".iob", ".iob2", ".bio")  # files of words and tags, as are others whose lines end in tags
WORST = 20  # texts that are listed
JUDGES: dict[str, Callable[[Model, Labelled, Evaluate], list[Outcome]]] = {
    **dict.fromkeys(("sts", "pairs", "triplets"), similarity.judge),
    "classification": classification.judge,
    "fill-mask": masked.fill,
    "score": masked.score,
    "retrieval": ranking.retrieve,
    "rank": ranking.rerank,
    "tag": tagging.judge,
    "answer": answers.judge,
}


@dataclass(frozen=True)
class Verdict:
    """A model's figures, those of every group, what else is said of it, and the texts it did worst on."""

    outcome: Outcome
    figures: dict[str, Figure]
    by: dict[str, dict[str, Figure]]
    details: Details
    worst: list[dict[str, Any]]

    def of(self, group: str | None) -> dict[str, Figure]:
        """The figures of a group, or (None) of all texts."""
        return self.figures if group is None else self.by[group]

    @property
    def record(self) -> dict[str, Any]:
        tables = {name: some for name, some in zip(("labels", "confusion"), self.details, strict=False) if some}
        by = {group: _records(figures) for group, figures in self.by.items()}
        named = {"model": self.outcome.name, "metrics": _records(self.figures), "by": by}
        return {**named, **(self.outcome.way._asdict() if self.outcome.way else {}), **tables, "worst": self.worst}


def _records(figures: dict[str, Figure]) -> dict[str, Any]:
    return {name: figure.record for name, figure in figures.items()}


@dataclass(frozen=True)
class Evaluation:
    """What `bertcli evaluate` reports; the first model is the one that others are compared with."""

    data: Labelled
    count: int
    models: list[Verdict]
    differences: list[Difference]

    @property
    def unit(self) -> str:
        """What is counted."""
        return SHAPES[self.data.task].unit

    @property
    def left_out(self) -> int:
        """How many rows could not be used."""
        return self.data.left_out.count + len(self.data.rows) - self.count

    @property
    def record(self) -> dict[str, Any]:
        """The JSON record."""
        return {
            "task": self.data.task,
            "data": self.data.file,
            "count": self.count,
            "left_out": self.left_out,
            "seed": SEED,
            "models": [verdict.record for verdict in self.models],
            "differences": [difference.record for difference in self.differences],
        }


def read(file: str, wanted: Evaluate, any_tag: bool = False) -> Labelled:
    """Labelled data from a file or folder; with `any_tag` the tags of words may be anything.

    Errors: BertcliError, with file and line, for what cannot be used.
    """
    left_out, corpus = LeftOut(wanted.keep_going), None
    ending, asked = ending_of(file), wanted.task
    rows: Iterable[Text]
    if os.path.isdir(file):
        task, why = "rank" if asked == "rank" else "retrieval", "it is a folder with a corpus"
        rows, corpus = read_folder(file, wanted, left_out)
    elif not LineFile(file).regular:
        raise BertcliError(f"{file} is no file, and data are read more than once: save them in one.")
    elif ending == ".json":
        task, why, rows = "answer", "it is a file as SQuAD's", answers.read_squad(file, wanted.by, left_out)
    elif takes_columns([file], "txt") and not (asked == "tag" and ending == ".tsv"):
        task, why, rows = table(file, wanted, any_tag)
    elif wanted.by is not None:
        raise BertcliError(f"{file} has no named fields, of which one could say the group: leave out --by.")
    elif wanted.run is not None:
        task, why, rows = "retrieval", "there is a run for it", read_queries(file, TREC, wanted, left_out)
    elif asked == "tag" or (asked is None and (ending in TAGGED or tagging.looks_tagged(file))):
        task, why, rows = "tag", "its lines end in tags", tagging.read_columns(file, left_out, wanted, any_tag)
    else:
        task, why, rows = "score", "it has a text a line", text_lines(LineFile(file), Wanted())
    if asked not in (None, task):
        raise BertcliError(f"{file} is for {task}, since {why}, and not for {asked} (--task).")
    kept = []
    for row in rows:
        if row.error:
            left_out.add(row.error)
        else:
            kept.append(row)
    if not kept:
        raise BertcliError(f"{file} has no texts that can be used, so there is nothing to judge.")
    return Labelled(file, task, why, kept, left_out, corpus)


def evaluate(data: Labelled, models: Iterable[Model], wanted: Evaluate) -> Evaluation:
    """What models are worth on this data. Errors: BertcliError."""
    outcomes = ranking.found_before(data, wanted) if data.task in ("retrieval", "rank") else []
    outcomes += [outcome for model in models for outcome in JUDGES[data.task](model, data, wanted)]
    return judged(data, outcomes)


def judged(data: Labelled, outcomes: Sequence[Outcome]) -> Evaluation:
    """The figures of what models did, on the texts that each could use. Errors: BertcliError if there is none."""
    kept = np.flatnonzero(np.logical_and.reduce([outcome.usable for outcome in outcomes]))
    if not len(kept):
        raise BertcliError(f"No text of {data.file} could be used by every model.")
    verdicts = [_verdict(outcome, data.rows, kept) for outcome in outcomes]
    if data.corpus:
        data.corpus.tell(entry for verdict in verdicts for entry in verdict.worst)
    first, *others = ((verdict.outcome.name, verdict.figures) for verdict in verdicts)
    between = [difference for other in others for difference in differences(*first, *other)]
    return Evaluation(data, len(kept), verdicts, between)


def _verdict(outcome: Outcome, rows: Sequence[Text], kept: NDArray[np.intp]) -> Verdict:
    groups: dict[str, list[int]] = {}
    for i in kept.tolist():
        if rows[i].id is not None:
            groups.setdefault(str(rows[i].id), []).append(i)
    figures, *by = (
        figures_of(partial(outcome.figures, texts=np.array(texts)), len(texts))
        for texts in [kept.tolist(), *groups.values()]
    )
    worst = [
        {"place": rows[i].place, "text": rows[i].text, **({} if rows[i].pair is None else {"text_pair": rows[i].pair})}
        | {"expected": outcome.expected[i], "found": outcome.found[i]}
        for i in kept[np.argsort(-outcome.losses[kept], kind="stable")][:WORST].tolist()
        if outcome.losses[i] > 0
    ]
    details = outcome.details(*(array[kept] for array in outcome.arrays))
    return Verdict(outcome, figures, dict(sorted(zip(groups, by, strict=True))), details, worst)


def check_bound(evaluation: Evaluation, name: str, least: float) -> None:
    """Raise BertcliError if a model's figure falls short."""
    for verdict in evaluation.models:
        if name not in verdict.figures:
            raise BertcliError(
                f"There is no figure {shown(name)} (--at-least); choose from {', '.join(verdict.figures)}."
            )
        value = verdict.figures[name].value
        if not value >= least:
            raise BertcliError(f"{name} of {verdict.outcome.name} is {value:.4f}, less than {least:g} (--at-least).")
