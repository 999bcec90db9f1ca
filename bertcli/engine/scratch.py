"""Memory for results, used again once no array refers to it any more.

Fresh memory costs a page fault, a microsecond, for every 1,000 numbers. Measured as CPU time of a pass: on the bundled
model 15 % for batches of 512 to 2,048 tokens, on BERT-base 1 to 2 %.

Whether anything refers to a piece of memory is what Python counts anyway. (An owner that gives it back when it is
deleted would need no count, but an exception that a signal handler raises during a deletion is lost: a Ctrl-C too.)
"""

from __future__ import annotations

import sys
from threading import local

import numpy as np

from bertcli.engine.array import Array
from bertcli.engine.watcher import watched

SMALLEST = 1 << 15  # numbers; the allocator itself reuses smaller arrays
KEPT = 1 << 22  # numbers for each thread, 16 MiB
LINE = 16  # numbers in a cache line: passes over aligned memory are an eighth faster


class _Kept(local):
    """Per thread, the memory it has made, the oldest first; only this thread uses it again."""

    def __init__(self) -> None:
        self.memory: list[Array] = []


def _holders(memory: list[Array], index: int) -> int:
    return sys.getrefcount(memory[index])


_kept = _Kept()
_NOBODY = _holders([np.empty(1, dtype=np.float32)], 0)
_COUNTS = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()  # exactly


def scratch(count: int) -> Array:
    """An array of `count` numbers, uninitialized. A trace tells arrays apart by their memory: then it is always new."""
    if count < SMALLEST or watched() or not _COUNTS:
        return np.empty(count, dtype=np.float32)
    memory = _kept.memory  # this very list never changes: a signal handler that computes puts another in its place
    fitting = [(one.size, index) for index, one in enumerate(memory) if count <= one.size - LINE <= 2 * count]
    for _, index in sorted(fitting):
        array = _aligned(memory[index], count)
        # Counted after the array is made, so that a signal handler cannot be lent the same.
        if _holders(memory, index) == _NOBODY + 1:
            return array
    fresh = np.empty(count + LINE, dtype=np.float32)
    if fresh.size <= KEPT:
        made = [*memory, fresh]
        while sum(one.size for one in made) > KEPT:
            del made[0]  # whoever holds it keeps it
        _kept.memory = made
    return _aligned(fresh, count)


def _aligned(memory: Array, count: int) -> Array:
    start = -(memory.ctypes.data // 4) % LINE
    return memory[start : start + count]
