"""The library behind NumPy's matrix products: its kernel and its number of threads, chosen where that is safe.

Does not import NumPy, because both have to be chosen before NumPy is first imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from bertcli.cores import cores, usable_cores

CPU_INFO = "/proc/cpuinfo"
KERNEL_VARIABLE = "OPENBLAS_CORETYPE"
AVX512_KERNEL = "SKYLAKEX"
RAYON_VARIABLE = "RAYON_NUM_THREADS"  # for the tokenizers library
THREAD_VARIABLES = (  # where libraries look, when they are loaded, for the number of threads
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    RAYON_VARIABLE,
)
AVX512 = frozenset({"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"})  # all that the kernel needs


def choose_kernel() -> bool:
    """Ask OpenBLAS for its AVX-512 kernel where it might choose a slower one; true if done.

    Older OpenBLAS does not know AMD's newer processors and runs its AVX2 kernel on them, at half the speed. Nothing is
    done if the user has made the choice, if NumPy is already loaded (it would be too late), or if the processor is
    unknown (only Linux tells, in /proc/cpuinfo). A NumPy built on another library ignores the request.
    """
    if KERNEL_VARIABLE in os.environ or "numpy" in sys.modules:
        return False
    vendor, features = processor()
    if vendor != "AuthenticAMD" or not features >= AVX512:
        return False
    _choose(KERNEL_VARIABLE, AVX512_KERNEL)
    return True


def choose_threads() -> bool:
    """Limit library threads to the CPU quota where a container grants less than its cores; true if done.

    Libraries start one thread for every core they see. On 64 cores with a quota of two, 62 of the threads would use it
    up by waiting. Nothing is done if the user has made the choice, or if NumPy is already loaded.
    """
    if "numpy" in sys.modules or any(name in os.environ for name in THREAD_VARIABLES) or usable_cores() == cores():
        return False
    for name in THREAD_VARIABLES:
        if name != RAYON_VARIABLE:  # read later, by a library that knows of such limits itself
            _choose(name, str(usable_cores()))
    return True


def forget_choices() -> None:
    """Remove the variables once NumPy is loaded: programs started from here need not inherit them."""
    for name, value in _chosen.items():
        if os.environ.get(name) == value:
            del os.environ[name]


def chosen_by() -> str:
    """Who chose the kernel in use; this is the library also if it does not know the kernel it was asked for."""
    if os.environ.get(KERNEL_VARIABLE, "").upper() == (kernel() or "unknown").upper():
        return "the environment"
    return "bertcli" if KERNEL_VARIABLE in _chosen else "the library"


_chosen: dict[str, str] = {}  # variables of the environment, set here


def _choose(name: str, value: str) -> None:
    os.environ[name] = _chosen[name] = value


def processor() -> tuple[str, frozenset[str]]:
    """Vendor and features of the processor, as Linux on x86-64 reports them; elsewhere "" and none."""
    try:
        with open(CPU_INFO, encoding="utf-8", errors="replace") as file:
            text = file.read(8192)  # the first processor's entry; there may be hundreds
    except OSError:
        return "", frozenset()
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields.get("vendor_id", ""), frozenset(fields.get("flags", "").split())


# ------------------------------------------------------------------------------------------------------- the library


@cache
def function(name: str) -> Callable[..., Any] | None:
    """A function of OpenBLAS, whatever prefix and suffix NumPy's copy gives its name; None with another library."""
    decorations = (f"scipy_{name}64_", f"scipy_{name}", f"{name}64_", name)
    return next((found for decorated in decorations if (found := symbol(decorated)) is not None), None)


def symbol(name: str) -> Any:
    """What the library exports under exactly this name; None if nothing."""
    return getattr(_library(), name, None)


@cache
def _library() -> Any:
    """NumPy's compiled core: a symbol lookup in it also searches the libraries it was linked with."""
    try:
        import ctypes

        from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

        return ctypes.CDLL(_multiarray_umath.__file__)
    except (ImportError, OSError):
        return None


@cache
def kernel() -> str | None:
    """The kernel OpenBLAS uses, by its name for the processor; None with another library."""
    ask = function("openblas_get_corename")
    if ask is None:
        return None
    import ctypes  # takes 2 ms, which `bertcli --help` saves

    ask.restype = ctypes.c_char_p  # type: ignore[attr-defined]
    return str(ask().decode())


def exact() -> bool:
    """True for kernels that sum each number of a product in the same order, however the product is divided."""
    return kernel() in ("SkylakeX", "Cooperlake", "SapphireRapids")


def threads() -> int | None:
    """Threads a product may use now; None if the library does not say."""
    ask = function("openblas_get_num_threads")
    return None if ask is None else int(ask())


def set_threads(count: int) -> bool:
    """Let products use `count` threads; false if this library does not support it."""
    tell = function("openblas_set_num_threads")
    if tell is None:
        return False
    tell(count)
    return True


_single = Lock()
_singles = 0
_before = 1


@contextmanager
def single_threaded() -> Iterator[bool]:
    """Inside, products use one thread each, so that several can run in parallel; yields false if that is not possible.

    The setting belongs to the process: if two threads are inside at once, the last to leave restores it.
    """
    global _singles, _before
    now = threads()
    if now is None:
        yield False
        return
    with _single:
        if _singles == 0:
            _before = threads() or 1
            set_threads(1)
        _singles += 1
    try:
        yield True
    finally:
        with _single:
            _singles = max(0, _singles - 1)  # already 0 in a child forked in between
            if _singles == 0:
                set_threads(_before)


def _forget() -> None:
    """In a forked child: threads that were inside `single_threaded` do not exist here to leave it."""
    global _single, _singles
    _single = Lock()
    if _singles:
        _singles = 0
        set_threads(_before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
