"""Matrix products and inverses in float64 without the float64 kernels of BLAS, which can crash the process.

With `OPENBLAS_CORETYPE` pinned to Haswell, those of OpenBLAS 0.3.34 (NumPy 2.5.2 to 2.5.5) overflow the stack on AMD's
Zen 4 and 5: the process dies (OpenBLAS#6013, #6021). So no product of two float64 matrices is BLAS', nor is anything of
LAPACK used, which is made of them. Products of a matrix and a vector are safe.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 32  # numbers summed in float32 by `vector_product`
LEAF = 16  # rows below which `inverse` goes row by row
SMALL = 1 << 20  # multiplications, up to which `vector_product` computes in float64 throughout


def product(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """x y, summed in float64: [..., n, k] times [..., k, m] gives [..., n, m]; times a vector y [k], it gives [n]."""
    x, y = x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
    if y.ndim == 1:
        return np.asarray(x @ y)
    columns = np.ascontiguousarray(y.swapaxes(-1, -2))  # einsum reads both from one number to the next
    return np.asarray(np.einsum("...nk,...mk->...nm", x, columns))


def vector_product(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """x yᵀ: every dot product of the vectors x [..., n, k] with the vectors y [..., m, k], as [..., n, m].

    Above SMALL multiplications the products are float32 in blocks of BLOCK numbers, and the blocks are added in
    float64: the error is at most 2e-7 of the vectors' lengths.
    """
    count = max(x.size // max(1, x.shape[-1]), 1) * y.size
    if count <= SMALL:
        return product(x, y.swapaxes(-1, -2))
    x, y = x.astype(np.float32, copy=False), y.astype(np.float32, copy=False)
    total = np.zeros(1)
    for begin in range(0, x.shape[-1], BLOCK):
        block = slice(begin, begin + BLOCK)
        total = total + x[..., block] @ y[..., block].swapaxes(-1, -2)
    return total


def inverse(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """The inverse [n, n] of a symmetric positive definite matrix, about as exact as float32 allows.

    By halves: with A = [[B, C], [Cᵀ, D]] and S = D − Cᵀ B⁻¹ C it is [[B⁻¹ + B⁻¹ C S⁻¹ Cᵀ B⁻¹, −B⁻¹ C S⁻¹], [·, S⁻¹]].
    """
    half = len(matrix) // 2
    if half < LEAF:
        return _inverse_by_rows(matrix)
    b, c, d = matrix[:half, :half], matrix[:half, half:], matrix[half:, half:]
    first = inverse(b)
    across = vector_product(first, c.T)  # B⁻¹ C
    last = inverse(d - vector_product(c.T, across.T))
    corner = -vector_product(across, last)
    result = np.empty(matrix.shape)
    result[:half, :half] = first - vector_product(corner, across)
    result[:half, half:], result[half:, :half], result[half:, half:] = corner, corner.T, last
    return result


def _inverse_by_rows(matrix: NDArray[Any]) -> NDArray[np.float64]:
    """Invert by Gauss-Jordan elimination without pivoting, which a positive definite matrix does not need."""
    result = matrix.astype(np.float64)
    for i in range(len(result)):
        pivot, column = result[i, i], result[:, i].copy()
        row = result[i] / pivot
        result -= column[:, None] * row
        result[i], result[:, i] = row, -column / pivot
        result[i, i] = 1 / pivot
    return result
