"""The kernels of OpenBLAS's whose routines are called here, and how each takes a product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Layout(NamedTuple):
    """What the arguments of a kernel's routines do not say."""

    kernel: str  # as the library's names spell it
    portion: int  # inputs that are added up at a time, unless fewer than twice as many are left: these are halved
    tile: int  # columns that are multiplied at a time; and half a portion is rounded up to a multiple of it
    panel: int  # outputs that are multiplied at a time
    most: int  # columns of a call, of which a portion stays in the cache
    guarded: bool  # the outermost columns of a call are added up in another order: see `guarded`

    def portions(self, inputs: int) -> Iterator[tuple[int, int]]:
        """First and number of the inputs that OpenBLAS adds up at a time."""
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
        """First and number of the outputs of each thread: whole panels, but of the last."""
        return _shares(outputs, threads, self.panel)

    def column_shares(self, columns: int, threads: int) -> list[tuple[int, int]]:
        """First and number of the columns of each thread: whole tiles, but of the last."""
        return _shares(columns, threads, self.tile)


def _shares(count: int, threads: int, whole: int) -> list[tuple[int, int]]:
    share = max(1, -(-count // (threads * whole))) * whole
    return [(first, min(share, count - first)) for first in range(0, count, share)]


# Portion and tile are OpenBLAS's own (its GEMM_Q and GEMM_UNROLL_M); panels are as wide as the kernel's inner loop.
AVX2 = Layout("HASWELL", portion=320, tile=8, panel=12, most=608, guarded=True)
AVX512 = Layout("SKYLAKEX", portion=448, tile=16, panel=24, most=448, guarded=False)
KNOWN = {each.kernel: each for each in (AVX2, AVX2._replace(kernel="ZEN"), AVX512)}


def layout(kernel: str | None) -> Layout | None:
    """That of the kernel OpenBLAS calls so, if it is known."""
    return KNOWN.get((kernel or "").upper())
