"""OpenBLAS, the library behind NumPy's matrix products: choose its kernel where that is safe, and set its threads.

Does not import NumPy, because the kernel has to be chosen before NumPy is first imported.
"""

import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from bertcli.platforms import at_fork

CPU_INFO = "/proc/cpuinfo"
MAPS = "/proc/self/maps"
KERNEL_VARIABLE = "OPENBLAS_CORETYPE"
WAIT_VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
WAIT = "20"  # a million of the processor's cycles, 0.3 to 0.5 ms: longer than from one product to the next
AVX512_KERNEL = "SKYLAKEX"
# As the library names those in use.
AVX512_KERNELS = ("SkylakeX", "Cooperlake", "SapphireRapids")
AVX2_KERNEL = "Haswell"
AVX512 = frozenset({"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"})  # all that the kernel needs


def choose_kernel() -> bool:
    """Ask OpenBLAS for its AVX-512 kernel where it might choose a slower one; true if done.

    Older OpenBLAS does not know AMD's newer processors and runs its AVX2 kernel on them, at half the speed. Nothing is
    done if the user has made the choice, if NumPy is already loaded (too late), or if the processor is unknown (only
    Linux has /proc/cpuinfo). A NumPy built on another library ignores the variable.
    """
    if KERNEL_VARIABLE in os.environ or "numpy" in sys.modules:
        return False
    vendor, features = processor()
    if vendor != "AuthenticAMD" or not features >= AVX512:
        return False
    choose(KERNEL_VARIABLE, AVX512_KERNEL)
    return True


def choose_short_waits() -> bool:
    """Let OpenBLAS's threads sleep soon after a product, and right after they started; true if done.

    By default they spin for 2²⁶ cycles each time: 60 ms of processor time in a command that takes 270 ms. Only the
    command line calls this: a program that imports bertcli keeps its own setting. Nothing is done if the user has made
    the choice, or if NumPy is already loaded.
    """
    if WAIT_VARIABLE in os.environ or "numpy" in sys.modules:
        return False
    choose(WAIT_VARIABLE, WAIT)
    return True


_chosen: dict[str, str] = {}  # variables of the environment, set here


def choose(name: str, value: str) -> None:
    """Set a variable that libraries read when they are loaded, until `forget_choices`."""
    os.environ[name] = _chosen[name] = value


def forget_choices() -> None:
    """Remove the variables once NumPy is loaded: programs started from here need not inherit them."""
    for name, value in _chosen.items():
        if os.environ.get(name) == value:
            del os.environ[name]


def chosen_by() -> str:
    """Name who chose the kernel in use: "the environment", "bertcli" or "the library".

    An environment variable with a kernel that the library does not know chooses nothing.
    """
    if os.environ.get(KERNEL_VARIABLE, "").upper() == (kernel() or "unknown").upper():
        return "the environment"
    return "bertcli" if KERNEL_VARIABLE in _chosen else "the library"


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
    """Find a documented function of OpenBLAS, under any prefix and suffix of NumPy's copies; None if there is none."""
    import ctypes  # takes 2 ms, which `bertcli --help` saves

    import numpy  # noqa: F401  loads the library

    decorations = (f"scipy_{name}64_", f"scipy_{name}", f"{name}64_", name)
    for file in _libraries():
        try:
            library = ctypes.CDLL(file)  # loaded already: this is a handle to it
        except OSError:  # replaced by another version since
            continue
        pointer = next((getattr(library, decorated) for decorated in decorations if hasattr(library, decorated)), None)
        if pointer is not None:
            return pointer  # type: ignore[no-any-return]
    return None


def _libraries() -> list[str]:
    """List the files of the BLAS libraries that are loaded, those of NumPy's own wheel first.

    Another package, such as SciPy, may have loaded its own OpenBLAS. Only Linux lists what is loaded
    (/proc/self/maps); elsewhere these are the wheel's files.
    """
    import numpy

    package = Path(numpy.__file__).parent
    wheel = [*package.parent.glob("numpy.libs/*blas*"), *package.glob(".dylibs/*blas*")]
    try:
        lines = Path(MAPS).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return [str(file) for file in wheel]
    loaded = {columns[5] for line in lines if len(columns := line.split(maxsplit=5)) == 6}
    files = sorted(file for file in loaded if re.search(r"blas.*\.so", os.path.basename(file)))
    return sorted(files, key=lambda file: Path(file).parent not in {own.parent for own in wheel})


@cache
def kernel() -> str | None:
    """The kernel OpenBLAS uses, by its name for the processor; None with another library."""
    ask = function("openblas_get_corename")
    if ask is None:
        return None
    import ctypes

    ask.restype = ctypes.c_char_p  # type: ignore[attr-defined]
    return str(ask().decode())


def avx512() -> bool:
    """True if OpenBLAS multiplies with an AVX-512 kernel."""
    return kernel() in AVX512_KERNELS


def threads() -> int | None:
    """The number of threads for a product at the moment; None with another library than OpenBLAS."""
    ask = function("openblas_get_num_threads")
    return None if ask is None else int(ask())


def set_threads(count: int) -> None:
    """Set the number of threads for products; with another library than OpenBLAS, do nothing."""
    tell = function("openblas_set_num_threads")
    if tell is not None:
        tell(count)


_lock = Lock()
_inside = 0  # threads within `single_threaded`
_outside = 1  # the setting to restore when they have left


class single_threaded:
    """Let each product use one thread inside this context, so that several can run in parallel.

    Gives false where the number cannot be set. The setting is the whole process's: if several threads are inside at
    once, the last to leave restores it, and overwrites what other code has set meanwhile.

    A class, since a generator's context takes twice as long, and a pass of a small model has dozens.
    """

    def __enter__(self) -> bool:
        global _inside, _outside
        if not can_be_set():
            return False
        with _lock:
            if not _inside:
                _outside = threads() or 1
                set_threads(1)
            _inside += 1
        return True

    def __exit__(self, *error: object) -> None:
        global _inside
        if not can_be_set():
            return
        with _lock:
            _inside -= 1
            if not _inside:
                set_threads(_outside)


def can_be_set() -> bool:
    """True if the library's number of threads can be set."""
    return function("openblas_set_num_threads") is not None


def usual_threads() -> int | None:
    """The number of threads for a product outside `single_threaded`; None with another library than OpenBLAS."""
    return _outside if _inside else threads()


def _forget() -> None:
    """Restore the number of threads in a forked child.

    Threads that were inside `single_threaded` do not exist in the child, so none would leave it.
    """
    global _inside
    if _inside:
        _inside = 0
        set_threads(_outside)
    _lock.release()


# OpenBLAS hangs in a child that was forked while another thread set the number.
at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget)
