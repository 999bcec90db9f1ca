"""`bertcli.functional`: softmax, attention, layer norm and others as functions of plain arrays, without a model.

They compute with the engine's kernels (engine/kernels.py), which write over what they read; so arguments are copied
first and never modified.
"""

# So that help() shows ArrayLike, and not the union that it is.
from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertcli.engine import kernels
from bertcli.errors import BertcliError

Array = NDArray[np.float32]


def softmax(x: ArrayLike) -> Array:
    """exp(x - max) / sum along the last axis: any shape -> the same; every row sums to 1."""
    rows = _copy(x)
    if not rows.size:
        return rows
    # A difference to the largest that overflows has weight 0, as it should.
    with np.errstate(over="ignore"):
        return kernels.softmax(np.atleast_1d(rows)).reshape(rows.shape)


def scaled_dot_product_attention(q: ArrayLike, k: ArrayLike, v: ArrayLike, mask: ArrayLike | None = None) -> Array:
    """softmax(Q Kᵀ / sqrt(D)) V: [..., query, D], [..., key, D], [..., key, E] -> [..., query, E].

    Source: Vaswani et al. 2017, equation 1.
    `mask` [..., query, key] is true (or 1) where a query may see a key, else false (or 0); a query that may see none
    gets zeros. A mask of other numbers, such as one to be added to the scores, raises BertcliError.
    """
    queries, keys, values = _copy(q), _copy(k), _copy(v)
    scores = queries @ keys.swapaxes(-1, -2) * np.float32(1 / sqrt(queries.shape[-1]))
    if mask is None:
        return np.asarray(kernels.softmax(scores) @ values, dtype=np.float32)
    allowed = np.asarray(mask)
    if not np.isin(allowed, (0, 1)).all():
        raise BertcliError("A mask is 1 (or true) where a query may see a key and 0 elsewhere; this has other numbers.")
    seen = np.broadcast_to(allowed != 0, scores.shape)
    weights = kernels.softmax(np.where(seen, scores, np.finfo(np.float32).min))
    return np.asarray((weights * seen) @ values, dtype=np.float32)


def feed_forward(
    x: ArrayLike, w1: ArrayLike, b1: ArrayLike, w2: ArrayLike, b2: ArrayLike, activation: str = "relu"
) -> Array:
    """act(x W_1 + b_1) W_2 + b_2: x [token, H], W_1 [H, F], W_2 [F, H] -> [token, H].

    `activation` is a name as in config.json; BertcliError for any other.
    """
    if activation not in kernels.ACTIVATIONS:
        raise BertcliError(f"There is no activation '{activation}'; choose from {', '.join(kernels.ACTIVATIONS)}.")
    hidden = kernels.activate(_copy(x) @ _copy(w1), activation, _copy(b1))
    return np.asarray(hidden @ _copy(w2) + _copy(b2), dtype=np.float32)


def residual_add(x: ArrayLike, y: ArrayLike) -> Array:
    """x + y: the input of a sub-layer plus its output (He et al. 2015)."""
    return np.asarray(_copy(x) + _copy(y), dtype=np.float32)


def layer_norm(
    x: ArrayLike, eps: float = 1e-5, *, weight: ArrayLike | None = None, bias: ArrayLike | None = None
) -> Array:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the last axis, biased variance (Ba et al. 2016)."""
    scale, shift = (None if array is None else _copy(array) for array in (weight, bias))
    rows = _copy(x)
    return kernels.layer_norm(np.atleast_1d(rows), scale, shift, eps).reshape(rows.shape)


def gelu(x: ArrayLike) -> Array:
    """x/2 · (1 + erf(x / sqrt 2)), the exact form (Hendrycks & Gimpel 2016)."""
    return _activated(x, "gelu")


def relu(x: ArrayLike) -> Array:
    """max(0, x)."""
    return _activated(x, "relu")


def masked_lm_loss(logits: ArrayLike, true_ids: ArrayLike) -> float:
    """L = - Σ_i log softmax(logits_i)[true_ids_i] over the masked positions i: logits [masked, V], ids [masked].

    Errors: BertcliError for ids outside the vocabulary, negative ones too; leave out positions that do not count.
    """
    scores, ids = np.array(logits, dtype=np.float64), np.asarray(true_ids)
    if ids.size and not 0 <= ids.min() <= ids.max() < scores.shape[-1]:
        raise BertcliError(f"True ids must be between 0 and {scores.shape[-1] - 1}; found {ids.min()} to {ids.max()}.")
    scores -= scores.max(axis=-1, keepdims=True)
    true = np.take_along_axis(scores, ids[..., None], axis=-1)[..., 0]
    return float(np.sum(np.log(np.exp(scores).sum(axis=-1)) - true))


def _activated(x: ArrayLike, activation: str) -> Array:
    numbers = _copy(x)
    return kernels.activate(np.atleast_1d(numbers), activation).reshape(numbers.shape)


def _copy(x: Any) -> Array:
    return np.array(x, dtype=np.float32)
