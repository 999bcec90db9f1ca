"""The loops behind softmax, activations and layer normalization: ndarray in, ndarray out, in place, float32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


def softmax(x: Array) -> Array:
    """exp(x - max) / sum along the last axis, in place."""
    np.subtract(x, x.max(axis=-1, keepdims=True), out=x)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


def layer_norm(x: Array, weight: Array | None, bias: Array | None, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the last axis, biased variance, in place."""
    x -= x.mean(axis=-1, keepdims=True)
    variance = np.einsum("...i,...i->...", x, x)[..., None] / np.float32(x.shape[-1])
    x /= np.sqrt(variance + np.float32(eps))
    if weight is not None:
        x *= weight
    if bias is not None:
        x += bias
    return x


def erf(x: Array) -> Array:
    """2/sqrt(pi) times the integral of exp(-t²) from 0 to x; absolute error below 5e-7 (Abramowitz & Stegun 7.1.26)."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    poly = ((((1.061405429 * t - 1.453152027) * t) + 1.421413741) * t - 0.284496736) * t + 0.254829592
    result: Array = np.copysign(1 - poly * t * np.exp(-x * x), x).astype(np.float32)
    return result


def gelu(x: Array) -> Array:
    """x Φ(x) = x/2 · (1 + erf(x / sqrt 2)), in place (Hendrycks & Gimpel 2016)."""
    x *= 0.5 * (1 + erf(x * np.float32(0.7071067811865476)))
    return x


def gelu_tanh(x: Array) -> Array:
    """x/2 · (1 + tanh(sqrt(2/pi) · (x + 0.044715 x³))), in place: the approximation of the same paper."""
    inner = x * x
    inner *= np.float32(0.044715)
    inner += 1
    inner *= x
    inner *= np.float32(0.7978845608028654)
    np.tanh(inner, out=inner)
    inner += 1
    inner *= np.float32(0.5)
    x *= inner
    return x


def relu(x: Array) -> Array:
    """max(0, x), in place."""
    return np.maximum(x, 0, out=x)


def silu(x: Array) -> Array:
    """x · sigmoid(x) = x/2 · (1 + tanh(x/2)), in place; tanh cannot overflow where exp would."""
    gate = x * np.float32(0.5)
    np.tanh(gate, out=gate)
    gate += 1
    gate *= np.float32(0.5)
    x *= gate
    return x


def tanh(x: Array) -> Array:
    """tanh(x), in place."""
    return np.tanh(x, out=x)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "swish": silu,
    "tanh": tanh,
}
