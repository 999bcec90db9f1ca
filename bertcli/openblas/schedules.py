"""The arguments and the order of the calls of OpenBLAS's routines for a product with a weight in panels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, zip_longest
from threading import local
from typing import NamedTuple

import numpy as np

from bertcli.memory import pages
from bertcli.openblas.layouts import Layout
from bertcli.openblas.routines import NUMBER, Calls, Routines, address
from bertcli.parts import Array

MOST_SCHEDULES = 64  # kept for each thread
SLACK = 1024  # numbers after panels that the kernel may read ahead

ENOUGH = 1 << 14  # numbers to copy that are worth another thread

_NOTHING = np.empty(0, np.float32)


def pieces(layout: Layout, columns: int, guarded: bool) -> list[tuple[int, int, int]]:
    """Where columns are in the result: (first, count, place). An incomplete tile comes after the second guard."""
    full = columns - columns % layout.tile
    return [(0, full, layout.tile), (full, columns - full, full + 2 * layout.tile)] if guarded else [(0, columns, 0)]


def width(layout: Layout, columns: int, guarded: bool) -> int:
    """Number of columns including guards."""
    return columns + 2 * layout.tile if guarded else columns


def calls(layout: Layout, columns: int, guarded: bool) -> list[tuple[int, int]]:
    """Place and number of columns of each kernel call: all at once, or by tiles if outermost columns would differ."""
    tile = layout.tile
    if guarded:
        return [(0, width(layout, columns, guarded))]
    last = max(0, columns - columns % tile - tile) if layout.guarded else 0
    return [*((place, tile) for place in range(0, last, tile)), (last, columns - last)]


class Product(NamedTuple):
    """Everything the calls of a product depend on, except the arrays' addresses."""

    use: Routines
    all_rows: int  # outputs of the weight, in whole panels
    inputs: int
    first: int  # first output to compute
    rows: int  # outputs to compute
    columns: int
    guarded: bool
    threads: int
    x_across: int  # numbers from one row of x to the next
    across: int  # and of the result


X, PANELS, INTO, X_PANELS = range(1, 5)
Argument = int | tuple[int, int]  # a number; or one of these arrays and an offset in it


def _steps(product: Product) -> Iterator[list[tuple[Argument, ...]]]:
    """Routine and arguments of the calls of each step, which can run at the same time.

    For each portion of the inputs the columns are copied into panels, and then each thread adds to its outputs. Guards
    are left uninitialised: their results are in columns that are never read.
    """
    use, columns, guarded = product.use, product.columns, product.guarded
    layout = use.layout
    for start, portion in layout.portions(product.inputs):
        for first, count, place in pieces(layout, columns, guarded):
            if not count:
                continue
            threads = max(1, min(product.threads, portion * count // ENOUGH))
            yield [
                (
                    use.columns, portion, some, (X, start * product.x_across + first + column), product.x_across,
                    (X_PANELS, (place + column) * portion),
                )
                for column, some in layout.column_shares(count, threads)
            ]  # fmt: skip
        for place, count in calls(layout, columns, guarded):
            yield [
                (
                    use.multiply, count, some, portion, (X_PANELS, place * portion),
                    (PANELS, product.all_rows * start + (product.first + first) * portion),
                    (INTO, first * product.across + place), product.across,
                )
                for first, some in layout.shares(product.rows, product.threads)
            ]  # fmt: skip


class Schedule:
    """The calls of a product, complete except for the arrays' addresses."""

    def __init__(self, product: Product) -> None:
        steps = list(_steps(product))
        called, *arguments = zip_longest(*chain(*steps), fillvalue=0)
        placed = [
            [(one[0], NUMBER * one[1]) if isinstance(one, tuple) else (0, one) for one in each] for each in arguments
        ]
        arrays, numbers = np.array(placed).T
        self.calls = Calls(np.array(called), numbers, [len(step) for step in steps])
        self.numbers = self.calls.arguments.copy()
        self.arrays = np.zeros_like(self.numbers)
        self.arrays[:, Calls.ORDER] = arrays

    def run(self, *places: int) -> None:
        """Compute the product; `places` are the addresses of X, PANELS and so on."""
        np.add(self.numbers, np.array((0, *places))[self.arrays], out=self.calls.arguments)
        self.calls.run()


class _Schedules(local):
    """Per thread: schedules, since making one takes as long as a small product, and memory for the columns' panels.

    Both are taken out while in use: a signal handler that computes in the meantime makes its own.
    """

    def __init__(self) -> None:
        self.made: dict[Product, Schedule] = {}
        self.rooms: list[tuple[Array, int]] = []  # arrays and their addresses

    def run(self, product: Product, *places: int) -> None:
        """Compute the product; `places` are the addresses of X, PANELS and INTO. Errors: MemoryError."""
        layout = product.use.layout
        needed = width(layout, product.columns, product.guarded) * layout.portion + SLACK
        schedule = self.made.pop(product, None) or Schedule(product)
        x_panels, where = self.rooms.pop() if self.rooms else (_NOTHING, 0)
        try:
            if x_panels.size < needed:
                x_panels = pages(needed)
                where = address(x_panels)
            schedule.run(*places, where)
        finally:
            if len(self.made) >= MOST_SCHEDULES:
                self.made.clear()
            self.made[product] = schedule
            self.rooms.append((x_panels, where))


schedules = _Schedules()
