"""Products in which a column's result is the same to the last bit among however many, where small ones alone differ.

So it is with OpenBLAS's AVX-512 kernel: it adds up small products in another order, and a single column in a third.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from bertcli.blas import single_threaded
from bertcli.parts import Array

SMALL = 1_000_000  # multiplications up to which OpenBLAS takes a product for a small one


def multiply(weight: Array, columns: Array, into: Array) -> None:
    """into = weight · columns. Where that is small, columns of zeros make it large enough, at a cost of 10 µs."""
    count = columns.shape[1]
    enough = max(2, SMALL // max(1, weight.size) + 1)
    if count >= enough or count == 0:
        np.matmul(weight, columns, out=into)
        return
    padded = np.zeros((len(columns), enough), dtype=np.float32)
    padded[:, :count] = columns
    # Two threads would wait for each other longer than such a product takes; a single column of a large one is no such.
    with single_threaded() if enough > 2 else nullcontext():
        into[...] = np.matmul(weight, padded)[:, :count]
