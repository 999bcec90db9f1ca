"""Matrix products, and how the cores share the work of a pass: what `ops.py` is built on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import numpy as np

from bertcli import kernels
from bertcli.blas import exact, single_threaded, threads
from bertcli.memory import room
from bertcli.openblas import enlarged, guarded, kept
from bertcli.parts import Array, Integers, watched
from bertcli.team import one_by_one, share, sharing, thread_count

T = TypeVar("T")

TILE = 24  # outputs: a multiple of the kernels' tiles, so that dividing them leaves no incomplete tile
WORTH_SHARING = 1 << 28  # multiplications of a layer's smallest product: 1 ms, twenty times what waking a thread takes
WORTH_SHARING_EXACTLY = 1 << 23  # the same where the library's own threads cannot be used


def each(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """Run `work`, a few ops, on every piece, with one thread per product; on all cores unless a watcher is set."""
    if sharing():
        one_by_one(work, pieces)
        return
    with single_threaded() as alone:
        (share if alone and not watched() else one_by_one)(work, pieces)


def each_or_whole(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """The same, but for a single piece all threads share each product."""
    (each if len(pieces) > 1 else one_by_one)(work, pieces)


def scatter_rows(x: Array, into: Array, rows: Integers) -> None:
    """into[rows] = x, where `into` is row-major in memory."""
    for some in token_blocks(len(x)):
        into[rows[some]] = x[some]


def token_blocks(tokens: int) -> list[slice]:
    """A few tokens at a time, so that transposing them stays within the cache: 2.8 times as fast."""
    return [slice(first, first + 64) for first in range(0, tokens, 64)]


_cuts: ContextVar[tuple[slice, ...]] = ContextVar("cuts", default=())


@contextmanager
def in_row_parts(parts: Sequence[slice]) -> Iterator[None]:
    """Inside, a product over a whole batch is computed part by part (slices of rows), as in an unwatched pass.

    This is because the last bit of a number may depend on the number of columns of a product, and of threads.
    """
    if len(parts) < 2:
        yield
        return
    before = _cuts.set(tuple(parts))
    try:
        with single_threaded():
            yield
    finally:
        _cuts.reset(before)


def product(x: Array, weight: Array, bias: Array | None, activation: str | None) -> Array:
    """activation(x Wᵀ + b): if no other part of the batch keeps the cores busy, each computes some of the outputs.

    One sentence of 512 tokens is then 1.2 times as fast as with OpenBLAS's own threads, which leave the activation to
    one core. Smaller products are left to OpenBLAS, whose spinning threads start 60 µs sooner, but only where that
    cannot change the result: their number may depend on what else happens in the process.
    """
    y = empty_tokens(len(x), len(weight))
    panels, cuts = kept.panels(weight), _cuts.get()
    parts = cuts if cuts and cuts[-1].stop == len(x) else (slice(None),)
    smallest_product = len(x) * min(weight.shape) ** 2

    def compute(outputs: slice) -> None:
        some, some_bias = y[:, outputs], None if bias is None else bias[outputs]
        for rows in parts:
            if panels is not None:
                panels.multiply(x.T[:, rows], some_bias, some.T[:, rows], outputs.start or 0)
            elif guarded.needed():  # it copies the results, and adds the bias while doing so
                guarded.multiply(weight[outputs], x.T[:, rows], some_bias, some.T[:, rows])
            else:
                enlarged.multiply(weight[outputs], x.T[:, rows], some.T[:, rows])
        kernels.activate(some, activation, None if panels is not None or guarded.needed() else some_bias)

    if sharing() or cuts or (panels is not None and smallest_product < WORTH_SHARING):
        compute(slice(None))
    elif smallest_product < WORTH_SHARING and (by_library := _shared_by_library(weight, len(x))):
        compute(slice(by_library))
        if by_library < len(weight):
            with single_threaded():
                compute(slice(by_library, None))
    elif smallest_product < WORTH_SHARING_EXACTLY:
        with single_threaded():
            compute(slice(None))
    else:
        step = -(-len(weight) // (thread_count() * TILE)) * TILE
        each(compute, [slice(first, first + step) for first in range(0, len(weight), step)])
    return y


def _shared_by_library(weight: Array, columns: int) -> int:
    """How many of the outputs the library's own threads may divide among themselves without changing a bit."""
    outputs, inputs = weight.shape
    if inputs % guarded.EVEN:
        return 0
    if guarded.needed():
        return guarded.by_own_threads(outputs, inputs, columns, threads() or 1)
    return outputs if exact() else 0


def matmul(x: Array, y: Array, into: Array | None) -> Array:
    """x y for every head of every sentence.

    A single row is computed twice: NumPy would pass it alone to another routine, whose order of summation depends on
    the memory layout of y, and so on what else is in the batch.
    """
    if x.shape[-2] > 1:
        return np.matmul(x, y, out=into)
    twice: Array = np.matmul(np.repeat(x, 2, axis=-2), y)
    if into is None:
        return twice[..., :1, :]
    into[...] = twice[..., :1, :]
    return into


def empty_tokens(tokens: int, hidden: int) -> Array:
    """An uninitialised array [token, hidden] in column-major order: each feature's tokens are adjacent in memory.

    With this layout a product reads the stored weights [out, in] in order, and writes what the next one reads in order.
    It is never slower, and 1.5 times as fast at 128 tokens, 2.7 times at 16.
    """
    return room(hidden * tokens).reshape(hidden, tokens).T
