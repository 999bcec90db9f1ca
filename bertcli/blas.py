"""The library behind NumPy's matrix products: which kernel it uses, and how many threads, chosen where that is safe.

Imports no NumPy, because both have to be chosen before NumPy is first imported.
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
RAYON_VARIABLE = "RAYON_NUM_THREADS"  # the tokenizers library's
THREAD_VARIABLES = (  # what libraries ask, when they are loaded, for how many threads to use
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    RAYON_VARIABLE,
)
AVX512 = frozenset({"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"})  # all that the kernel is compiled for


def choose_kernel() -> bool:
    """Ask OpenBLAS for its AVX-512 kernel where it might take a slower one by itself; true if this was done.

    Older OpenBLAS does not know AMD's newer processors and runs its AVX2 kernel on them, at half the speed. Nothing is
    done when the user has said what they want, when NumPy is loaded already (it would be too late), or where the
    processor cannot be known (only Linux says, in /proc/cpuinfo). A NumPy built on another library takes no notice.
    """
    if KERNEL_VARIABLE in os.environ or "numpy" in sys.modules:
        return False
    vendor, features = processor()
    if vendor != "AuthenticAMD" or not features >= AVX512:
        return False
    _choose(KERNEL_VARIABLE, AVX512_KERNEL)
    return True


def choose_threads() -> bool:
    """Ask for as many threads as there is cores' time for, where a container's limit allows less; true if done.

    Libraries start one for every core they see. On a machine of 64 whose time is two cores', 62 of these would use that
    up by waiting. Nothing is done when the user has said what they want, or when NumPy is loaded already.
    """
    if "numpy" in sys.modules or any(name in os.environ for name in THREAD_VARIABLES) or usable_cores() == cores():
        return False
    for name in THREAD_VARIABLES:
        if name != RAYON_VARIABLE:  # which is asked for later, and knows of such limits itself
            _choose(name, str(usable_cores()))
    return True


def forget_choices() -> None:
    """Once NumPy is loaded the variables have done their work: programs started from here need not inherit them."""
    for name, value in _chosen.items():
        if os.environ.get(name) == value:
            del os.environ[name]


def chosen_by() -> str:
    """Who decided on the kernel in use; the library, too, where it does not know the one it was asked for."""
    if os.environ.get(KERNEL_VARIABLE, "").upper() == (kernel() or "unknown").upper():
        return "the environment"
    return "bertcli" if KERNEL_VARIABLE in _chosen else "the library"


_chosen: dict[str, str] = {}  # variables of the environment, set here


def _choose(name: str, value: str) -> None:
    os.environ[name] = _chosen[name] = value


def processor() -> tuple[str, frozenset[str]]:
    """Maker and features of the processor, as Linux on x86-64 tells them; else ("", none)."""
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
    """A function of OpenBLAS, however this NumPy's copy of it decorates names; None with another library."""
    decorations = (f"scipy_{name}64_", f"scipy_{name}", f"{name}64_", name)
    return next((found for decorated in decorations if (found := symbol(decorated)) is not None), None)


def symbol(name: str) -> Any:
    """What the library exports under this very name; None where it does not."""
    return getattr(_library(), name, None)


@cache
def _library() -> Any:
    """NumPy's compiled core: looking a name up in it looks through the libraries it was linked with, too."""
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
    import ctypes  # 2 ms that `bertcli --help` need not wait

    ask.restype = ctypes.c_char_p  # type: ignore[attr-defined]
    return str(ask().decode())


def exact() -> bool:
    """True with the kernels that add up each number of a product in one order, into whatever parts it is cut."""
    return kernel() in ("SkylakeX", "Cooperlake", "SapphireRapids")


def threads() -> int | None:
    """Threads a product may use now; None when the library does not say."""
    ask = function("openblas_get_num_threads")
    return None if ask is None else int(ask())


def set_threads(count: int) -> bool:
    """Let products use `count` threads; false when the library cannot be told."""
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
    """Products use one thread each in here, so that several can run side by side; yields false if that cannot be had.

    The number is the process's: two who are in here at once leave it to the later one to put back.
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
            _singles = max(0, _singles - 1)  # 0 already where a fork has made a new process of it
            if _singles == 0:
                set_threads(_before)


def _forget() -> None:
    """In a forked child: whoever was in `single_threaded` is not here to leave it."""
    global _single, _singles
    _single = Lock()
    if _singles:
        _singles = 0
        set_threads(_before)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
