"""`evaluate`: run each model on the data, compute figures, intervals and differences, and make the report's record.

The data are read in load/, figures and intervals computed in statistics/, differences in comparison.py;
report/ shows the record.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, quoted
from bertcli.files.labelled.rows import cluster_numbers
from bertcli.files.texts import Text
from bertcli.model import Model
from bertcli.report.charts import Curve
from bertcli.report.figures import Panel, WithFigure
from bertcli.statistics.intervals import SEED, Figure, Record, Resampling, estimate
from bertcli.wings.evaluate.comparison import differences, holm
from bertcli.wings.evaluate.evaluators.evaluator import evaluator
from bertcli.wings.evaluate.figures import spec_of
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Outcome, Results
from bertcli.wings.evaluate.provenance import model_of, provenance
from bertcli.wings.evaluate.report.figure import panels

# Texts on which a model did worst, as the page lists them.
WORST = 20
# Entities that stay readable, as a record and the page list them.
MOST_READABLE = 200


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(WithFigure):
    """The report of `bertcli evaluate`: its record, and each model's outcome and curve, which the record lacks."""

    data: Labelled
    outcomes: Sequence[Outcome]
    curves: Sequence[Curve | None]
    record: Record

    @property
    def unit(self) -> str:
        """The name of what is counted, in the plural."""
        return evaluator(self.data.task).unit

    def panels(self) -> list[Panel]:
        """Figures with their intervals, differences, and each model's plots."""
        return panels(self.record, self.curves)


def evaluate(data: Labelled, models: Iterable[Model], options: Evaluate, command: str = "") -> Evaluation:
    """Evaluate models on this data; `command` is the command line, for the report. Errors: BertcliError."""
    of_task = evaluator(data.task)
    outcomes = of_task.before(data, options)
    of_models: list[Record] = []
    for model in models:
        outcomes_of_model = of_task.evaluate(model, data, options)
        outcomes += outcomes_of_model
        of_models.append(model_of(model))
    evaluation = summarize(data, outcomes)
    evaluation.record["provenance"] = provenance(data, of_models, options, command)
    return evaluation


def summarize(data: Labelled, outcomes: Sequence[Outcome]) -> Evaluation:
    """Make the report of the models' outcomes, on the texts that every model could use.

    Errors: BertcliError if there is no such text.
    """
    kept = np.flatnonzero(np.logical_and.reduce([outcome.usable for outcome in outcomes]))  # numbers of texts
    if not len(kept):
        raise BertcliError(f"No text of {data.file} could be used by every model.")
    clusters = cluster_numbers(data.clusters) if data.clusters else None

    def estimated(outcome: Outcome, texts: NDArray[np.intp]) -> _Estimated:
        results = Results(outcome, texts)
        resampling = Resampling(len(texts), None if clusters is None else clusters[texts])
        figures = estimate(results.figures, results.facts, resampling, evaluator(data.task).unit)
        return _Estimated(results, resampling, figures)

    groups = _groups(data, kept)
    models: list[Record] = []
    curves: list[Curve | None] = []
    of_models: list[_Estimated] = []
    for outcome in outcomes:
        of_model = estimated(outcome, kept)
        by_group = {name: estimated(outcome, texts).record for name, texts in groups.items()}
        of_texts = {"texts": [outcome.of_texts[i] for i in kept.tolist()]} if outcome.of_texts else {}
        worst = {"worst": _worst(outcome, data.rows, kept)}
        models.append(_record_of(outcome, of_model, by_group) | worst | of_texts | _readable(outcome, data.rows, kept))
        curves.append(of_model.results.details.curve)
        of_models.append(of_model)
    if data.corpus:
        data.corpus.add_texts(entry for model in models for entry in model["worst"])

    from_first: list[Record] = []
    first, *others = of_models
    for other in others:
        from_first += differences(first.results, first.figures, other.results, other.figures, first.resampling)
    if len(others) > 1:
        holm(from_first)
    whole: Record = {
        "task": data.task,
        "data": data.file,
        "count": len(kept),
        "left_out": data.left_out.count + len(data.rows) - len(kept),
        "clusters": None if clusters is None else len({*clusters[kept].tolist()}),
        "seed": SEED,
        "models": models,
        "differences": from_first,
    }
    return Evaluation(data, outcomes, curves, whole)


class _Estimated(NamedTuple):
    """A model's figures on some texts, with their intervals, and what they were made from."""

    results: Results
    resampling: Resampling
    figures: dict[str, Figure]

    @property
    def record(self) -> Record:
        return {name: figure.record for name, figure in self.figures.items()}


def _record_of(outcome: Outcome, estimated: _Estimated, by_group: Mapping[str, Record]) -> Record:
    """The record of a model without its worst texts."""
    labels, confusion, _, absent = estimated.results.details
    record: Record = {"model": outcome.name, "metrics": estimated.record, "by": by_group}
    if outcome.signature:
        record["signature"] = outcome.signature
    if outcome.storage:
        record |= outcome.storage._asdict()
    if labels:
        record["labels"] = labels
    if absent:
        record["absent"] = [*absent]
    if confusion:
        record["confusion"] = confusion
    return record


def _groups(data: Labelled, kept: NDArray[np.intp]) -> dict[str, NDArray[np.intp]]:
    """The numbers of the texts in each group of --by, by the group's name; empty without --by."""
    if not data.groups:
        return {}
    members: dict[str, list[int]] = {}
    for i in kept.tolist():
        members.setdefault(data.groups[i], []).append(i)
    return {name: np.array(members[name]) for name in sorted(members)}


def _worst(outcome: Outcome, rows: Sequence[Text], kept: NDArray[np.intp]) -> list[Record]:
    """Records of the WORST texts of a model, the worst first; none on which it did well."""
    worst: list[Record] = []
    for i in kept[np.argsort(-outcome.badness[kept], kind="stable")][:WORST].tolist():
        if outcome.badness[i] > 0:
            text = outcome.texts[i] if outcome.texts else rows[i].text
            entry: dict[str, Any] = {"place": rows[i].location, "text": text}
            if rows[i].pair is not None:
                entry["text_pair"] = rows[i].pair
            worst.append({**entry, "expected": outcome.expected[i], "found": outcome.found[i]})
    return worst


def _readable(outcome: Outcome, rows: Sequence[Text], kept: NDArray[np.intp]) -> Record:
    """{readable: what --redact would leave readable of true entities, in the order of the texts}, if that is asked."""
    if not outcome.readable:
        return {}
    left = [{"place": rows[i].location, **entity} for i in kept.tolist() for entity in outcome.readable[i]]
    return {"readable": left[:MOST_READABLE], "readable_count": len(left)}


def check_bound(record: Record, name: str, bound: float) -> None:
    """Check `--at-least NAME=BOUND`. Errors: BertcliError if a model's figure is worse, missing or not defined."""
    for model in record["models"]:
        if name not in model["metrics"]:
            known = ", ".join(model["metrics"])
            raise BertcliError(f"{model['model']} has no figure {quoted(name)} here (--at-least); choose from {known}.")
        value = model["metrics"][name]["value"]
        less_is_better = spec_of(name).less_is_better
        if less_is_better is None:
            known = ", ".join(each for each in model["metrics"] if spec_of(each).less_is_better is not None)
            raise BertcliError(f"Neither more nor less {name} is better (--at-least); choose from {known}.")
        if value is None:
            raise BertcliError(f"{name} of {model['model']} is not defined (--at-least).")
        if value > bound if less_is_better else value < bound:
            words = "more" if less_is_better else "less"
            raise BertcliError(f"{name} of {model['model']} is {value:.4f}, {words} than {bound:g} (--at-least).")
