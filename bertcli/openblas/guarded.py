"""Products with OpenBLAS's AVX2 kernel in which a column's result does not depend on how many are computed together.

The kernel takes 12 outputs and 8 columns at a time and sums over the inputs one after the other. But from 16 columns on
it sums even and odd inputs separately in the first 8 and the last 8 columns of a block; and if more than 3 outputs are
left over, they are computed by another routine, which always does so. Therefore blocks have 8 columns of zeros on
either side, and no outputs are left over. That is an eighth more columns for one sentence of 128 tokens, a twentieth
for many, none for up to 15, and copies of the input and the output: the price of one vector for one text.
"""

from __future__ import annotations

import numpy as np

from bertcli.blas import kernel
from bertcli.memory import room
from bertcli.openblas.layouts import AVX2, layout
from bertcli.parts import Array

TILE = AVX2.tile  # columns
FEW = 15  # columns: with so few, none is summed like an outer one
MOST = 304  # columns of a block: with the guards, the most that OpenBLAS processes as one block
BLOCKS = 2  # at a time: OpenBLAS divides this many columns into two equal blocks, and copies the weights once for both
PANEL = AVX2.panel  # outputs
SHARE = 96  # outputs: an OpenBLAS thread gets a multiple of 32, and none are left over
EVEN = 32  # inputs: with other numbers, where OpenBLAS halves the last portion depends on the number of threads
ENOUGH = 1 << 19  # multiplications per thread: twice what OpenBLAS requires


def needed() -> bool:
    """True if products are computed by this kernel."""
    known = layout(kernel())
    return known is not None and known.guarded


def by_own_threads(outputs: int, inputs: int, columns: int, threads: int) -> int:
    """How many of the outputs OpenBLAS's own threads can divide among themselves without changing a bit; maybe none.

    They divide the outputs, rather than the columns, if that makes their parts squarer; and every thread gets a part,
    unless there is little to do.
    """
    whole = outputs - outputs % (SHARE * threads)
    widest = min(columns, BLOCKS * MOST) + 3 * BLOCKS * TILE  # each block has two guards, and padding to a whole tile
    squarer = 2 * whole > widest * threads
    return whole if squarer and whole * inputs * columns >= ENOUGH * threads else 0


def multiply(weight: Array, columns: Array, bias: Array | None, into: Array) -> None:
    """into = weight · columns + bias: [out, in], [in, column] -> [out, column]."""
    outputs, count = into.shape
    if outputs < PANEL:
        weight = np.concatenate([weight, np.zeros((PANEL - outputs, weight.shape[1]), dtype=np.float32)])
    elif 1 < count <= FEW:
        _multiply(weight, columns, into)
        if bias is not None:
            np.add(into, bias[:, None], out=into)
        return
    step = TILE * -(-count // (TILE * max(1, -(-count // (BLOCKS * MOST)))))
    for first in range(0, count, max(1, step)):
        some = slice(first, first + step)
        _multiply_guarded(weight, columns[:, some], bias, into[:, some])


def _multiply_guarded(weight: Array, columns: Array, bias: Array | None, into: Array) -> None:
    outputs, count = into.shape
    blocks, guard = -(-count // MOST), TILE if count > FEW else 0
    inside = TILE * -(-count // (TILE * blocks)) if guard else max(2, count)
    guarded, result = (
        room(rows * blocks * (inside + 2 * guard)).reshape(rows, blocks, -1) for rows in (len(columns), len(weight))
    )
    cuts = [slice(first, min(first + inside, count)) for first in range(0, count, inside)]
    inner = [slice(guard, guard + cut.stop - cut.start) for cut in cuts]
    for block, (cut, place) in enumerate(zip(cuts, inner, strict=True)):
        guarded[:, block, :guard] = 0
        guarded[:, block, place] = columns[:, cut]
        guarded[:, block, place.stop :] = 0
    _multiply(weight, guarded.reshape(len(columns), -1), result.reshape(len(weight), -1))
    for block, (cut, place) in enumerate(zip(cuts, inner, strict=True)):
        np.add(result[:outputs, block, place], 0 if bias is None else bias[:, None], out=into[:, cut])


def _multiply(weight: Array, columns: Array, into: Array) -> None:
    """weight · columns; if fewer than 12 outputs are left over, the last 12 are computed apart, some of them twice."""
    whole = len(weight) - len(weight) % PANEL
    np.matmul(weight[:whole], columns, out=into[:whole])
    if whole < len(weight):
        np.matmul(weight[-PANEL:], columns, out=into[-PANEL:])
