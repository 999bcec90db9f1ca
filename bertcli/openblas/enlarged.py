"""Products in which a column's result is the same to the last bit, however many columns are computed together.

For OpenBLAS's AVX-512 kernel only: it sums small products in a different order, and a single column in yet another.
"""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from bertcli.blas import single_threaded
from bertcli.parts import Array

SMALL = 1_000_000  # multiplications up to which OpenBLAS treats a product as small


def multiply(weight: Array, columns: Array, into: Array) -> None:
    """into = weight · columns. A small product is made large enough with columns of zeros, at a cost of 10 µs."""
    count = columns.shape[1]
    enough = max(2, SMALL // max(1, weight.size) + 1)
    if count >= enough or count == 0:
        np.matmul(weight, columns, out=into)
        return
    padded = np.zeros((len(columns), enough), dtype=np.float32)
    padded[:, :count] = columns
    # Two threads would cost more in waiting than so small a product takes (one column of a large product is not small).
    with single_threaded() if enough > 2 else nullcontext():
        into[...] = np.matmul(weight, padded)[:, :count]
