"""Figures of labels: accuracy, F1, Matthews correlation and calibration of predicted beside true labels.

Arrays are [text, label], counts [draw, text]; metrics.py has each formula.
"""

from collections.abc import Sequence

import numpy as np

from bertcli.errors import quoted
from bertcli.statistics import metrics
from bertcli.statistics.metrics import Figures, Numbers

Names = Sequence[str]
# Percent of the texts, the most confident ones, for accuracy@50% and the like.
COVERAGES = (50, 80, 90)
# Probability above which a multi-label model's label counts as predicted.
LIKELY = 0.5
# Texts of each label that macro F1 needs: the F1 of a rarer one reads too low, and is missing in many resamples.
FEWEST_OF_A_LABEL = 5


def sums_of(counts: Numbers, predicted: Numbers, true: Numbers) -> metrics.Sums:
    """Counts of each label [draw, label]."""
    return metrics.Sums(counts @ (predicted * true), counts @ predicted, counts @ true)


def multi_label_figures(columns: Names, counts: Numbers, p: Numbers, predicted: Numbers, true: Numbers) -> Figures:
    """F1 over labels, and accuracy: the share of texts whose set of labels is right."""
    right = np.asarray((predicted == true).all(axis=1), np.float64)
    averages = sums_of(counts, predicted, true).averages()
    return {**averages, "accuracy": metrics.mean(right, counts)}


def without_rare_labels(columns: Names, found: Numbers, true: Numbers, unit: str = "texts") -> dict[str, str]:
    """Why macro F1 has no interval where a label in it is rare; found and true are counts [text, label]."""
    support = true.sum(axis=0)
    occurs = support + found.sum(axis=0) > 0
    rare = [
        name for name, has, count in zip(columns, occurs, support, strict=True) if has and count < FEWEST_OF_A_LABEL
    ]
    if not rare:
        return {}
    few = f"fewer than {FEWEST_OF_A_LABEL} {unit} have the label {quoted(rare[0])}"
    if len(rare) > 1:
        few = f"{len(rare)} labels are rare ({quoted(rare[0])}: fewer than {FEWEST_OF_A_LABEL} {unit})"
    return {"macro_f1": f"{few}, and such an F1 reads too low and jumps from one resample to the next"}


def single_label_figures(columns: Names, counts: Numbers, p: Numbers, predicted: Numbers, true: Numbers) -> Figures:
    """Figures of the predicted labels, and calibration figures of the probabilities p [text, label]."""
    sums = sums_of(counts, predicted, true)
    right = (predicted * true).sum(axis=1)
    confidence = p.max(axis=1)
    figures = {
        "accuracy": metrics.mean(right, counts),
        **sums.averages(),
        "mcc": sums.mcc,
        "ece": metrics.ece(confidence, right, counts),
        "brier": metrics.mean(metrics.brier(p, true), counts),
        "log_loss": metrics.mean(metrics.log_loss(p, true), counts),
    }
    covered = metrics.covered_accuracy(confidence, right, counts, COVERAGES)
    for percent, accuracy in zip(COVERAGES, covered, strict=True):
        figures[f"accuracy@{percent}%"] = accuracy
    return figures
