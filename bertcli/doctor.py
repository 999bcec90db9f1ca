"""`bertcli doctor`: NumPy's BLAS, its kernel and threads, measured speed, and advice on what would make it faster."""

import os
import platform
import sys
from time import perf_counter
from typing import Any

import numpy as np

from bertcli import extensions
from bertcli._version import __version__
from bertcli.engine import blas, threads
from bertcli.engine.kernels import empty_tokens, multiply, product
from bertcli.engine.product_rules import product_rule

# NumPy is loaded now: programs started from here need not inherit the variables that chose its kernel.
blas.forget_choices()

# Features of processors that kernels are written for.
FEATURES = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")


# The OpenBLAS of NumPy 2.5.2 to 2.5.5, and its kernels that overflow the stack in float64 products where the processor
# has AVX-512 (OpenBLAS#6013, #6021).
OVERFLOWS = "0.3.34"
OVERFLOWING = ("Haswell", "Zen")

# Of the products that doctor times: the weight of BERT-base's feed-forward network [out, in], and numbers of tokens.
WEIGHT = (3072, 768)
TOKENS = (16, 32, 64, 128, 1024)
MOST_IN_STRIPS = 128  # tokens: products of more do not fit OpenBLAS's kernel for small matrices


def examine() -> dict[str, Any]:
    """The record of `bertcli doctor`: versions, BLAS and its kernel, threads, processor, measured rates, advice.

    `usable_cores` are fewer than `cores` if a container limits CPU time. The measurements take a second.
    """
    vendor, features = blas.processor()
    brought: dict[str, Any] = {}
    for findings in extensions.answers("doctor", "examine"):
        brought |= findings
    built_on = _built_on()
    own = {
        "bertcli": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas": f"{built_on['name']} {built_on['version']}",
        "kernel": blas.kernel() or "unknown",
        "kernel_chosen_by": blas.chosen_by(),
        "cores": threads.cores(),
        "usable_cores": threads.usable_cores(),
        "blas_threads": blas.threads(),
        "threads": threads.thread_count(),
        "processor": vendor or platform.processor() or platform.machine(),
        "features": [name for name in FEATURES if name in features],
        "matrix_gflops": round(matrix_rate() / 1e9, 1),
        "memory_gb_per_second": round(memory_rate() / 1e9, 1),
        "product_rule": str(product_rule()),
        "products": [product_times(tokens) for tokens in TOKENS],
        "advice": advice(features),
    }
    # The first `own` puts ours first, the second keeps what a wing brings from replacing any of it.
    return own | brought | own


def matrix_rate(rows: int = 3072, inner: int = 768, columns: int = 1024) -> float:
    """Measure matrix products: float32 operations a second, the best of a few runs.

    The default sizes are those of BERT-base's largest product.
    """
    left, right = np.ones((rows, inner), dtype=np.float32), np.ones((inner, columns), dtype=np.float32)
    into = np.empty((rows, columns), dtype=np.float32)
    return 2 * rows * inner * columns / _best_of(lambda: np.matmul(left, right, out=into), 5)


def memory_rate(megabytes: int = 128) -> float:
    """Measure memory: bytes a second that all threads together read from an array larger than the caches."""
    numbers = np.ones(megabytes << 18, dtype=np.float32)
    parts = np.array_split(numbers, threads.thread_count())
    return numbers.nbytes / _best_of(lambda: threads.run_pieces(np.max, parts), 4)


def product_times(tokens: int, weight: tuple[int, int] = WEIGHT, times: int = 5) -> dict[str, Any]:
    """Measure each way to multiply a stored weight [out, in] with so many tokens: microseconds, the best of a few runs.

    With one thread in strips (None where they do not fit) and plain; with all threads as the library divides a product,
    and as bertcli does by the rule in force.
    """
    outputs, inputs = weight
    numbers, x, y = np.ones(weight, np.float32), empty_tokens(tokens, inputs), empty_tokens(tokens, outputs)
    x[...] = 1

    def strips() -> None:
        multiply(numbers, x.T, y.T, in_strips=True)

    def plain() -> None:
        np.matmul(numbers, x.T, out=y.T)

    with blas.single_threaded():
        in_strips = _best_of(strips, times) if tokens <= MOST_IN_STRIPS else None
        alone = _best_of(plain, times)
    shared = _best_of(plain, times)
    ours = _best_of(lambda: product(x, numbers, None, None), times)
    micros = {"strips_us": in_strips, "plain_us": alone, "library_us": shared, "bertcli_us": ours}
    return {"tokens": tokens} | {name: seconds and round(seconds * 1e6) for name, seconds in micros.items()}


def advice(features: frozenset[str]) -> str | None:
    """The sentence about a dangerous or slow kernel, and what to do; None if the kernel is good for the processor.

    features: the processor's.
    """
    kernel = blas.kernel()
    pinned = os.environ.get(blas.KERNEL_VARIABLE)
    if pinned and kernel in OVERFLOWING and blas_version().startswith(OVERFLOWS) and features >= blas.AVX512:
        return (
            f"{blas.KERNEL_VARIABLE}={pinned} is dangerous with OpenBLAS {OVERFLOWS} on this processor: products of "
            "float64 matrices end the process, in search, similarity, evaluate and probe. Unset it, or install another "
            "version of NumPy"
        )
    if kernel is None or not features >= blas.AVX512 or blas.avx512():
        return None
    if pinned:
        return f"{blas.KERNEL_VARIABLE} asks for the kernel {kernel}; without it products would be about twice as fast"
    return f"set {blas.KERNEL_VARIABLE}={blas.AVX512_KERNEL} before Python starts, or import bertcli before NumPy"


def _built_on() -> dict[str, str]:
    """Name and version of the library that NumPy was built on."""
    built_on = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {"name": str(built_on["name"]), "version": str(built_on["version"])}


def blas_version() -> str:
    """The version of the BLAS that NumPy was built on."""
    return _built_on()["version"]


def _best_of(work: Any, times: int) -> float:
    """Seconds of the fastest of several calls."""
    best = float(sys.maxsize)
    for _ in range(times):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best
