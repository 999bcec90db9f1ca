"""The op vocabulary: what every forward pass is made of. The line above each op is its shape and cost rule.

Arrays are logically [token, hidden]; how they lie in memory and which way round a product runs is decided here.
`work` counts element-wise operations for each number of the result, transcendental functions as one: see `parts.Op`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli import kernels
from bertcli.parts import Array, op

Integers = NDArray[np.integer[Any]]

# Element-wise operations in each activation's formula, in the form kernels.py states it.
ACTIVATION_WORK = {
    None: 0, "relu": 1, "tanh": 1, "silu": 4, "swish": 4, "gelu": 5, "gelu_new": 8, "gelu_pytorch_tanh": 8, "gelu_fast": 8,
}  # fmt: skip


def _linear_work(arguments: Mapping[str, Any]) -> int:
    return (arguments.get("bias") is not None) + ACTIVATION_WORK[arguments.get("activation")]


def _norm_work(arguments: Mapping[str, Any]) -> int:
    return 5 + sum(arguments.get(name) is not None for name in ("weight", "bias"))


def like(x: Array) -> Array:
    """Room for a result of the same shape; an op has to fill it."""
    return np.empty_like(x)


@op("rows hidden, token -> token hidden")
def embed(table: Array, ids: Integers) -> Array:
    """E[ids]: the rows of an embedding table."""
    return table[ids]


@op("token hidden, row -> row hidden")
def pick(x: Array, rows: Integers) -> Array:
    """X[rows]: only these tokens."""
    return x[rows]


@op("token hidden, token hidden -> token hidden", work=1)
def add(x: Array, y: Array) -> Array:
    """x + y, written over y."""
    return np.add(x, y, out=y)


@op("token in, out in, out -> token out", contracts=True, work=_linear_work)
def linear(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    """activation(x Wᵀ + b)."""
    y = (weight @ x.T).T  # weights first: the stored [out, in] is read in order, and it is the faster way for few tokens
    if bias is not None:
        y += bias
    return y if activation is None else kernels.ACTIVATIONS[activation](y)


@op("token in, in out, out -> token out", contracts=True, work=_linear_work)
def project(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    """activation(x W + b), for weights written [in, out] as the textbooks do."""
    y = x @ weight
    if bias is not None:
        y += bias
    return y if activation is None else kernels.ACTIVATIONS[activation](y)


@op("token hidden, head hidden size -> head token size", contracts=True)
def project_heads(x: Array, weights: Array) -> Array:
    """x W_h for every head h."""
    return x @ weights


@op("batch head query size, batch head key size -> batch head query key", contracts=True, work=1)
def scores(q: Array, k: Array) -> Array:
    """Q Kᵀ / sqrt(D) for every head of every sentence."""
    product = q @ k.swapaxes(-1, -2)
    product *= np.float32(1 / sqrt(q.shape[-1]))
    return product


@op("… key -> … key", work=5)
def softmax(x: Array) -> Array:
    """exp(x - max) / sum over the last axis, written over x."""
    return kernels.softmax(x)


@op("batch head query key, batch head key size -> batch head query size", contracts=True)
def mix(weights: Array, v: Array, into: Array | None = None) -> Array:
    """A V: the values, weighted."""
    return np.matmul(weights, v, out=into)


@op("batch head token size -> batch·token head·size")
def concat(heads: Array, into: Array | None = None) -> Array:
    """The heads' outputs of each token, side by side."""
    batch, head, token, size = heads.shape
    side_by_side = heads.transpose(0, 2, 1, 3).reshape(batch * token, head * size)
    if into is None:
        return side_by_side
    into[...] = side_by_side
    return into


@op("token hidden, hidden, hidden -> token hidden", work=_norm_work)
def norm(x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the hidden axis, written over x."""
    return kernels.layer_norm(x, weight, bias, eps)
