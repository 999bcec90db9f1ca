"""Products with weights stored in panels, the order in which OpenBLAS's kernel reads them.

OpenBLAS copies a weight into panels in every product, which takes as long as a product with 16 columns itself. With
the AVX2 kernel, the guards that `guarded` puts around columns require no copies here, as they are put into the panels;
up to 32 columns need no guards, as the kernel is called for 8 at a time. Results equal those without panels to the
last bit, as numbers are summed in the same portions.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from bertcli import blas
from bertcli.memory import pages, room
from bertcli.openblas.crowding import crowding
from bertcli.openblas.routines import NUMBER, Calls, Routines, address
from bertcli.openblas.schedules import SLACK, Product, pieces, schedules, width
from bertcli.parts import Array

UNGUARDED = 32  # columns up to which calls for 8 (the last one for up to 15) are faster than guards
ENOUGH = 1 << 18  # multiplications worth another thread


class Panels:
    """A weight [out, in] in panels: for each portion of the inputs, the panels of all outputs, the last zero-padded."""

    def __init__(self, weight: Array, use: Routines) -> None:
        """Errors: MemoryError."""
        (outputs, self.inputs), self.use, panel = weight.shape, use, use.layout.panel
        self.rows = use.layout.in_panels(outputs)
        self.numbers = pages(self.rows * self.inputs + SLACK)
        self.address = address(self.numbers)
        full = outputs - outputs % panel
        self._copy(weight[:full], 0)
        if full < outputs:
            rest = np.zeros((panel, self.inputs), np.float32)
            rest[: outputs - full] = weight[full:]
            self._copy(rest, full)

    def _copy(self, weight: Array, first: int) -> None:
        across, layout = weight.strides[0] // NUMBER, self.use.layout
        threads = min(blas.threads() or 1, len(weight) // layout.panel)
        steps = [
            [
                (portion, count, address(weight) + NUMBER * (row * across + start), across,
                 self.address + NUMBER * (self.rows * start + (first + row) * portion), 0, 0)
                for row, count in layout.shares(len(weight), threads)
            ]
            for start, portion in layout.portions(self.inputs)
        ]  # fmt: skip
        arguments = np.array([call for step in steps for call in step])
        Calls(np.full(len(arguments), self.use.rows), arguments, [len(step) for step in steps]).run()

    def multiply(self, x: Array, bias: Array | None, into: Array, first: int = 0) -> None:
        """into = weight · x + bias for the outputs from `first`, where a panel begins: [in, column] -> [out, column].

        OpenBLAS's threads share the outputs. Errors: ValueError for shapes that do not match.
        """
        columns, layout = x.shape[1], self.use.layout
        fits = first % layout.panel == 0 and first + layout.in_panels(len(into)) <= self.rows
        if x.shape != (self.inputs, into.shape[1]) or not fits:
            raise ValueError(f"x {x.shape}, result {into.shape}, first {first}: weight {self.rows} × {self.inputs}")
        if not into.size:
            return
        if x.dtype != np.float32 or x.strides[1] != NUMBER:
            x = np.ascontiguousarray(x, np.float32)
        step = layout.tile * -(-columns // (layout.tile * -(-columns // layout.most)))
        for start in range(0, columns, step):
            some = slice(start, start + step)
            self._multiply(x[:, some], bias, into[:, some], first, layout.guarded and columns > UNGUARDED)

    def _multiply(self, x: Array, bias: Array | None, into: Array, first: int, guarded: bool) -> None:
        (outputs, columns), layout = into.shape, self.use.layout
        rows = layout.in_panels(outputs)
        in_place = not guarded and rows == outputs and into.strides[1] == NUMBER
        across = width(layout, columns, guarded)
        result = into if in_place else room(rows * across).reshape(rows, across)
        result.fill(0)
        work = rows * self.inputs * columns
        threads = crowding.threads(max(1, min(blas.threads() or 1, rows // layout.panel, work // ENOUGH)))
        strides = x.strides[0] // NUMBER, result.strides[0] // NUMBER
        product = Product(self.use, self.rows, self.inputs, first, rows, columns, guarded, threads, *strides)
        start = perf_counter()
        schedules.run(product, address(x), self.address, address(result))
        crowding.took(perf_counter() - start, work, columns, threads)
        if bias is not None or not in_place:
            for start, count, place in pieces(layout, columns, guarded):
                some = slice(start, start + count)
                found = result[:outputs, place : place + count]
                np.add(found, 0 if bias is None else bias[:, None], out=into[:, some])
