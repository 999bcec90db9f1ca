"""The doctor: the library behind NumPy's products, its kernel and threads, and rates measured here."""

import os
import platform
import sys
from time import perf_counter
from typing import Any

import numpy as np

from bertcli._version import __version__
from bertcli.engine import blas, threads
from bertcli.onnx.session import available_devices, cache_folder, cache_size, installed, runtime

blas.forget_choices()  # NumPy is loaded

# Features of processors that kernels are written for.
FEATURES = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_tile", "asimd", "sve")


OVERFLOWS = "0.3.34"  # the OpenBLAS of NumPy 2.5.2 to 2.5.5: see engine/float64.py
OVERFLOWING = ("Haswell", "Zen")  # its kernels that overflow the stack where the processor has AVX-512 (OpenBLAS#6013)


def examine() -> dict[str, Any]:
    """bertcli, Python, NumPy, BLAS and its kernel, threads, processor, measured matrix and memory rates, advice.

    `usable_cores` are fewer than `cores` if a container limits CPU time. Takes half a second.
    """
    vendor, features = blas.processor()
    built_on = _built_on()
    return {
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
        "advice": advice(features),
        **_onnx_runtime(),
    }


def _onnx_runtime() -> dict[str, Any]:
    """The other engine: its version, devices, and the folder of its graphs."""
    if not (installed("onnxruntime") and installed("onnx")):
        return {"onnxruntime": "not installed: pip install 'bertcli[onnx]'"}
    return {
        "onnxruntime": runtime().__version__,
        "onnx_devices": available_devices(),
        "onnx_graphs": str(cache_folder()),
        "onnx_graphs_mb": round(cache_size() / 1e6, 1),
    }


def matrix_rate(rows: int = 3072, inner: int = 768, columns: int = 1024) -> float:
    """Floating-point operations per second: the best of a few float32 products, by default BERT-base's largest."""
    left, right = np.ones((rows, inner), dtype=np.float32), np.ones((inner, columns), dtype=np.float32)
    into = np.empty((rows, columns), dtype=np.float32)
    return 2 * rows * inner * columns / _best_of(lambda: np.matmul(left, right, out=into), 8)


def memory_rate(megabytes: int = 192) -> float:
    """Bytes per second at which all threads together read memory that is not cached."""
    numbers = np.ones(megabytes << 18, dtype=np.float32)
    parts = np.array_split(numbers, threads.thread_count())
    return numbers.nbytes / _best_of(lambda: threads.share(np.max, parts), 4)


def advice(features: frozenset[str]) -> str | None:
    """Advice on what is dangerous here, or would make products faster; None if there is nothing to say."""
    kernel = blas.kernel()
    pinned = os.environ.get(blas.KERNEL_VARIABLE)
    if pinned and kernel in OVERFLOWING and blas_version().startswith(OVERFLOWS) and features >= blas.AVX512:
        return (
            f"{blas.KERNEL_VARIABLE}={pinned} is dangerous with OpenBLAS {OVERFLOWS} on this processor: programs that "
            "multiply float64 matrices die (bertcli multiplies none). Unset it, or install another version of NumPy"
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
    """The version of that library."""
    return _built_on()["version"]


def _best_of(work: Any, times: int) -> float:
    best = float(sys.maxsize)
    for _ in range(times):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best
