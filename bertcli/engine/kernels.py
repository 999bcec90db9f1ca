"""The loops behind softmax, activations and layer normalization: ndarray in, ndarray out, in place, float32.

NumPy makes one pass over memory for every operation, so speed depends on the number of passes and on their staying in
the cache: long arrays are processed in blocks. Cost of one pass, in nanoseconds per number, on one core with AVX-512:
add or multiply 0.06, divide 0.09, tanh 0.18, exp 0.35; maximum or minimum with a scalar 0.32. With AVX2 only:
0.14, 0.17, 2.6, 1.3 and 0.4.

All of this runs on the calling thread. Sharing the blocks of one array among threads gains nothing: a pass takes only
5 µs, after which the threads wait for each other at the interpreter's lock. Other parts of the batch keep the other
cores busy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.blas import forget_choices

forget_choices()  # NumPy is loaded

Array = NDArray[np.float32]
Index = tuple[slice, ...]

BLOCK = 1 << 17  # numbers processed at a time: few enough for the caches, many enough to keep lock contention low
SQUARES = 64  # summed at a time; hidden sizes that are not a multiple of it: all at once


def softmax(x: Array) -> Array:
    """exp(x - max) / sum along the last axis, in place; of nothing, nothing."""
    np.subtract(x, x.max(axis=-1, keepdims=True, initial=-np.inf), out=x)
    np.exp(x, out=x)
    total = x.sum(axis=-1, keepdims=True)
    np.reciprocal(total, out=total)
    x *= total
    return x


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float, out: Array | None = None) -> Array:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the last axis, biased variance, in place or in `out`."""
    features = x.shape[-1]
    mean = x.sum(axis=-1, keepdims=True)
    mean /= features
    x = np.subtract(x, mean, out=x if out is None else out)
    rate = _rate(x, eps)
    for index in _blocks(x):
        part = x[index]
        part *= rate[*index[:-1], :]
        if weight is not None:
            part *= weight[index[-1]]
        if bias is not None:
            part += bias[index[-1]]
    return x


def rms_norm(x: Array, weight: Array, eps: float, out: Array) -> Array:
    """x / sqrt(mean of squares + eps) · weight over the last axis, in `out`."""
    np.multiply(x, _rate(x, eps), out=out)
    out *= weight
    return out


def _rate(x: Array, eps: float) -> Array:
    """1 / sqrt(mean of squares + eps) over the last axis, which is kept.

    Squares are summed 64 at a time, then the partial sums: an eighth of the rounding error.
    """
    features = x.shape[-1]
    together = SQUARES if features % SQUARES == 0 else features
    split = x.reshape(*x.shape[:-1], features // together, together, copy=False)
    rate: Array = np.einsum("...i,...i->...", split, split).sum(axis=-1, keepdims=True)
    rate /= features
    rate += eps
    np.sqrt(rate, out=rate)
    np.reciprocal(rate, out=rate)
    return rate


def rotate(x: Array, cosines: Array, sines: Array, heads: int) -> Array:
    """(a, b) -> (a cos - b sin, b cos + a sin) of the two halves of every head of x [token, head·size], in place."""
    for head in np.split(x.T, heads):  # [size, token], where each pair's tokens are adjacent
        a, b = np.split(head, 2)
        turned = b * cosines
        turned += a * sines
        a *= cosines
        a -= np.multiply(b, sines, out=b)
        b[...] = turned
    return x


def activate(x: Array, activation: str | None = None, bias: Array | None = None) -> Array:
    """activation(x + bias), with the bias along the last axis, in place."""
    function = None if activation is None else ACTIVATIONS[activation].compute
    if function is None and bias is None:
        return x
    for index in _blocks(x):
        part = x[index]
        if bias is not None:
            part += bias[index[-1]]
        if function is not None:
            function(part)
    return x


def _gelu(x: Array) -> None:
    """x Φ(x) = x/2 · (1 + erf(x / sqrt 2)) (Hendrycks & Gimpel 2016), absolute error below 6e-7.

    erf(x / sqrt 2) is tanh(x g) with a smooth function g of u = x². The fit g = a + b·u + c / (u + d + e / (u + f))
    minimises the largest error of x Φ(x): 1.2e-7 before rounding. It takes 13 passes where Abramowitz & Stegun's erf
    takes 20, and needs no limit on x: for large u both fractions vanish.
    """
    u, g = np.empty_like(x), np.empty_like(x)
    np.multiply(x, x, out=u)
    np.add(u, 30.61311384355007, out=g)
    np.divide(523.8223646828675, g, out=g)
    g += u
    g -= 6.777147759229354
    np.divide(2 * 4.617615577676511, g, out=g)
    u *= -2 * 0.017253143041987114
    g += u
    g -= 2 * 1.2447292354486816
    g *= x
    _gate(x, g)


def _gelu_tanh(x: Array) -> None:
    """x/2 · (1 + tanh(sqrt(2/π) · (x + 0.044715 x³))): the approximation of the same paper."""
    g = np.empty_like(x)
    np.multiply(x, x, out=g)
    g *= -2 * 0.7978845608028654 * 0.044715
    g -= 2 * 0.7978845608028654
    g *= x
    _gate(x, g)


def _silu(x: Array) -> None:
    """x · sigmoid(x)"""
    g = np.empty_like(x)
    np.negative(x, out=g)
    _gate(x, g)


def _gate(x: Array, g: Array) -> None:
    """x = x · sigmoid(-g) = x / (1 + exp(g)), which is x/2 · (1 + tanh(-g/2)); g is overwritten.

    With tanh, GELU would take 1.6 times as long on AVX2; on AVX-512, by the costs above, an eighth less.
    """
    with np.errstate(over="ignore"):  # for x far below 0, x / infinity is the right value
        np.exp(g, out=g)
    g += 1
    np.divide(x, g, out=x)


def _relu(x: Array) -> None:
    """max(0, x)"""
    np.maximum(x, 0, out=x)


def _tanh(x: Array) -> None:
    np.tanh(x, out=x)


class Activation(NamedTuple):
    """An in-place element-wise function, its display name, and the number of element-wise operations in its formula."""

    compute: Callable[[Array], None]
    title: str
    work: int


ACTIVATIONS = {
    "gelu": Activation(_gelu, "GELU", 5),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast"), Activation(_gelu_tanh, "GELU (tanh)", 8)),
    "relu": Activation(_relu, "ReLU", 1),
    **dict.fromkeys(("silu", "swish"), Activation(_silu, "SiLU", 4)),
    "tanh": Activation(_tanh, "tanh", 1),
}


def _blocks(x: Array) -> list[Index]:
    """Blocks of x, cut across the axis with the largest stride, so that each lies together in memory."""
    if x.size <= BLOCK:
        return [(slice(None),) * x.ndim]
    axis = x.strides.index(max(x.strides))
    length = x.shape[axis]
    step = max(1, BLOCK * length // x.size)
    everything = slice(None)
    return [
        tuple(slice(first, first + step) if i == axis else everything for i in range(x.ndim))
        for first in range(0, length, step)
    ]
