"""Products with OpenBLAS's AVX2 kernel in which a column's result is the same to the last bit among however many.

The kernel takes 12 outputs and 8 columns at a time and adds up along the inputs, one after the other. But from 16
columns on it adds up even and odd inputs apart in the first 8 and the last 8 of a block; and what is left of the
outputs, if it is more than 3, another routine computes, which always does so. Therefore blocks have 8 columns of zeros
on either side, and no such rest is left. That is an eighth more columns for one sentence of 128 tokens, a twentieth for
many, none for up to 15, and copies of what goes in and comes out: the price of one vector for one text.
"""

from __future__ import annotations

import numpy as np

from bertcli.blas import kernel
from bertcli.memory import room
from bertcli.openblas.layouts import AVX2, layout
from bertcli.parts import Array

TILE = AVX2.tile  # columns
FEW = 15  # columns, of which none is an outer one
MOST = 304  # columns of a block: with the guards, as many as OpenBLAS takes for one
BLOCKS = 2  # at a time: OpenBLAS takes this many for two blocks of one size, and copies the weights once for both
PANEL = AVX2.panel  # outputs
SHARE = 96  # outputs: a thread of OpenBLAS's has a multiple of 32, and no rest here
EVEN = 32  # inputs: OpenBLAS halves what is left of another number here with one thread, there with more
ENOUGH = 1 << 19  # multiplications for each thread: twice what OpenBLAS asks for


def needed() -> bool:
    """True if products are computed by this kernel."""
    known = layout(kernel())
    return known is not None and known.guarded


def by_own_threads(outputs: int, inputs: int, columns: int, threads: int) -> int:
    """How many of the outputs OpenBLAS's own threads can share out among themselves and not change a bit; maybe none.

    They share out the outputs, and not the columns, where that makes their parts squarer; and each has a part, unless
    there is little to do.
    """
    whole = outputs - outputs % (SHARE * threads)
    widest = min(columns, BLOCKS * MOST) + 3 * BLOCKS * TILE  # each block has two guards, and is filled up
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
    """weight · columns; the last 12 outputs by themselves where fewer would be left, some of them once more."""
    whole = len(weight) - len(weight) % PANEL
    np.matmul(weight[:whole], columns, out=into[:whole])
    if whole < len(weight):
        np.matmul(weight[-PANEL:], columns, out=into[-PANEL:])
