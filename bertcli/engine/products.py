"""Matrix products of a weight as it is stored, [out, in], with a few or many tokens, shared by the cores.

Activations are [token, feature] in column-major order: each feature's tokens are adjacent in memory. A product then
reads the stored weight in order and writes what the next one reads in order. It is never slower than the other order,
and at 16 to 128 tokens half as long again as fast.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from bertcli.engine import kernels
from bertcli.engine.blas import avx512, can_be_set
from bertcli.engine.seam import Array, Integers
from bertcli.engine.threads import each, sharing, thread_count

TILE = 24  # outputs: a multiple of the kernels' tiles, so that dividing them leaves no incomplete tile
PIECE = 1 << 22  # multiplications worth waking another thread for: 50 to 100 µs
FEW = 16  # tokens: fewer take as long, because it is reading the weight that takes the time
SMALL = 1_000_000  # multiplications up to which OpenBLAS, with AVX-512, reads a weight in place instead of copying it
STRIPS = (24, 12)  # outputs: the kernel's tiles; products of fewer are slower than those of a whole weight, copied
PORTION = 384  # inputs
OUTPUTS = 768  # at a time: what is summed of 8 portions, for 16 tokens, still fits a core's cache


def product(x: Array, weight: Array, bias: Array | None, activation: str | None) -> Array:
    """activation(x Wᵀ + b): if no other part of the batch keeps the cores busy, each computes some of the outputs.

    The library's own threads would leave the activation to one core. A small product uses one thread.
    """
    outputs, tokens = len(weight), len(x)
    y = empty_tokens(tokens, outputs)

    def compute(some: slice) -> None:
        _multiply(weight[some], x.T, y.T[some])
        kernels.activate(y[:, some], activation, None if bias is None else bias[some])

    count = min(thread_count(), weight.size * max(FEW, tokens) // PIECE)
    if sharing() or not can_be_set():  # a library that cannot be told to use one thread shares every product itself
        compute(slice(None))
    else:
        step = TILE * max(1, -(-outputs // (TILE * max(1, count))))
        each(compute, [slice(first, first + step) for first in range(0, outputs, step)])
    return y


def _multiply(weight: Array, columns: Array, into: Array) -> None:
    """into = weight · columns: [out, in], [in, token] -> [out, token].

    OpenBLAS copies both matrices into an order of its own before it multiplies, which for few columns takes as long as
    multiplying. With its AVX-512 kernel it multiplies small matrices in place: so the weight is cut into strips of rows
    and portions of inputs, all of them multiplied in one call. For 16 tokens this is 1.7 times as fast, for 128 tokens
    1.1 times.
    """
    (outputs, inputs), tokens = weight.shape, columns.shape[1]
    portion = _portion(inputs)
    strip = next((rows for rows in STRIPS if rows * portion * tokens <= SMALL), 0)
    whole = outputs // strip * strip if strip and tokens > 1 and avx512() and weight.flags.c_contiguous else 0
    for first in range(0, whole, OUTPUTS):
        some = slice(first, min(first + OUTPUTS, whole))
        small = weight[some].reshape(-1, strip, inputs // portion, portion).transpose(0, 2, 1, 3)
        products = np.matmul(small, columns.reshape(-1, portion, tokens))  # [strip, portion, output, token]
        np.add.reduce(products, axis=1, out=into[some].reshape(-1, strip, tokens, copy=False))
    if whole < outputs:
        np.matmul(weight[whole:], columns, out=into[whole:])


@cache
def _portion(inputs: int) -> int:
    """How many inputs of a small product are summed one after the other: so few that its rounding error is no larger
    than that of a large product, in which OpenBLAS does the same."""
    return next(
        (inputs // parts for parts in range(1, 65) if inputs % parts == 0 and inputs // parts <= PORTION), inputs
    )


def empty_tokens(tokens: int, hidden: int) -> Array:
    """An uninitialized array [token, hidden] in column-major order."""
    return np.empty((tokens, hidden), np.float32, order="F")


def scatter_rows(x: Array, into: Array, rows: Integers) -> None:
    """into[rows] = x, where `into` is row-major in memory."""
    for some in token_blocks(len(x)):
        into[rows[some]] = x[some]


def token_blocks(tokens: int) -> list[slice]:
    """A few tokens at a time, so that transposing them stays within the cache: 2.8 times as fast."""
    return [slice(first, first + 64) for first in range(0, tokens, 64)]
