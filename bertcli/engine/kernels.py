"""The loops behind softmax, activations, norms and products: ndarray in, ndarray out, float32, most of them in place.

NumPy makes one pass over memory for every operation, so speed depends on the number of passes and on their staying in
the cache: long arrays are processed in blocks. Cost of one pass, in nanoseconds per number, on one core with AVX-512:
add or multiply 0.06, divide 0.09, tanh 0.18, exp 0.35; maximum or minimum with a scalar 0.32. With AVX2 only:
0.14, 0.17, 2.6, 1.3 and 0.4.

The loops run on the calling thread. Sharing the blocks of one array among threads gains nothing: a pass takes only
5 µs, after which the threads wait for each other at the interpreter's lock. Other parts of the batch keep the other
cores busy.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from bertcli.engine.blas import can_be_set, forget_choices, single_threaded
from bertcli.engine.product_rules import library_divides, product_rule
from bertcli.engine.threads import each, sharing, thread_count
from bertcli.tracing.dispatch import Array, Integers

forget_choices()  # NumPy is loaded

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


def _sigmoid(x: Array) -> None:
    """1 / (1 + exp(-x))"""
    with np.errstate(over="ignore"):  # for x far below 0, 1 / infinity is the right value
        np.exp(np.negative(x, out=x), out=x)
    x += 1
    np.reciprocal(x, out=x)


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


# By their names in config.json. Each has a rule for ONNX, too: ACTIVATION_RULES in wings/onnx/rules.py.
ACTIVATIONS = {
    "gelu": Activation(_gelu, "GELU", 5),
    **dict.fromkeys(("gelu_new", "gelu_pytorch_tanh", "gelu_fast"), Activation(_gelu_tanh, "GELU (tanh)", 8)),
    "relu": Activation(_relu, "ReLU", 1),
    "sigmoid": Activation(_sigmoid, "sigmoid", 4),
    **dict.fromkeys(("silu", "swish"), Activation(_silu, "SiLU", 4)),
    "tanh": Activation(_tanh, "tanh", 1),
}


def _blocks(x: Array) -> list[tuple[slice, ...]]:
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


# ------------------------------------------------------------------------------------------------------ products

# Matrix products of a weight as it is stored, [out, in], with a few or many tokens, shared by the cores.
#
# Activations are [token, feature] in column-major order: each feature's tokens are adjacent in memory. A product then
# reads the stored weight in order and writes what the next one reads in order. It is never slower than the other order,
# and at 16 to 128 tokens half as fast again. How a product is divided depends on the processor: product_rules.py.

TILE = 24  # outputs: a multiple of the kernels' tiles, so that dividing them leaves no incomplete tile
PIECE = 1 << 22  # multiplications worth waking another thread for: 50 to 100 µs
FEW = 16  # tokens: fewer take as long, because it is reading the weight that takes the time
SMALL = 1_000_000  # multiplications up to which OpenBLAS, with AVX-512, reads a weight in place instead of copying it
STRIPS = (24, 12)  # outputs: the kernel's tiles; products of fewer are slower than those of a whole weight, copied
PORTION = 384  # inputs
ROWS = 24  # outputs multiplied with one token after the other: 72 KiB of BERT-base's weights, within a core's cache
OUTPUTS = 768  # at a time: what is summed of 8 portions, for 16 tokens, still fits a core's cache


def product(x: Array, weight: Array, bias: Array | None, activation: str | None) -> Array:
    """activation(x Wᵀ + b): if no other part of the batch keeps the cores busy, each computes some of the outputs.

    The library's own threads would leave the activation to one core: where they divide the product, the cores share the
    activation afterwards. A small product uses one thread.
    """
    outputs, tokens = len(weight), len(x)
    y = empty_tokens(tokens, outputs)
    rule = product_rule()
    in_strips = rule.in_strips(tokens)
    one_by_one = 1 < tokens <= rule.single_tokens and weight.flags.c_contiguous

    def compute(some: slice) -> None:
        if one_by_one:
            multiply_each(weight[some], x.T, y.T[some])
        else:
            multiply(weight[some], x.T, y.T[some], in_strips)
        finish(some)

    def finish(some: slice) -> None:
        activate(y[:, some], activation, None if bias is None else bias[some])

    count = min(thread_count(), weight.size * max(FEW, tokens) // PIECE)
    if sharing() or not can_be_set():  # a library that cannot be told to use one thread shares every product itself
        compute(slice(None))
    elif count < 2:
        with single_threaded():
            compute(slice(None))
    else:
        step = TILE * -(-outputs // (TILE * count))
        shares = [slice(first, first + step) for first in range(0, outputs, step)]
        if library_divides():
            np.matmul(weight, x.T, out=y.T)
            each(finish, shares)
        else:
            each(compute, shares)
    return y


def multiply(weight: Array, columns: Array, into: Array, in_strips: bool) -> None:
    """into = weight · columns: [out, in], [in, token] -> [out, token].

    OpenBLAS copies both matrices into an order of its own before it multiplies, which for few columns takes as long as
    multiplying. With its AVX-512 kernel it multiplies small matrices in place: so the weight is cut into strips of rows
    and portions of inputs, all of them multiplied in one call. For 16 tokens this is 1.7 times as fast, for 128 tokens
    1.1 times. These are AMD's figures; on Intel's it is slower from 64 tokens on.
    """
    (outputs, inputs), tokens = weight.shape, columns.shape[1]
    portion = _portion(inputs)
    strip = next((rows for rows in STRIPS if rows * portion * tokens <= SMALL), 0)
    whole = outputs // strip * strip if strip and tokens > 1 and in_strips and weight.flags.c_contiguous else 0
    for first in range(0, whole, OUTPUTS):
        some = slice(first, min(first + OUTPUTS, whole))
        small = weight[some].reshape(-1, strip, inputs // portion, portion).transpose(0, 2, 1, 3)
        products = np.matmul(small, columns.reshape(-1, portion, tokens))  # [strip, portion, output, token]
        np.add.reduce(products, axis=1, out=into[some].reshape(-1, strip, tokens, copy=False))
    if whole < outputs:
        np.matmul(weight[whole:], columns, out=into[whole:])


def multiply_each(weight: Array, columns: Array, into: Array) -> None:
    """into = weight · columns, each column by itself, with a few rows of the weight at a time.

    For 2 to 6 columns this takes 0.6 to 0.8 of the time of a matrix product with OpenBLAS's AVX2 kernel, which copies
    the weight first; with 8 it takes longer.
    """
    (outputs, inputs), tokens = weight.shape, columns.shape[1]
    whole = outputs // ROWS * ROWS
    rows = weight[:whole].reshape(-1, 1, ROWS, inputs, copy=False)
    vectors = np.ascontiguousarray(columns.T)[:, :, None]
    results = into[:whole].reshape(-1, ROWS, tokens, copy=False).swapaxes(1, 2)  # [rows, token, row]
    np.matmul(rows, vectors, out=results[..., None])
    if whole < outputs:
        np.matmul(weight[whole:], columns, out=into[whole:])


@cache
def _portion(inputs: int) -> int:
    """How many inputs of a small product are summed one after the other: so few that its rounding error is no larger
    than that of a large product, in which OpenBLAS does the same."""
    return next(
        (inputs // parts for parts in range(1, 65) if inputs % parts == 0 and inputs // parts <= PORTION), inputs
    )


def empty_tokens(tokens: int, hidden: int) -> Array:
    """An uninitialized array [token, hidden] in column-major order."""
    return np.empty((tokens, hidden), np.float32, order="F")


def take_rows(table: Array, rows: Integers) -> Array:
    """table[rows] of a row-major table, as [token, hidden]."""
    x = empty_tokens(len(rows), table.shape[1])
    for some in token_blocks(len(rows)):
        x[some] = table[rows[some]]
    return x


def take_columns(x: Array, rows: Integers) -> Array:
    """x[rows] of [token, hidden] in column-major order, as an array of the same order."""
    some: Array = np.take(x.T, rows, axis=1).T
    return some


def scatter_rows(x: Array, into: Array, rows: Integers) -> None:
    """into[rows] = x, where `into` is row-major in memory."""
    for some in token_blocks(len(x)):
        into[rows[some]] = x[some]


def token_blocks(tokens: int) -> list[slice]:
    """A few tokens at a time, so that transposing them stays within the cache: 2.8 times as fast."""
    return [slice(first, first + 64) for first in range(0, tokens, 64)]
