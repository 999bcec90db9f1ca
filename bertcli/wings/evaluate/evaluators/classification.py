"""Evaluator of `classification`: predicted against true labels, and the calibration of the probabilities."""

import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from bertcli.errors import BertcliError, quoted
from bertcli.files.labelled.fields import LABEL, SECOND, TEXT, FieldSpec, read_label
from bertcli.files.texts import Text
from bertcli.model import Model
from bertcli.report.charts import Curve
from bertcli.statistics import metrics
from bertcli.statistics.intervals import FigureFacts, Share, wilson
from bertcli.statistics.label_figures import (
    COVERAGES,
    LIKELY,
    multi_label_figures,
    single_label_figures,
    sums_of,
    without_rare_labels,
)
from bertcli.statistics.metrics import Numbers
from bertcli.tasks.registry import SENTIMENT_SAMPLE
from bertcli.wings.evaluate.evaluators.evaluator import Evaluator, FigureSpec
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Details, Names, Outcome, usable

logger = logging.getLogger("bertcli")
MACRO_F1 = FigureSpec("mean of the labels' F1, each label as important as another")
NUMBER = re.compile(r"\d+")
# Wrong texts: with fewer the resampled intervals of their losses cover as little as 44 % (n = 30).
FEWEST_WRONG = 5


def evaluate(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Predict the likeliest label of each text, or, with a multi-label model, all labels above LIKELY.

    Errors: BertcliError for a model that gives no labels, and for a label that it does not have.
    """
    config = model.config
    trained = "classifier" in model.heads
    if trained and (config.problem_type == "regression" or config.num_labels < 2):
        raise BertcliError(
            f"{model.name} does not choose between labels, so it has no accuracy: "
            "choose a classifier with two labels or more."
        )
    multi_label = trained and config.problem_type == "multi_label_classification"

    records = model.classify(data.texts, **options.reading_options)
    scores = [{entry["label"]: entry["score"] for entry in record.get("labels", ())} for record in records]
    names = [*config.labels] if trained else sorted({name for some in scores for name in some})
    p = np.array([[some.get(name, 0.0) for name in names] for some in scores])

    read = partial(true_labels, names=names, renamed=options.rename_label or {}, multi_label=multi_label)
    known, readable = data.left_out.read_or_skip(data.rows, read, np.zeros(len(names)))
    true = np.array(known)
    _note_numbers(data.rows, names, options.rename_label or {}, multi_label)
    if multi_label:
        predicted = np.asarray(p > LIKELY, np.float64)
        surprise = np.abs(p - true).max(axis=1)
    else:
        predicted = metrics.one_hot(p.argmax(axis=1), len(names))
        surprise = p.max(axis=1)
    wrong = (predicted != true).any(axis=1)

    return [
        Outcome(
            name=model.name,
            figures_from=multi_label_figures if multi_label else single_label_figures,
            arrays=[p, predicted, true],
            columns=names,
            facts=multi_label_facts if multi_label else single_label_facts,
            details=label_details if multi_label else single_label_details,
            usable=usable(records) & readable,
            badness=wrong * surprise,
            expected=[_spelled(row, names) for row in true],
            found=[_spelled(row, names, of_row) for row, of_row in zip(predicted, p, strict=True)],
        )
    ]


def positions_by_number(names: Names) -> dict[str, int]:
    """The label that each number in the data stands for, as its position among the model's labels.

    A number is a position, from 0, unless the labels are numbers themselves: 1 is "1 star", though that is the label at
    position 0. Empty where that is ambiguous: each label has a number, but not one of its own.
    """
    numbers = [NUMBER.findall(name) for name in names]
    if not all(numbers):
        return {str(position): position for position in range(len(names))}
    single = {str(int(of_name[0])): position for position, of_name in enumerate(numbers) if len(of_name) == 1}
    return single if len(single) == len(names) else {}


def true_labels(row: Text, names: Names, renamed: Mapping[str, str], multi_label: bool) -> Numbers:
    """1 for the true labels [label] of a row, else 0.

    A label is given by name, as --rename-label says, or by number (`positions_by_number`); several are a list, or stand
    between commas. Errors: ValueError for an unknown label, and for more or less than one where the model chooses one.
    """
    found = np.zeros(len(names))
    positions = positions_by_number(names)
    for label in _labels_in(row, renamed, multi_label):
        if label in names:
            found[names.index(label)] = 1
        elif label in positions:
            found[positions[label]] = 1
        else:
            known = ", ".join(map(quoted, names[:20]))
            raise ValueError(
                f"the label {quoted(label)} is not one of this model's: {known} (--rename-label a=b says which)."
            )
    if not multi_label and found.sum() != 1:
        raise ValueError(f"there is {'more than one' if found.any() else 'no'} label, and this model chooses one.")
    return found


def _labels_in(row: Text, renamed: Mapping[str, str], multi_label: bool) -> list[str]:
    """The labels of a row as --rename-label calls them."""
    if isinstance(row.label, list):
        given = row.label
    elif multi_label:
        given = row.label.split(",")
    else:
        given = [row.label]
    written = [name.strip() for name in given if name.strip()]
    return [renamed.get(name, name) for name in written]


def _note_numbers(rows: Sequence[Text], names: Names, renamed: Mapping[str, str], multi_label: bool) -> None:
    """Log what the first number among the labels of the data was taken for."""
    positions = positions_by_number(names)
    for row in rows:
        for label in _labels_in(row, renamed, multi_label):
            if label not in names and label in positions:
                note = "the label %s in the data is taken for %s (--rename-label %s=… says otherwise)."
                logger.info(note, label, quoted(names[positions[label]]), label)
                return


def _spelled(labels: Numbers, names: Names, probabilities: Numbers | None = None) -> str:
    """Labels for people, each with its probability if that is given."""
    words = []
    for i in np.flatnonzero(labels).tolist():
        words.append(names[i] if probabilities is None else f"{names[i]} ({probabilities[i]:.3f})")
    return ", ".join(words) or "none"


# ------------------------------------------------------------------------------------------------------------- figures


def multi_label_facts(columns: Names, p: Numbers, predicted: Numbers, true: Numbers) -> FigureFacts:
    """Facts that the intervals need: accuracy is a share."""
    right = np.asarray((predicted == true).all(axis=1), np.float64)
    rare = without_rare_labels(columns, predicted, true)
    return FigureFacts(item_values={"accuracy": right}, no_interval=rare, bias_corrected=("macro_f1",))


def single_label_facts(columns: Names, p: Numbers, predicted: Numbers, true: Numbers) -> FigureFacts:
    """Say which figures are shares, and which can have no interval."""
    right = (predicted * true).sum(axis=1)
    confidence = p.max(axis=1)
    shares = {}
    covered = metrics.covered_accuracy(confidence, right, np.ones((1, len(p))), COVERAGES)
    for percent, (accuracy,) in zip(COVERAGES, covered, strict=True):
        of = max(1.0, len(p) * percent / 100)
        shares[f"accuracy@{percent}%"] = Share(float(accuracy) * of, of)
    no_interval = {
        "ece": "bins of few texts read too high, and resampling adds to that, so no interval covers it; a perfectly "
        f"calibrated model would read up to {metrics.chance_ece(confidence):.3f} here"
    }
    wrong = int(len(right) - right.sum())
    if wrong < FEWEST_WRONG:
        few = f"fewer than {FEWEST_WRONG} texts are wrong, and the losses of such texts decide"
        no_interval |= {"brier": few, "log_loss": few}
    no_interval |= without_rare_labels(columns, predicted, true)
    if true.any(axis=0).sum() < 2:
        no_interval["mcc"] = "only one label is true, so there is nothing to correlate"
    elif not wrong:
        no_interval["mcc"] = "no text is wrong, so resampling shows no errors"
    return FigureFacts({"accuracy": right, "micro_f1": right}, shares, no_interval, bias_corrected=("macro_f1",))


def label_details(columns: Names, p: Numbers, predicted: Numbers, true: Numbers) -> Details:
    """Precision, recall and F1 of each label; the recall, a share of the texts that have it, with its interval."""
    rows = sums_of(np.ones((1, len(p))), predicted, true).by_label(columns)
    occurs = (predicted + true).sum(axis=0)
    absent = [name for name, count in zip(columns, occurs, strict=True) if not count]
    return Details([_with_recall_interval(row) for row in rows], absent=absent)


def _with_recall_interval(row: Mapping[str, Any]) -> dict[str, Any]:
    support = row["support"]
    low, high = wilson(Share(row["recall"] * support, support)) if support > 1 else (None, None)
    return {**row, "recall_low": low, "recall_high": high}


def single_label_details(columns: Names, p: Numbers, predicted: Numbers, true: Numbers) -> Details:
    """Labels, the confusion matrix of those that occur, and accuracy by confidence."""
    occurs = (predicted + true).any(axis=0)
    confusion = (true.T @ predicted)[np.ix_(occurs, occurs)].astype(int).tolist()
    right = (predicted * true).sum(axis=1)
    reliability = reliability_curve(p.max(axis=1), right)
    return label_details(columns, p, predicted, true)._replace(confusion=confusion, curve=reliability)


def reliability_curve(confidence: Numbers, right: Numbers) -> Curve:
    """The reliability diagram: accuracy over mean confidence of each bin that has texts, with interval and count."""
    once = np.ones((1, len(right)))
    bins = [sums[0] for sums in metrics.calibration(confidence, right, once)]
    points: list[tuple[float, float]] = []
    ranges: list[tuple[float, float]] = []
    notes: list[str] = []
    for items, confident, correct in zip(*bins, strict=True):
        if items:
            points.append((confident / items, correct / items))
            ranges.append(wilson(Share(correct, items)))
            notes.append(f"{items:,.0f} text{'' if items == 1 else 's'}")
    return Curve("reliability diagram", "mean confidence", "accuracy", points, ideal=True, ranges=ranges, notes=notes)


# ------------------------------------------------------------------------------------------------------------- the task


EVALUATORS = {
    "classification": Evaluator(
        unit="texts",
        fields=(TEXT, SECOND._replace(optional=True), FieldSpec(LABEL, read_label)),
        figures={
            "accuracy": FigureSpec("share of texts whose label is right"),
            "macro_f1": MACRO_F1,
            "micro_f1": FigureSpec("F1 of all labels together; with one label a text it equals accuracy"),
            "weighted_f1": FigureSpec("mean of the labels' F1, weighted by how often each is true"),
            "mcc": FigureSpec("Matthews correlation of true and predicted labels: 1 perfect, 0 no better than chance"),
            "ece": FigureSpec("expected calibration error: mean gap of confidence and accuracy over 15 bins", True),
            "brier": FigureSpec("Brier score: mean squared error of the probabilities", True),
            "log_loss": FigureSpec("mean of -log of the probability that the true label has", True),
            "accuracy@50%": FigureSpec("accuracy on the half of the texts with the highest confidence"),
            "accuracy@80%": FigureSpec("accuracy on the 80 % of the texts with the highest confidence"),
            "accuracy@90%": FigureSpec("accuracy on the 90 % of the texts with the highest confidence"),
        },
        evaluate=evaluate,
        place=7,
        of_any_names=True,
        options=("rename_label",),
        sample=SENTIMENT_SAMPLE,
    ),
}
