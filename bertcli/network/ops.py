"""The ops of forward passes, but for those of positions. The decorator above each op gives its shape and cost.

Arrays are logically [token, hidden]; their memory layout and the order of a product's operands are decided here.
`work` counts element-wise operations per number of the result, a transcendental function as one: see `dispatch.Op`.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np

from bertcli.engine import kernels
from bertcli.engine.experts import mixture
from bertcli.engine.kernels import empty_tokens, product, take_columns, take_rows
from bertcli.engine.threads import each as each
from bertcli.tracing.dispatch import Array, Integers, is_shape_only, op, shape_only, traced_like, untraced, watched


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


MOST_TOGETHER = 2048  # rows of spans: with 2,048 numbers each 16 MB, which a core's caches take in turn


def in_parts(run: Callable[[slice], Array], count: int) -> Array:
    """Compute `count` rows, some at a time, so that what lies between fits the caches; at once for a watcher."""
    if watched() or count <= MOST_TOGETHER:
        return run(slice(0, count))
    return np.concatenate([run(slice(first, first + MOST_TOGETHER)) for first in range(0, count, MOST_TOGETHER)])


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


# Element-wise operations for each number of an LSTM's result: of four gates two biases, a sum and an activation, of
# which the sigmoid's are 4 and tanh's 1; then c = f c + i g, tanh and the product with o.
LSTM_WORK = 4 * 3 + 3 * 4 + 1 + 3 + 1 + 1


def _lstm_macs(sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> int:
    """Of a product with the word and one with the state before, in both directions."""
    return 2 * sizes["word"] * sizes["gate"] * (sizes["hidden"] + sizes["half"])


@op(
    "word hidden, gate hidden, gate half, gate, gate, gate hidden, gate half, gate, gate, boundary -> word hidden",
    macs=_lstm_macs, work=LSTM_WORK,
)  # fmt: skip
def lstm(
    x: Array,
    input: Array,
    recurrent: Array,
    input_bias: Array,
    recurrent_bias: Array,
    reverse_input: Array,
    reverse_recurrent: Array,
    reverse_input_bias: Array,
    reverse_recurrent_bias: Array,
    offsets: Integers,
) -> Array:
    """h_t of each word, read from the left, beside that read from the right: o tanh(c), c_t = f c_{t-1} + i g.

    i, f, g, o = σ, σ, tanh, σ of W x_t + b + U h_{t-1} + d. `offsets` say where sentences begin and end.
    """
    from bertcli.engine.lstm import Direction, read_both_ways  # few models have one

    left = Direction(input, recurrent, input_bias, recurrent_bias)
    right = Direction(reverse_input, reverse_recurrent, reverse_input_bias, reverse_recurrent_bias)
    return read_both_ways(x, left, right, offsets)


def _pair_work(arguments: Mapping[str, Any]) -> int:
    return 1 + linear_work(arguments)


@op("word hidden, other hidden, pair, pair -> pair hidden", work=_pair_work)
def add_pairs(x: Array, y: Array, starts: Integers, ends: Integers, *, activation: str | None = None) -> Array:
    """activation(x_i + y_j) for the pairs (i, j) of `starts` and `ends`."""
    pairs = take_columns(x, starts)
    pairs += take_columns(y, ends)
    return kernels.activate(pairs, activation)


@op("span hidden, sentence label hidden, span -> span label", contracts=True)
def label_scores(x: Array, labels: Array, sentences: Integers) -> Array:
    """x · yᵀ: every span with the labels of its own sentence; `sentences` says which that is, in ascending order."""
    scores = np.empty((len(x), labels.shape[1]), np.float32)
    bounds = np.searchsorted(sentences, np.arange(len(labels) + 1))
    for sentence, (first, last) in enumerate(pairwise(bounds.tolist())):
        np.matmul(x[first:last], labels[sentence].T, out=scores[first:last])
    return scores


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
