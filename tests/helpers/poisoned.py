"""A process in which a product of two float64 matrices by BLAS, or a call of LAPACK in float64, is the end.

Their first instruction is replaced by one that traps: no result of ours may need them (engine/float64.py says why).
x86-64 Linux with NumPy's own OpenBLAS only.
"""

import ctypes
import mmap
import sys
from typing import Any, cast

from bertcli.engine import blas

FUNCTIONS = ("cblas_dgemm", "cblas_dsyrk", "dgesv_", "dgetrf_", "dpotrf_", "dsyevd_", "dgesdd_", "dgelsd_", "dgeev_")
TRAP = b"\xcc"  # INT3


def poison() -> int:
    """Replace the functions that are there; how many there were."""
    library = ctypes.CDLL(None)
    count = 0
    for name in FUNCTIONS:
        found = blas.function(name)
        if found is None:
            continue
        address = ctypes.cast(cast(Any, found), ctypes.c_void_p).value or 0
        page = address & -mmap.PAGESIZE
        size = address - page + len(TRAP)
        protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
        if library.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(size), protection):
            raise OSError("the library's code cannot be changed")
        ctypes.memmove(address, TRAP, len(TRAP))
        count += 1
    return count


if __name__ == "__main__":
    import json

    import numpy as np

    from bertcli.cli.app import application

    if not poison():
        sys.exit("no such functions")
    if len(sys.argv) == 1:
        print(np.ones((4, 4)) @ np.ones((4, 4)))
    for words in json.loads(sys.argv[1]):
        try:
            application(words[0])(words, prog_name="bertcli")
        except SystemExit as ended:
            if ended.code:
                raise
