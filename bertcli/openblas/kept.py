"""Which weights are kept in panels: those that are used again and again, as in a program that stays.

So a single pass copies nothing but what OpenBLAS copies for itself. What is kept takes the place of the mapped file's
pages in memory, which are given back; in worker processes, which share those, nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

import numpy as np

from bertcli import blas, team
from bertcli.memory import give_back
from bertcli.openblas import guarded
from bertcli.openblas.guarded import PANEL
from bertcli.parts import Array

if TYPE_CHECKING:
    from bertcli.openblas.panels import Panels

OFTEN = 8  # uses, the last of which makes the panels; that takes as long as ten passes of 16 tokens with them
SMALLEST = 1 << 16  # numbers of a weight that is worth it
EVEN = 32  # inputs: OpenBLAS halves a number that is no multiple according to how many threads it has


class _Weight:
    """What is known of a weight; `itself` makes it forgotten when the weight is gone."""

    def __init__(self, itself: ReferenceType[Array]) -> None:
        self.itself, self.uses = itself, 0
        self.panels: Panels | None = None


_weights: dict[int, _Weight] = {}


def panels(weight: Array) -> Panels | None:
    """The weight's panels, once it has been asked for so often; None where there cannot be any, too."""
    key = id(weight)
    entry = _weights.get(key)
    if entry is None:
        entry = _weights[key] = _Weight(ref(weight, lambda _: _weights.pop(key, None)))
    entry.uses += 1
    if entry.uses == OFTEN and not team.is_worker():
        entry.panels = _make(weight)
    return entry.panels


def _make(weight: Array) -> Panels | None:
    from bertcli.openblas.panels import FEW, Panels  # a single pass need not wait for these
    from bertcli.openblas.routines import NUMBER, routines

    use, (outputs, inputs) = routines(blas.kernel() or ""), weight.shape
    if use is None or weight.size < SMALLEST or outputs < PANEL or inputs % EVEN or weight.strides[1] != NUMBER:
        return None
    try:
        made = Panels(weight, use)
    except MemoryError:  # it goes on without
        return None
    if not (_same(made, weight, 9) and _same(made, weight[: 2 * PANEL], FEW + 9)):
        return None
    give_back(weight)
    return made


def _same(panels: Panels, weight: Array, columns: int) -> bool:
    """True if products with as many columns are those without panels: of the weight, or its first outputs."""
    x = np.random.default_rng(0).standard_normal((weight.shape[1], columns), dtype=np.float32)
    found, expected = np.empty((2, len(weight), columns), np.float32)
    panels.multiply(x, None, found)
    with blas.single_threaded():
        guarded.multiply(weight, x, None, expected)
    return np.array_equal(found, expected, equal_nan=True)
