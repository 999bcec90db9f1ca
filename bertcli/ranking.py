"""The order of scores, best first, that does not depend on rounding."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-6  # of the largest number: what a result may differ by with the batch it is computed in


def best_first(scores: NDArray[Any], count: int | None = None) -> NDArray[np.intp]:
    """The indices of the `count` (None: all) largest of some scores [score], best first.

    Scores that differ by rounding alone from the best of them keep their order.
    """
    order = np.argsort(-scores, kind="stable")
    falling, rounding = -scores[order], ROUNDING * np.abs(scores).max(initial=0)
    last = len(order) if count is None else count
    end = 0
    for begin in np.flatnonzero(np.diff(falling) <= rounding).tolist():
        if end <= begin < last:
            end = int(np.searchsorted(falling, falling[begin] + rounding, side="right"))
            order[begin:end].sort()
    return order[:count]
