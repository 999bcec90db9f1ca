"""The op vocabulary: what every forward pass is made of. The line above each op is its shape and cost rule.

Arrays are logically [token, hidden]; how they lie in memory and which way round a product runs is decided here.
`work` counts element-wise operations for each number of the result, transcendental functions as one: see `parts.Op`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import sqrt
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli import kernels
from bertcli.blas import single_threaded
from bertcli.memory import room
from bertcli.parts import Array, op, watched
from bertcli.team import one_by_one, share, sharing, size

if TYPE_CHECKING:
    from bertcli.packing import Part

Integers = NDArray[np.integer[Any]]
T = TypeVar("T")

WORTH_SHARING = 1 << 28  # multiplications of a layer's smallest product: 1 ms, twenty times what waking a thread takes

SMALL = 1_000_000  # multiplications up to which OpenBLAS takes a product for a small one

# Element-wise operations in each activation's formula, in the form kernels.py states it.
ACTIVATION_WORK = {
    None: 0, "relu": 1, "tanh": 1, "silu": 4, "swish": 4,
    "gelu": 5, "gelu_new": 8, "gelu_pytorch_tanh": 8, "gelu_fast": 8,
}  # fmt: skip


def _linear_work(arguments: Mapping[str, Any]) -> int:
    return (arguments.get("bias") is not None) + ACTIVATION_WORK[arguments.get("activation")]


def _norm_work(arguments: Mapping[str, Any]) -> int:
    return 5 + sum(arguments.get(name) is not None for name in ("weight", "bias"))


def like(x: Array) -> Array:
    """Room for a result of the same shape; an op has to fill it."""
    if not any(x.strides):  # a shape without numbers, as in a trace without weights
        return np.broadcast_to(np.zeros((), dtype=np.float32), x.shape)
    return _room(*x.shape)


def each(work: Callable[[T], object], pieces: Sequence[T]) -> None:
    """`work`, a few ops, on every piece, products on one thread each; by all cores unless somebody watches this one."""
    if sharing():
        one_by_one(work, pieces)
        return
    with single_threaded() as alone:
        (share if alone and not watched() else one_by_one)(work, pieces)


def place(x: Array, into: Array, rows: Integers) -> None:
    """into[rows] = x, into rows that lie one after the other in memory."""
    for some in _turns(len(x)):
        into[rows[some]] = x[some]


def _turns(tokens: int) -> list[slice]:
    """A few tokens at a time, to turn rows into columns or back within the cache: 2.8 times as fast."""
    return [slice(first, first + 64) for first in range(0, tokens, 64)]


_cuts: ContextVar[tuple[slice, ...]] = ContextVar("cuts", default=())


@contextmanager
def multiplied_by(parts: Sequence[Part]) -> Iterator[None]:
    """A pass over a whole batch that somebody watches makes the very products it makes unwatched, part by part.

    The last bit of a number may depend on how many columns a product has, and how many threads.
    """
    if len(parts) < 2:
        yield
        return
    before = _cuts.set(tuple(part.rows for part in parts))
    try:
        with single_threaded():
            yield
    finally:
        _cuts.reset(before)


def _product(x: Array, weight: Array, bias: Array | None, activation: str | None) -> Array:
    """activation(x Wᵀ + b): where no other part of the batch keeps the cores busy, each computes some of the outputs.

    One sentence of 512 tokens is 1.2 times as fast so as with OpenBLAS's own threads, which leave the activation to one
    core. Smaller products are left to them: they spin, and are there 60 µs sooner.
    """
    y = _room(len(x), len(weight))

    def compute(part: tuple[slice, slice]) -> None:
        tokens, outputs = part
        some = y[tokens, outputs]
        _multiply(weight[outputs], x.T[:, tokens], some.T)
        kernels.activate(some, activation, None if bias is None else bias[outputs])

    cuts = _cuts.get()
    if cuts and cuts[-1].stop == len(x):
        one_by_one(compute, [(rows, slice(None)) for rows in cuts])
    elif sharing() or len(x) * min(weight.shape) ** 2 < WORTH_SHARING:
        compute((slice(None), slice(None)))
    else:
        step = -(-len(weight) // size())
        each(compute, [(slice(None), slice(first, first + step)) for first in range(0, len(weight), step)])
    return y


def _multiply(weight: Array, columns: Array, into: Array) -> None:
    """weight · columns, where each column's result is its own to the last bit, however many there are.

    So OpenBLAS has it with its AVX-512 kernel, except that it adds up small products in another order, and a single
    column in a third. Where a product is small, columns of zeros make it large enough; that costs 10 µs.
    """
    count = columns.shape[1]
    enough = max(2, SMALL // max(1, weight.size) + 1)
    if count >= enough or count == 0:
        np.matmul(weight, columns, out=into)
        return
    padded = np.zeros((len(columns), enough), dtype=np.float32)
    padded[:, :count] = columns
    into[...] = np.matmul(weight, padded)[:, :count]


def _room(tokens: int, hidden: int) -> Array:
    """[token, hidden], with each feature's tokens side by side in memory.

    This way round a product reads the stored weights [out, in] in order and writes what the next one reads. It is never
    slower, and 1.5 times as fast at 128 tokens, 2.7 times at 16.
    """
    return room(hidden * tokens).reshape(hidden, tokens).T


@op("rows hidden, token -> token hidden")
def embed(table: Array, ids: Integers) -> Array:
    """E[ids]: the rows of an embedding table."""
    x = _room(len(ids), table.shape[1])
    for some in _turns(len(ids)):
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
    return _product(x, weight, bias, activation)


@op("token in, in out, out -> token out", contracts=True, work=_linear_work)
def project(x: Array, weight: Array, bias: Array | None = None, *, activation: str | None = None) -> Array:
    """activation(x W + b), for weights written [in, out] as the textbooks do."""
    return _product(x, weight.T, bias, activation)


@op("token hidden, head hidden size -> head token size", contracts=True)
def project_heads(x: Array, weights: Array) -> Array:
    """x W_h for every head h."""
    return x @ weights


@op("batch head query size, batch head key size -> batch head query key", contracts=True, work=1)
def scores(q: Array, k: Array) -> Array:
    """Q Kᵀ / sqrt(D) for every head of every sentence."""
    batch, head, query, size = q.shape
    # Keys first: the maxima and sums of softmax then run over whole rows of memory, at a third of the cost.
    key = k.shape[2]
    memory = room(batch * key * head * query).reshape(batch, key, head, query)
    return np.matmul(q * np.float32(1 / sqrt(size)), k.swapaxes(-1, -2), out=memory.transpose(0, 2, 3, 1))


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
