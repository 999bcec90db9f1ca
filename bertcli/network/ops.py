"""The ops of forward passes, but for those of positions. The decorator above each op gives its shape and cost.

Arrays are logically [token, hidden]; their memory layout and the order of a product's operands are decided here.
`work` counts element-wise operations per number of the result, a transcendental function as one: see `dispatch.Op`.
"""

from collections.abc import Mapping
from math import sqrt
from typing import Any

import numpy as np

from bertcli.engine import kernels
from bertcli.engine.experts import mixture
from bertcli.engine.kernels import empty_tokens, product, take_rows
from bertcli.engine.threads import each as each
from bertcli.tracing.dispatch import Array, Integers, is_shape_only, op, shape_only, traced_like, untraced


def linear_work(arguments: Mapping[str, Any]) -> int:
    """Of a product's bias and activation."""
    activation = arguments.get("activation")
    return (arguments.get("bias") is not None) + (0 if activation is None else kernels.ACTIVATIONS[activation].work)


def _norm_work(arguments: Mapping[str, Any]) -> int:
    return 5 + sum(arguments.get(name) is not None for name in ("weight", "bias"))


def empty_like(x: Array) -> Array:
    """An uninitialized array of the same shape [token, hidden], for heads to fill."""
    empty = shape_only(x.shape) if is_shape_only(untraced(x)) else empty_tokens(*x.shape)
    return traced_like(x, empty, "A·D")


@op("rows hidden, token -> token hidden")
def embed(table: Array, ids: Integers) -> Array:
    """E[ids]: rows of an embedding table."""
    return take_rows(table, ids)


@op("token …, row -> row …")
def gather(x: Any, rows: Integers) -> Array:
    """X[rows]: only these tokens, or the numbers of these."""
    some: Array = x.T[..., rows].T
    return some


@op("token hidden, token hidden -> token hidden", work=1, over="y")
def add(x: Array, y: Array) -> Array:
    """x + y, written over y."""
    return np.add(x, y, out=y)


@op("token hidden, token hidden -> token hidden", work=1, over="y")
def multiply(x: Array, y: Array) -> Array:
    """x · y, number by number, written over y."""
    return np.multiply(x, y, out=y)


@op("token hidden, sentence -> sentence hidden", work=1)
def mean_tokens(x: Array, first: Integers) -> Array:
    """The mean of each sentence's tokens; `first` are the rows at which sentences begin."""
    counts = np.diff(first, append=len(x)).astype(np.float32)
    sums: Array = np.add.reduceat(x, first, axis=0)
    return sums / counts[:, None]


@op("token hidden, token, sentence -> sentence hidden")
def last_tokens(x: Array, ids: Integers, first: Integers, *, padding: int) -> Array:
    """Each sentence's last token whose id is not that of padding; `first` are the rows at which sentences begin."""
    counted = np.where(ids == padding, 0, np.arange(len(ids)))
    rows = np.maximum(first, np.maximum.reduceat(counted, first))
    last: Array = x.T[:, rows].T
    return last


@op("token hidden -> token hidden", work=1, over="x")
def scale(x: Array, *, factor: float) -> Array:
    """x · factor, written over x."""
    return np.multiply(x, np.float32(factor), out=x)


@op("token hidden, token, sentence -> token hidden", work=1, over="x")
def drop_masks(x: Array, ids: Integers, first: Integers, *, mask: int, trained: float) -> Array:
    """0 for masks, else x (1 - trained) / (1 - the share of masks in its sentence), written over x.

    As dropout does it: the share of masks in training is `trained`.
    """
    masks = (ids == mask).astype(np.float32)
    counts = np.diff(first, append=len(ids))
    factors = np.float32(1 - trained) / (1 - np.add.reduceat(masks, first) / counts.astype(np.float32))
    factor: Array = (1 - masks) * np.repeat(factors, counts)
    return np.multiply(x, factor[:, None], out=x)


@op("token hidden, rows hidden -> token hidden", work=1, over="x")
def add_row(x: Array, table: Array) -> Array:
    """x + E[0], the same row for every token, written over x."""
    return np.add(x, table[:1], out=x)


@op("token in, out in, out -> token out", contracts=True, work=linear_work)
def linear(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    """activation(x Wᵀ + b)."""
    return product(x, weight, bias, activation)


@op("token in, in out, out -> token out", contracts=True, work=linear_work)
def project(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    """activation(x W + b), for weights stored [in, out], as textbooks write them."""
    return product(x, weight.T, bias, activation)


@op("token hidden, head hidden size -> head token size", contracts=True)
def project_heads(x: Array, weights: Array) -> Array:
    """x W_h for every head h."""
    return x @ weights


def _expert_macs(sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> int:
    """Of two products of every token with each of the experts that it goes to."""
    inner = sizes["rows"] // sizes["expert"]
    top: int = arguments["top"]
    return 2 * sizes["token"] * top * sizes["hidden"] * inner


def _expert_work(arguments: Mapping[str, Any]) -> int:
    """Of sums by experts and their activation, for every number of the result."""
    shares, inner = untraced(arguments["shares"]), untraced(arguments["inner"])
    hidden = len(inner) // shares.shape[1]
    activated = kernels.ACTIVATIONS[arguments["activation"]].work * hidden // inner.shape[1]
    return int(arguments["top"]) * (2 + int(activated))


@op(
    "token hidden, token expert, rows hidden, rows hidden, hidden -> token hidden", macs=_expert_macs, work=_expert_work
)
def experts(x: Array, shares: Array, inner: Array, outer: Array, bias: Array, *, top: int, activation: str) -> Array:
    """Σ_e share_e activation(x W_eᵀ) V_e + bias over the `top` experts with the largest shares, as they are.

    `inner` (W) and `outer` (V) have the rows of one expert after the other; a token needs those of its own only.
    """
    return mixture(x, shares, inner, outer, bias, top, activation)


@op("batch head query size, batch head key size -> batch head query key", contracts=True, work=1)
def scores(q: Array, k: Array, *, terms: float = 1) -> Array:
    """Q Kᵀ / sqrt(D) for every head of every sentence; as one of several terms Q Kᵀ / sqrt(terms · D)."""
    batch, head, query, size = q.shape
    # Keys first in memory: softmax then takes maxima and sums over contiguous rows, at a third of the cost.
    key = k.shape[2]
    into = np.empty((batch, key, head, query), np.float32).transpose(0, 2, 3, 1)
    return np.matmul(q * np.float32(1 / sqrt(terms * size)), k.swapaxes(-1, -2), out=into)


@op("key narrow, query hidden -> key hidden")
def repeat_heads(x: Array, like: Array, *, heads: int, of: int) -> Array:
    """Each head of keys or values as often as query heads share it: as many as the queries, which are `like`."""
    narrow = x.T.reshape(heads, 1, -1, len(x), copy=False)
    wide = empty_tokens(len(x), like.shape[1])
    wide.T.reshape(heads, of // heads, -1, len(x), copy=False)[...] = narrow
    return wide


@op("… key -> … key", work=5, over="x")
def softmax(x: Array) -> Array:
    """exp(x - max) / sum over the last axis, written over x."""
    return kernels.softmax(x)


@op("batch head query key, batch head key size -> batch head query size", contracts=True, over="into", beside=1)
def attend(weights: Array, v: Array, into: Array | None = None) -> Array:
    """A V: the weighted sum of the values."""
    return np.matmul(weights, v, out=into)


@op("batch head token size -> batch·token head·size", over="into")
def concat(heads: Array, into: Array) -> Array:
    """The heads' outputs of each token, side by side."""
    into[...] = heads.transpose(0, 2, 1, 3).reshape(into.shape)
    return into


@op("token hidden, hidden, hidden -> token hidden", work=_norm_work, over="x")
def norm(x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float) -> Array:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the hidden axis, written over x."""
    return kernels.layer_norm(x, weight, bias, eps)


@op("token hidden, hidden, hidden -> token hidden", work=_norm_work)
def new_norm(x: Array, weight: Array | None = None, bias: Array | None = None, *, eps: float) -> Array:
    """The same as `norm`, for an x that is needed again."""
    return kernels.layer_norm(x, weight, bias, eps, out=empty_tokens(*x.shape))


@op("token hidden, size -> token hidden", work=4)
def rms_norm(x: Array, weight: Array, *, eps: float, offset: float = 0, heads: int = 1) -> Array:
    """x / sqrt(mean of squares + eps) · (offset + weight) over the hidden axis, or over that of every head."""
    out = empty_tokens(*x.shape)
    of_heads, into = (array.T.reshape(heads, -1, len(array), copy=False).swapaxes(1, 2) for array in (x, out))
    kernels.rms_norm(of_heads, weight + np.float32(offset), eps, into)  # [head, token, size]
    return out
