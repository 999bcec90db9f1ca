"""Let glibc's allocator keep what one batch used for the next one. Other systems' allocators are left alone.

By itself glibc returns a large array's pages to the system as soon as the array is gone, and gets new ones, which the
system fills with zeros, for the next: a tenth of the time of a pass of BERT-base with one text.
"""

import sys

import numpy as np

ARENA_MAX = -8  # an option of malloc.h
# Bytes of an array that raises glibc's limits: a little less than 32 MiB, the most that it takes as a measure.
LARGE = (32 << 20) - (64 << 10)


def keep_memory() -> None:
    """Let glibc keep up to 64 MB of freed memory, in this program and for all of its arrays.

    glibc does so by itself once an array of 32 MB was freed: it keeps twice the size of the largest so far, and gives
    pages of their own only to larger ones. A program's own choice stays: variables such as MALLOC_TRIM_THRESHOLD_, or a
    call of mallopt.
    """
    np.empty(LARGE, np.uint8)


def one_arena() -> None:
    """Let all threads share one arena of memory.

    In a long-lived process each thread's arena grows to the largest part of a batch that the thread ever had.
    """
    if sys.platform != "linux":
        return
    import ctypes  # takes 2 ms, which commands save

    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # musl has none
        library.mallopt(ARENA_MAX, 1)
