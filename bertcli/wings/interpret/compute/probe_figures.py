"""Figures of a layer's probes: means over the folds, with 95 % intervals by Student's t over them.

Where all folds give the same, that would have no width, and Wilson's interval of all items stands there.
"""

from typing import Any, NamedTuple, Self

from bertcli.wings.evaluate.bootstrap import Figure, Record, Share, wilson
from bertcli.wings.evaluate.logistic import Fit
from bertcli.wings.evaluate.metrics import Numbers

# Student's t at 97.5 % for 3 to 10 folds, that is for 2 to 9 degrees of freedom.
STUDENT = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
FEWEST_FOLDS = 3


class OverFolds(Figure):
    """A mean over cross-validation folds with a t interval; `drawn` are the folds' values [fold]."""

    least = 0.0
    is_share = True

    @property
    def record(self) -> Record:
        low, high = self.value - self.half_width, self.value + self.half_width
        if self.is_share and low == high and 0 <= self.value <= 1:
            # Equal folds show no spread, though other items may differ: three right of three are not certain.
            low, high = wilson(Share(self.value * self.n, self.n))
        return {"value": self.value, "low": max(self.least, low), "high": min(1.0, high), "n": self.n}

    @property
    def half_width(self) -> float:
        """Half the width of the interval: t · s / √folds."""
        folds = len(self.drawn)
        t = STUDENT[folds - FEWEST_FOLDS]
        return float(t * self.drawn.std(ddof=1) / folds**0.5)

    @classmethod
    def of(cls, drawn: Numbers, items: int) -> Self:
        """Make the mean of the folds' values; `items` is the number of items in all folds."""
        return cls(float(drawn.mean()), drawn, items)


class Gain(OverFolds):
    """A mean over folds of a difference of two shares, which may be negative."""

    least = -1.0
    is_share = False


class LayerFigures(NamedTuple):
    """The figures of a layer's probes on held-out items, and the fits that were made.

    control_draws: accuracy [draw, fold] with labels drawn at random. confusion: how often a label was taken for another
    [true, predicted]; of a multi-label task only its diagonal has a meaning.
    """

    layer: int
    accuracy: Figure
    macro_f1: Figure
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
    def selectivity(self) -> Gain:
        """Accuracy less control, fold by fold."""
        control = self.control_draws.mean(axis=0)
        return Gain.of(self.accuracy.drawn - control, self.accuracy.n)

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
