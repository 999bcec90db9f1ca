"""The OpenBLAS kernels whose routines are called here, and how each divides a product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Layout(NamedTuple):
    """Properties of a kernel that its routines' arguments do not convey."""

    kernel: str  # as spelt in the library's symbols
    portion: int  # inputs summed at a time; if more than that but less than twice as many are left, these are halved
    tile: int  # columns multiplied at a time; half a portion is rounded up to a multiple of it
    panel: int  # outputs multiplied at a time
    most: int  # columns of a call, so that a portion of them stays in the cache
    guarded: bool  # the outermost columns of a call are summed in another order: see `guarded`

    def portions(self, inputs: int) -> Iterator[tuple[int, int]]:
        """First input and number of inputs of each portion that OpenBLAS sums at a time."""
        start = 0
        while start < inputs:
            left, half = inputs - start, -(-(inputs - start) // (2 * self.tile)) * self.tile
            portion = left if left <= self.portion else self.portion if left >= 2 * self.portion else half
            yield start, portion
            start += portion

    def in_panels(self, outputs: int) -> int:
        """Outputs, rounded up to whole panels."""
        return -(-outputs // self.panel) * self.panel

    def shares(self, outputs: int, threads: int) -> list[tuple[int, int]]:
        """First output and number of outputs of each thread: whole panels, except for the last."""
        return _shares(outputs, threads, self.panel)

    def column_shares(self, columns: int, threads: int) -> list[tuple[int, int]]:
        """First column and number of columns of each thread: whole tiles, except for the last."""
        return _shares(columns, threads, self.tile)


def _shares(count: int, threads: int, whole: int) -> list[tuple[int, int]]:
    share = max(1, -(-count // (threads * whole))) * whole
    return [(first, min(share, count - first)) for first in range(0, count, share)]


# Portion and tile are OpenBLAS's own (its GEMM_Q and GEMM_UNROLL_M); panels are as wide as the kernel's inner loop.
AVX2 = Layout("HASWELL", portion=320, tile=8, panel=12, most=608, guarded=True)
AVX512 = Layout("SKYLAKEX", portion=448, tile=16, panel=24, most=448, guarded=False)
KNOWN = {each.kernel: each for each in (AVX2, AVX2._replace(kernel="ZEN"), AVX512)}


def layout(kernel: str | None) -> Layout | None:
    """The layout of the kernel with this name in OpenBLAS, if known."""
    return KNOWN.get((kernel or "").upper())
