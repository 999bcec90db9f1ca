"""The building blocks as functions on plain arrays, without a model. None of them changes its arguments."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertcli import kernels
from bertcli.errors import BertcliError

Array = NDArray[np.float32]


def softmax(x: ArrayLike) -> Array:
    """exp(x - max) / sum along the last axis: any shape -> the same; every row sums to 1."""
    rows = _copy(x)
    if not rows.size:
        return rows
    with np.errstate(over="ignore"):  # a number that far below the largest has weight 0, whatever the difference
        return kernels.softmax(np.atleast_1d(rows)).reshape(rows.shape)


def scaled_dot_product_attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None) -> Array:
    """softmax(Q Kᵀ / sqrt(D)) V: [..., query, D], [..., key, D], [..., key, E] -> [..., query, E].

    Source: Vaswani et al. 2017, equation 1.
    `mask` [..., query, key] is true (or 1) where a query may see a key; a query that may see none gets zeros.
    """
    queries, keys, values = _copy(q), _copy(k), _copy(v)
    scores = queries @ keys.swapaxes(-1, -2) * np.float32(1 / sqrt(queries.shape[-1]))
    if mask is None:
        return np.asarray(kernels.softmax(scores) @ values, dtype=np.float32)
    seen = np.broadcast_to(np.asarray(mask) != 0, scores.shape)
    weights = kernels.softmax(np.where(seen, scores, np.finfo(np.float32).min))
    return np.asarray((weights * seen) @ values, dtype=np.float32)


def feed_forward(
    x: ArrayLike, w1: ArrayLike, b1: ArrayLike, w2: ArrayLike, b2: ArrayLike, activation: str = "relu"
) -> Array:
    """act(x W_1 + b_1) W_2 + b_2: x [token, H], W_1 [H, F], W_2 [F, H] -> [token, H].

    `activation` is one of config.json's words; another raises BertcliError.
    """
    if activation not in kernels.ACTIVATIONS:
        raise BertcliError(f"There is no activation '{activation}'; there are {', '.join(kernels.ACTIVATIONS)}.")
    hidden = kernels.activate(_copy(x) @ _copy(w1), activation, _copy(b1))
    return np.asarray(hidden @ _copy(w2) + _copy(b2), dtype=np.float32)


def layer_norm(
    x: ArrayLike, weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-5
) -> Array:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the last axis, biased variance (Ba et al. 2016)."""
    scale, shift = (None if one is None else _copy(one) for one in (weight, bias))
    return kernels.layer_norm(_copy(x), scale, shift, eps)


def gelu(x: ArrayLike) -> Array:
    """x/2 · (1 + erf(x / sqrt 2)), the exact form (Hendrycks & Gimpel 2016)."""
    return kernels.activate(_copy(x), "gelu")


def relu(x: ArrayLike) -> Array:
    """max(0, x)."""
    return kernels.activate(_copy(x), "relu")


def masked_lm_loss(logits: ArrayLike, true_ids: ArrayLike) -> float:
    """L = - Σ_i log softmax(logits_i)[true_ids_i] over the masked positions i: logits [masked, V], ids [masked]."""
    scores, ids = np.array(logits, dtype=np.float64), np.asarray(true_ids)
    scores -= scores.max(axis=-1, keepdims=True)
    true = np.take_along_axis(scores, ids[..., None], axis=-1)[..., 0]
    return float(np.sum(np.log(np.exp(scores).sum(axis=-1)) - true))


def _copy(x: Any) -> Array:
    return np.array(x, dtype=np.float32)
