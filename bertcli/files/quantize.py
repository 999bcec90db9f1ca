"""Vectors in fewer bytes: half precision, eight bits with a scale for each vector, or one bit.

Each vector is quantized on its own, whichever others are in the file, so a stream gives the same result as one array.

    float16  the nearest value: relative error at most 2⁻¹¹ (absolute error at most 2⁻²⁵ below 2⁻¹⁴)
    int8     x ≈ scale · q with scale = max|x| / 127: off by at most scale / 2 in every number (and 2⁻¹⁴³ where float32
             has few digits for the scale); cosines need no scale
    binary   one bit per number, 1 where x > 0; eight in a byte, the first in its highest bit (`np.packbits`, called
             ubinary in sentence-transformers); zeros fill the last byte
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError

Dtype = Literal["float32", "float16", "int8", "binary"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
LEVELS = 127  # of int8 on either side of 0: −128 is not used, so −x is stored as the negated bytes of x


class Quantized(NamedTuple):
    """`values` [row, width], or (binary) uint8 [row, ⌈width / 8⌉]; `scales` float32 [row] for int8, else None."""

    values: NDArray[Any]
    scales: NDArray[np.float32] | None = None


def quantize(vectors: NDArray[np.floating[Any]], dtype: str) -> Quantized:
    """Vectors [row, width] as `dtype`; BertcliError for numbers beyond float16's 65504 and for an unknown dtype."""
    if dtype == "float32":
        return Quantized(np.asarray(vectors, np.float32))
    if dtype == "float16":
        with np.errstate(over="ignore"):
            halves = vectors.astype(np.float16)
        if not np.isfinite(halves).all():
            raise BertcliError(
                "A vector has numbers that float16 cannot hold (above 65504): use another dtype (--dtype)."
            )
        return Quantized(halves)
    if dtype == "binary":
        return Quantized(np.packbits(vectors > 0, axis=1))
    if dtype == "int8":
        largest = np.abs(vectors.astype(np.float64)).max(axis=1, keepdims=True, initial=0)
        steps = vectors * (LEVELS / np.where(largest > 0, largest, 1))
        return Quantized(np.rint(steps).astype(np.int8), (largest[:, 0] / LEVELS).astype(np.float32))
    raise BertcliError(f"There is no dtype '{dtype}'; choose from {', '.join(DTYPES)}.")


def stored_width(width: int, dtype: str) -> int:
    """How many numbers, or (binary) bytes, a vector of this width takes."""
    return -(-width // 8) if dtype == "binary" else width
