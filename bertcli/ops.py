"""The ops that every forward pass consists of. The decorator above each op gives its shape and cost rule.

Arrays are logically [token, hidden]; their memory layout and the order of a product's operands are decided here.
`work` counts element-wise operations per number of the result, a transcendental function as one: see `parts.Op`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from bertcli import kernels
from bertcli.memory import is_shape_only, room, shape_only
from bertcli.parts import Array, Integers, op
from bertcli.products import each as each
from bertcli.products import empty_tokens, matmul, product, token_blocks


def _linear_work(arguments: Mapping[str, Any]) -> int:
    activation = arguments.get("activation")
    return (arguments.get("bias") is not None) + (0 if activation is None else kernels.ACTIVATIONS[activation].work)


def _norm_work(arguments: Mapping[str, Any]) -> int:
    return 5 + sum(arguments.get(name) is not None for name in ("weight", "bias"))


def empty_like(x: Array) -> Array:
    """An uninitialised array of the same shape, for an op to fill."""
    if is_shape_only(x):
        return shape_only(x.shape)
    return empty_tokens(*x.shape)


@op("rows hidden, token -> token hidden")
def embed(table: Array, ids: Integers) -> Array:
    """E[ids]: rows of an embedding table."""
    x = empty_tokens(len(ids), table.shape[1])
    for some in token_blocks(len(ids)):
        x[some] = table[ids[some]]
    return x


@op("token hidden, row -> row hidden")
def pick(x: Array, rows: Integers) -> Array:
    """X[rows]: only these tokens."""
    return x.T[:, rows].T


@op("token hidden, token hidden -> token hidden", work=1)
def add(x: Array, y: Array) -> Array:
    """x + y, written over y."""
    return np.add(x, y, out=y)


@op("token in, out in, out -> token out", contracts=True, work=_linear_work)
def linear(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    """activation(x Wᵀ + b)."""
    return product(x, weight, bias, activation)


@op("token in, in out, out -> token out", contracts=True, work=_linear_work)
def project(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    """activation(x W + b), for weights stored [in, out], as textbooks write them."""
    return product(x, weight.T, bias, activation)


@op("token hidden, head hidden size -> head token size", contracts=True)
def project_heads(x: Array, weights: Array) -> Array:
    """x W_h for every head h."""
    return x @ weights


@op("batch head query size, batch head key size -> batch head query key", contracts=True, work=1)
def scores(q: Array, k: Array) -> Array:
    """Q Kᵀ / sqrt(D) for every head of every sentence."""
    batch, head, query, size = q.shape
    # Keys first in memory: softmax then takes maxima and sums over contiguous rows, at a third of the cost.
    key = k.shape[2]
    memory = room(batch * key * head * query).reshape(batch, key, head, query)
    return matmul(q * np.float32(1 / sqrt(size)), k.swapaxes(-1, -2), memory.transpose(0, 2, 3, 1))


@op("… key -> … key", work=5)
def softmax(x: Array) -> Array:
    """exp(x - max) / sum over the last axis, written over x."""
    return kernels.softmax(x)


@op("batch head query key, batch head key size -> batch head query size", contracts=True)
def mix(weights: Array, v: Array, into: Array | None = None) -> Array:
    """A V: the weighted sum of the values."""
    return matmul(weights, v, into)


@op("batch head token size -> batch·token head·size")
def concat(heads: Array, into: Array) -> Array:
    """The heads' outputs of each token, side by side."""
    into[...] = heads.transpose(0, 2, 1, 3).reshape(into.shape)
    return into


@op("token hidden, hidden, hidden -> token hidden", work=_norm_work)
def norm(x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the hidden axis, written over x."""
    return kernels.layer_norm(x, weight, bias, eps)
