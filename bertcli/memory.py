"""Memory for results, reused once nothing refers to its contents any more.

Fresh memory costs a page fault, a microsecond, for every 1,000 numbers: 20 ms of 520 for a batch of 1,024 tokens.

An array is reused only for requests of at least half its size, and one that has become too small is replaced, so the
memory kept is about the peak in use. An array on the shelf is free when, by its reference count, nothing but the shelf
holds it.
"""

from __future__ import annotations

import mmap
import os
import platform
import sys
from contextlib import suppress
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.parts import Array, watched

SMALLEST = 1 << 15  # numbers; the allocator itself reuses smaller arrays
LARGEST = 1 << 22  # a pass over one part of a batch needs no larger arrays, and they are too big (16 MiB) to keep idle
SHELF = 16  # arrays kept for each thread: a layer holds up to nine at a time, of three or four sizes
HUGE = 1 << 22  # bytes from which NumPy, too, asks the system for pages of 2 MiB
LINE = 16  # numbers in a cache line: passes over aligned memory are an eighth faster


class _Shelf(local):
    """Per thread, the arrays it allocated; other threads may release an array, but only this one reuses it."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def holders(self, index: int) -> int:
        return sys.getrefcount(self.arrays[index])


_shelf = _Shelf()


def room(count: int) -> Array:
    """An array of `count` numbers that nothing else uses, uninitialised, aligned to a cache line if it is large."""
    if count < SMALLEST:
        return np.empty(count, dtype=np.float32)
    if count > LARGEST or _NOBODY is None or watched():  # a trace identifies arrays by their memory
        return _aligned(np.empty(count + LINE, dtype=np.float32), count)
    arrays = _shelf.arrays
    free = [index for index in range(len(arrays)) if _shelf.holders(index) == _NOBODY]
    free.sort(key=lambda index: arrays[index].size)
    full = len(arrays) >= SHELF
    fitting = next((index for index in free if arrays[index].size >= count), None)
    if fitting is not None and (full or arrays[fitting].size <= 2 * count):
        return arrays[fitting][:count]
    outgrown = next((index for index in reversed(free) if arrays[index].size < count), None)
    if outgrown is not None and (full or count <= 2 * arrays[outgrown].size):
        del arrays[outgrown]
    elif full:
        del arrays[0]  # its holder keeps it
    fresh = pages(-(-count // SMALLEST) * SMALLEST)
    arrays.append(fresh)
    return fresh[:count]


def pages(count: int) -> Array:
    """An array of `count` numbers on memory pages of its own, which go back to the system when it is dropped.

    In the allocator's heap such arrays would leave holes between small, lasting ones: 4 MB of 105 with the smallest
    model.
    """
    how = {"access": mmap.ACCESS_COPY} if hasattr(os, "fork") else {}  # a forked child gets its own copy
    try:
        mapped = mmap.mmap(-1, 4 * count, **how)
    except OSError as error:
        raise MemoryError from error
    if 4 * count >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a system without huge pages
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(mapped, dtype=np.float32)


def shape_only(shape: tuple[int, ...], dtype: type[np.generic] = np.float32) -> NDArray[Any]:
    """An array with a shape but no memory: all its strides are 0, whatever its size."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def is_shape_only(array: Array) -> bool:
    """True if an array was made by `shape_only`, as in a pass without weights."""
    return not any(array.strides)


def is_mapped(array: Array) -> bool:
    """True if the numbers are those of a file that is mapped into memory read-only."""
    owner = _owner(array)
    return isinstance(owner, mmap.mmap) and not np.frombuffer(owner, np.uint8).flags.writeable


def give_back(array: Array) -> None:
    """Release the memory of an array that `is_mapped`; it is read from the file again when used."""
    owner = _owner(array)
    if not is_mapped(array) or not isinstance(owner, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = array.ctypes.data - np.frombuffer(owner, np.uint8).ctypes.data
    first, last = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if first < last:
        owner.madvise(mmap.MADV_DONTNEED, first, last - first)


def _owner(array: Array) -> object:
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner


def _aligned(array: Array, count: int) -> Array:
    start = -(array.ctypes.data // 4) % LINE
    return array[start : start + count]


def _nobody() -> int | None:
    """What `holders` returns for an array that only the shelf holds; None where reference counts are not exact."""
    if platform.python_implementation() != "CPython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    shelf = _Shelf()
    shelf.arrays.append(np.empty(1, dtype=np.float32))
    return shelf.holders(0)


_NOBODY = _nobody()
