"""Room for results, used again once nobody holds what was in it.

Fresh memory costs a page fault, a microsecond, for every 1,000 numbers: 20 ms of 520 for a batch of 1,024 tokens.
"""

from __future__ import annotations

import platform
import sys
from threading import local

import numpy as np
from numpy.typing import NDArray

from bertcli.parts import watched

Array = NDArray[np.float32]

SMALLEST = 1 << 15  # numbers; the allocator itself keeps what is smaller
LARGEST = 1 << 22  # a pass over one part of a batch needs no larger ones, and 16 MiB are not kept for nothing
SHELF = 12  # arrays kept for each thread: a layer holds up to eight at a time
LINE = 16  # numbers of a cache line: passes over aligned memory are an eighth faster


class _Shelf(local):
    """Of each thread: what it allocated; other threads may let go of an array, but only this one takes it up again."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def holders(self, index: int) -> int:
        return sys.getrefcount(self.arrays[index])


_shelf = _Shelf()


def room(count: int) -> Array:
    """`count` numbers that nobody else holds, on a cache line; their values are whatever was there."""
    if not SMALLEST <= count <= LARGEST or _NOBODY is None or watched():  # a trace knows arrays by their memory
        return _aligned(np.empty(count + LINE, dtype=np.float32), count)
    arrays = _shelf.arrays
    free = [index for index in range(len(arrays)) if _shelf.holders(index) == _NOBODY]
    fitting = [index for index in free if arrays[index].size >= count + LINE]
    if fitting:
        return _aligned(arrays[min(fitting, key=lambda index: arrays[index].size)], count)
    if len(arrays) >= SHELF:
        for index in reversed(free):
            del arrays[index]
    fresh = np.empty(-(-(count + LINE) // SMALLEST) * SMALLEST, dtype=np.float32)
    arrays.append(fresh)
    return _aligned(fresh, count)


def _aligned(array: Array, count: int) -> Array:
    start = -(array.ctypes.data // 4) % LINE
    return array[start : start + count]


def _nobody() -> int | None:
    """What `holders` says of an array on the shelf only; None where reference counts are not exact."""
    if platform.python_implementation() != "CPython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    shelf = _Shelf()
    shelf.arrays.append(np.empty(1, dtype=np.float32))
    return shelf.holders(0)


_NOBODY = _nobody()
