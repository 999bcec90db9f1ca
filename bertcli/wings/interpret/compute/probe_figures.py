"""Figures of a layer's probes: means over the folds, with the 95 % intervals of `evaluate` (statistics/).

Texts, or with clusters these as a whole, are resampled among the predictions of all folds; words by their sentences.
"""

from typing import Any, NamedTuple

import numpy as np

from bertcli.statistics.intervals import Figure, FigureFacts, Resampling, estimate
from bertcli.statistics.label_figures import sums_of, without_rare_labels
from bertcli.statistics.metrics import Figures, Numbers, Whole, mean
from bertcli.wings.interpret.compute.logistic import Fit


def over_folds(
    names: list[str],
    folds: Whole,
    predicted: Numbers,
    true: Numbers,
    control_right: Numbers,
    clusters: Whole | None,
    resampled: str,
    unit: str,
) -> dict[str, Figure]:
    """Accuracy, macro F1 and selectivity with their intervals.

    folds [item]. predicted, true [item, label]. control_right [item]: the share of the control's draws that are right.
    clusters [item]: the number of what is resampled together, which reasons call `resampled`; None: each of the `unit`.
    """
    right = np.asarray((predicted == true).all(axis=1), np.float64)
    items_of = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]

    def figures(counts: Numbers) -> Figures:
        """The means over folds [draw], each fold weighted by how often its items are drawn."""
        of_folds: dict[str, list[Numbers]] = {"accuracy": [], "macro_f1": [], "selectivity": []}
        weights = []
        for items in items_of:
            of_fold = counts[:, items]
            weights.append(of_fold.sum(axis=1) / len(items))
            of_folds["accuracy"].append(mean(right[items], of_fold))
            of_folds["macro_f1"].append(sums_of(of_fold, predicted[items], true[items]).averages()["macro_f1"])
            of_folds["selectivity"].append(mean((right - control_right)[items], of_fold))
        shares = np.array(weights)
        # A fold of which nothing was drawn has no figures, and no weight.
        return {
            name: (shares * np.where(shares > 0, values, 0)).sum(axis=0) / shares.sum(axis=0)
            for name, values in of_folds.items()
        }

    facts = FigureFacts(
        item_values={"accuracy": right, "selectivity": right - control_right},
        no_interval=without_rare_labels(names, predicted, true, unit),
        bias_corrected=("macro_f1",),
    )
    found = estimate(figures, facts, Resampling(len(folds), clusters), unit)
    return {name: _called(figure, resampled) for name, figure in found.items()}


def _called(figure: Figure, resampled: str) -> Figure:
    """A figure whose interval holds it, and whose reason calls clusters what they are."""
    if figure.low is None or figure.high is None:
        return figure._replace(reason=figure.reason.replace("clusters", resampled))
    return figure._replace(low=min(figure.low, figure.value), high=max(figure.high, figure.value))


class LayerFigures(NamedTuple):
    """The figures of a layer's probes on held-out items, and the fits that were made.

    control_draws: accuracy [draw, fold] with labels drawn at random. confusion: how often a label was taken for another
    [true, predicted]; of a multi-label task only its diagonal has a meaning.
    """

    layer: int
    accuracy: Figure
    macro_f1: Figure
    selectivity: Figure
    majority: float
    control_draws: Numbers
    confusion: Numbers
    fits: list[Fit]

    @property
    def control(self) -> float:
        """The control's accuracy."""
        return float(self.control_draws.mean())

    @property
    def control_spread(self) -> float:
        """The standard deviation of the control's accuracy over its draws."""
        return float(self.control_draws.mean(axis=1).std(ddof=1))

    @property
    def record(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "accuracy": self.accuracy.record,
            "macro_f1": self.macro_f1.record,
            "majority": self.majority,
            "control": self.control,
            "control_spread": self.control_spread,
            "selectivity": self.selectivity.record,
        }
