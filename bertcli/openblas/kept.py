"""Which weights are kept in panels: those that are used repeatedly, in other passes or other parts of a batch.

So a short pass copies nothing beyond OpenBLAS's own copies. In memory, panels replace the mapped file's pages, which
are released. Weights that were converted to float32 have no such pages and are held twice, up to a limit. Worker
processes share the mapped pages and keep no panels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

import numpy as np

from bertcli import blas, team
from bertcli.memory import give_back, is_mapped
from bertcli.openblas import enlarged, guarded
from bertcli.openblas.guarded import EVEN
from bertcli.openblas.layouts import Layout, layout
from bertcli.parts import Array

if TYPE_CHECKING:
    from bertcli.openblas.panels import Panels
    from bertcli.openblas.routines import Routines

OFTEN = 8  # uses, the last of which makes the panels; making them takes as long as ten passes of 16 tokens with them
SMALLEST = 1 << 16  # numbers in a weight that is worth it
TWICE = 350_000_000  # bytes of panels for converted weights: enough for BERT-base


class _Weight:
    """What is known about a weight; the weak reference `itself` removes the entry when the weight is deleted."""

    def __init__(self, itself: ReferenceType[Array]) -> None:
        self.itself, self.uses, self.tried = itself, 0, False
        self.panels: Panels | None = None
        self.twice = 0  # bytes


_weights: dict[int, _Weight] = {}


def usable() -> Routines | None:
    """The routines that make and multiply panels; None if there are none, as with another kernel or library."""
    from bertcli.openblas.routines import routines  # imported late: a short pass does not need it

    known = layout(blas.kernel())
    return None if known is None else routines(known)


def panels(weight: Array) -> Panels | None:
    """The weight's panels once it has been used often enough; otherwise, or if it cannot have any, None."""
    if layout(blas.kernel()) is None:  # no need to count its uses
        return None
    key = id(weight)
    entry = _weights.get(key)
    if entry is None:
        entry = _weights[key] = _Weight(ref(weight, lambda _: _weights.pop(key, None)))
    entry.uses += 1
    if entry.uses >= OFTEN and not entry.tried and not team.is_worker():
        entry.tried = True
        entry.twice = 0 if is_mapped(weight) else weight.nbytes
        if sum(other.twice for other in list(_weights.values()) if other.panels is not None) + entry.twice <= TWICE:
            entry.panels = _make(weight)
    return entry.panels


def _make(weight: Array) -> Panels | None:
    from bertcli.openblas.panels import UNGUARDED, Panels

    use = usable()
    if use is None or not _fits(weight, use.layout):
        return None
    try:
        made = Panels(weight, use)
        same = _same(made, weight, 9) and _same(made, weight[: 2 * use.layout.panel], UNGUARDED + 9)
    except MemoryError:  # continue without panels
        return None
    if not same:
        return None
    give_back(weight)
    return made


def _fits(weight: Array, layout: Layout) -> bool:
    """True if a weight is worth panels and can have them; it must be read-only, as later writes would go unnoticed."""
    (outputs, inputs), fixed = weight.shape, not weight.flags.writeable
    worth = weight.size >= SMALLEST and outputs >= layout.panel and inputs % EVEN == 0
    return worth and fixed and weight.dtype == np.float32 and weight.strides[1] == weight.itemsize


def _same(made: Panels, weight: Array, columns: int) -> bool:
    """True if products with this many columns equal those without panels, for the weight or its first outputs."""
    x = np.random.default_rng(0).standard_normal((weight.shape[1], columns), dtype=np.float32)
    found, expected = np.empty((2, len(weight), columns), np.float32)
    made.multiply(x, None, found)
    with blas.single_threaded():
        ordinary(weight, x, expected)
    return np.array_equal(found, expected, equal_nan=True)


def ordinary(weight: Array, x: Array, into: Array) -> None:
    """The product without panels."""
    if guarded.needed():
        guarded.multiply(weight, x, None, into)
    else:
        enlarged.multiply(weight, x, into)
