"""Models judged on labelled data: which task it is, what each model did, figures with intervals, differences."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, shown
from bertcli.evaluate.bootstrap import SEED, Figure, Record, differences, figures_of
from bertcli.evaluate.evaluators import answers, classification, masked, ranking, similarity, tagging
from bertcli.evaluate.figures import spec_of
from bertcli.evaluate.load.beir import TREC, read_folder, read_queries
from bertcli.evaluate.load.tables import OF_TASKS, SHAPES, Labelled, LeftOut, Relevance, table
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Curve, Outcome
from bertcli.files.formats import ending_of
from bertcli.files.inputs import rows_in, takes_columns
from bertcli.files.lines import LineFile
from bertcli.files.rows import Wanted
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


class Evaluation(NamedTuple):
    """What `bertcli evaluate` reports: a record, and what it does not hold, a curve of each model."""

    data: Labelled
    outcomes: Sequence[Outcome]
    curves: Sequence[Curve | None]
    record: Record

    @property
    def unit(self) -> str:
        """What is counted."""
        return SHAPES[self.data.task].unit


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
        task, why, rows = "score", "it has a text a line", rows_in([file], Wanted(), keep_going=True)
    if asked not in (None, task):
        raise BertcliError(f"{file} is for {task}, since {why}, and not for {asked} (--task).")
    for name, tasks in OF_TASKS.items():
        if getattr(wanted, name) is not None and task not in tasks:
            option = name.replace("_", "-")
            raise BertcliError(f"--{option} is for {', '.join(tasks)}, and {file} is for {task}: leave it out.")
    kept = []
    for row in rows:
        if row.error:
            left_out.add(row.error)
        elif isinstance(row.label, Relevance) and max(row.label.gains.values(), default=0) <= 0:
            left_out.skip(f"{row.place}: the query {shown(row.label.id)} has no relevant document.")
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
    groups: dict[str, list[int]] = {}
    for i in kept.tolist():
        if data.rows[i].id is not None:
            groups.setdefault(str(data.rows[i].id), []).append(i)
    models, curves, every = [], [], []
    for outcome in outcomes:
        labels, confusion, curve = outcome.details(*(array[kept] for array in outcome.arrays))
        figures, *by = (
            figures_of(partial(outcome.figures, texts=np.array(texts)), len(texts))
            for texts in [kept.tolist(), *(groups[name] for name in sorted(groups))]
        )
        record: Record = {"model": outcome.name, "metrics": _records(figures)}
        record |= {"by": dict(zip(sorted(groups), map(_records, by), strict=True))}
        record |= outcome.way._asdict() if outcome.way else {}
        record |= {name: some for name, some in (("labels", labels), ("confusion", confusion)) if some}
        models.append({**record, "worst": _worst(outcome, data.rows, kept)})
        curves.append(curve)
        every.append((outcome.name, figures))
    if data.corpus:
        data.corpus.tell(entry for model in models for entry in model["worst"])
    whole = {
        "task": data.task,
        "data": data.file,
        "count": len(kept),
        "left_out": data.left_out.count + len(data.rows) - len(kept),
        "seed": SEED,
        "models": models,
        "differences": [difference for other in every[1:] for difference in differences(*every[0], *other)],
    }
    return Evaluation(data, outcomes, curves, whole)


def _records(figures: Mapping[str, Figure]) -> Record:
    return {name: figure.record for name, figure in figures.items()}


def _worst(outcome: Outcome, rows: Sequence[Text], kept: NDArray[np.intp]) -> list[Record]:
    """The texts that a model did worst on."""
    return [
        {"place": rows[i].place, "text": rows[i].text, **({} if rows[i].pair is None else {"text_pair": rows[i].pair})}
        | {"expected": outcome.expected[i], "found": outcome.found[i]}
        for i in kept[np.argsort(-outcome.losses[kept], kind="stable")][:WORST].tolist()
        if outcome.losses[i] > 0
    ]


def check_bound(record: Record, name: str, bound: float) -> None:
    """Raise BertcliError if a model's figure is worse."""
    for model in record["models"]:
        if name not in model["metrics"]:
            known = ", ".join(model["metrics"])
            raise BertcliError(f"There is no figure {shown(name)} (--at-least); choose from {known}.")
        value = model["metrics"][name]["value"]
        less_is_better = spec_of(name).less_is_better
        if value is None or (value > bound if less_is_better else value < bound):
            words = f"{value or 0:.4f}, {'more' if less_is_better else 'less'} than {bound:g}"
            found = "not defined" if value is None else words
            raise BertcliError(f"{name} of {model['model']} is {found} (--at-least).")
