"""The routines from which OpenBLAS builds its own products, and the threads it runs them on.

OpenBLAS copies both matrices of a product into panels, the order in which its kernel reads them, and has the kernel
multiply panel by panel. The library exports these routines alongside the documented ones, a set for every kernel; their
arguments have been the same since GotoBLAS. How calls reach its threads differs between releases, so these routines are
used only with releases they were tested on.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from ctypes import addressof, c_char_p, c_float, c_int64, c_void_p, cast
from functools import cache
from platform import machine
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli import blas
from bertcli.openblas.layouts import Layout

RELEASES = ((0, 3, 27), (0, 3, 31))  # of OpenBLAS, first and last
PTHREADS = 1  # what openblas_get_parallel returns if OpenBLAS has threads of its own

NUMBER = 4  # bytes

Integers = NDArray[np.int64]


class Routines(NamedTuple):
    """Addresses of a kernel's routines, which take integers and addresses; `across` is the row stride in numbers.

    A panel's layout is private to the kernel; only its size is known: as many numbers as were copied in.
    """

    layout: Layout
    columns: int  # (inner, columns, matrix [inner, column], across, panel)
    rows: int  # (inner, rows, matrix [row, inner], across, panel)
    multiply: int  # (columns, rows, inner, columns' panel, rows' panel, into [row, column], across): adds to `into`


@cache
def routines(layout: Layout) -> Routines | None:
    """The routines of an OpenBLAS kernel, if this library exports them and is a release known here."""
    found = [blas.symbol(f"sgemm_{name}_{layout.kernel}") for name in ("itcopy", "oncopy", "kernel")]
    if _execute() is None or None in found:
        return None
    return Routines(layout, *(cast(each, c_void_p).value or 0 for each in found))


class Calls:
    """Runs routine calls in steps. The first call of a step runs in the calling thread, the rest on OpenBLAS's threads
    at the same time.

    A step must not have more calls than OpenBLAS may use threads: it wakes sleeping threads only once it has found one
    for every call. Only one thread at a time may run this.

    OpenBLAS reads the entries of its queue. They say (`MODE`) that the calls are single precision and level 1: their
    arguments are then passed where, on x86-64, each of these routines expects its own, in registers and the seventh
    integer on the stack.
    """

    MODE = 0x8002
    ENTRY = np.dtype(
        [("routine", "i8"), ("position", "i8"), ("assigned", "i8"), ("arguments", "i8"), ("ranges", "i8", 2),
         ("buffers", "i8", 2), ("next", "i8"), ("locks", "V88"), ("mode", "i4"), ("status", "i4"), ("more", "V88")]
    )  # fmt: skip
    FACTOR, ORDER = 4, (6, 7, 8, 0, 9, 1, 10)  # places among its fifteen arguments: alpha; m, n, k, a, lda, b, ldb

    def __init__(self, called: Integers, arguments: Integers, steps: Sequence[int]) -> None:
        """The routine of each call, its arguments [call, 7], of which it may use fewer, and each step's calls."""
        self._factor = c_float(1)
        self.arguments = np.zeros((len(called), 15), np.int64)
        self.arguments[:, self.FACTOR] = addressof(self._factor)
        self.arguments[:, self.ORDER] = arguments
        self._entries = entries = np.zeros(len(called), self.ENTRY)
        entries["routine"], entries["mode"] = called, self.MODE
        entries["arguments"] = address(self.arguments) + np.arange(len(called)) * self.arguments.strides[0]
        places = address(entries) + np.arange(len(called)) * entries.itemsize
        firsts = np.cumsum([0, *steps[:-1]])
        entries["next"][:-1] = places[1:]
        entries["next"][[*firsts[1:] - 1, -1]] = 0
        self._steps = list(zip(steps, places[firsts].tolist(), strict=True))

    def run(self) -> None:
        """Run every step."""
        execute = _execute()
        assert execute is not None, "routines() has refused"
        for count, entry in self._steps:
            execute(count, entry)


def address(array: NDArray[Any]) -> int:
    """The address of an array's first number."""
    return int(array.ctypes.data)


@cache
def _execute() -> Callable[[int, int], object] | None:
    """exec_blas(number of calls, address of the first one's entry)."""
    config, parallel = blas.function("openblas_get_config"), blas.function("openblas_get_parallel")
    execute: Any = blas.symbol("exec_blas")
    if config is None or parallel is None or execute is None or (sys.platform, machine()) != ("linux", "x86_64"):
        return None
    config.restype = c_char_p  # type: ignore[attr-defined]
    release = re.match(rb"OpenBLAS (\d+)\.(\d+)\.(\d+)", config())
    if release is None or not RELEASES[0] <= tuple(map(int, release.groups())) <= RELEASES[1]:
        return None
    if parallel() != PTHREADS:
        return None
    execute.argtypes = [c_int64, c_int64]
    return execute  # type: ignore[no-any-return]
