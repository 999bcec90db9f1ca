"""keep_memory: tell glibc's allocator to keep what a batch used for the next batch. Other systems' are left alone."""

import sys

# Options of malloc.h.
ARENA_MAX, TRIM_THRESHOLD, MMAP_THRESHOLD = -8, -1, -3
# Bytes that are kept free at the end of an arena. A micro-batch frees 20 to 40 MB at once.
KEPT = 64 << 20
# Bytes from which an array gets pages of its own, which go back to the system at once. 32 MB is the most glibc takes.
OWN_PAGES = 32 << 20


def keep_memory(arenas: int | None = None) -> None:
    """Keep freed memory for the next batch. arenas: how many all threads share.

    By default glibc returns memory after a batch and requests it again, which costs up to a tenth of the batch's time.
    In a long-lived process each thread's arena also grows to the largest part of a batch that the thread ever had: one
    arena for all avoids that.
    """
    if sys.platform != "linux":
        return
    import ctypes  # takes 2 ms, which commands without a model save

    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):  # musl has none
        return
    if arenas is not None:
        library.mallopt(ARENA_MAX, arenas)
    library.mallopt(TRIM_THRESHOLD, KEPT)
    library.mallopt(MMAP_THRESHOLD, OWN_PAGES)
