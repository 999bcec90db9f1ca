"""The ops of the heads of GLiNER2.5 that no other model has; the decorator above each op gives its shape and cost.

Pages show its formula (formulas.py), and work out single numbers of it (worked.js). No graph of another engine has
these heads, so these ops have no ONNX rule. A span's words are x_s … x_{e-1} of its boundaries s and e.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bertcli.engine.kernels import empty_tokens, product, take_columns
from bertcli.tracing.dispatch import Array, Integers, op

LENGTH_WORK = 6  # a logarithm, a quotient, a root, and three products


@op("token hidden, hidden, row -> row hidden")
def gather_or(x: Array, otherwise: Array, rows: Integers) -> Array:
    """x_row; `otherwise` where the row is -1."""
    out = take_columns(x, np.maximum(rows, 0))
    out[rows < 0] = otherwise
    return out


def _prior_macs(sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> int:
    return sizes["pair"] * (sizes["hidden"] + sizes["out"])


@op("boundary hidden, boundary hidden, out one, out, pair, pair -> pair out", macs=_prior_macs, work=2)
def pair_prior(x: Array, y: Array, weight: Array, bias: Array, starts: Integers, ends: Integers) -> Array:
    """(x_s · y_e / sqrt(D)) W + b of the pairs (s, e), D the width of x and y."""
    fit = np.einsum("pd,pd->p", take_columns(x, starts), take_columns(y, ends)) / np.float32(np.sqrt(x.shape[1]))
    out = empty_tokens(len(fit), len(weight))
    np.add(fit[:, None] * weight[:, 0], bias, out=out)
    return out


def _length_macs(sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> int:
    return sizes["pair"] * sizes["three"] * sizes["out"]


@op("out three, out, pair, pair, pair -> pair out", macs=_length_macs, work=LENGTH_WORK)
def length_terms(
    weight: Array, bias: Array, starts: Integers, ends: Integers, sentences: Integers, *, words: tuple[int, ...]
) -> Array:
    """[log(1 + n), n / w, 1 / sqrt(n)] Wᵀ + b of spans of n = e - s words; `words`: the w of each sentence."""
    length = (ends - starts).astype(np.float32)
    features = empty_tokens(len(length), 3)
    features[:, 0] = np.log1p(length)
    features[:, 1] = length / np.array(words, np.float32)[sentences]
    features[:, 2] = 1 / np.sqrt(length)
    return product(features, weight, bias, None)


@op("word hidden, pair, pair, pair -> pair hidden", work=2)
def span_means(x: Array, starts: Integers, ends: Integers, sentences: Integers) -> Array:
    """The mean of the words of each span. A sentence has one boundary more than it has words."""
    sums = np.zeros((len(x) + 1, x.shape[1]))
    np.cumsum(x, axis=0, dtype=np.float64, out=sums[1:])
    out = empty_tokens(len(starts), x.shape[1])
    np.divide(sums[ends - sentences] - sums[starts - sentences], (ends - starts)[:, None], out=out, casting="unsafe")
    return out


@op("pair hidden, sentence label both, pair -> pair·label hidden", work=3)
def modulate(x: Array, by: Array, sentences: Integers) -> Array:
    """x_i (1 + γ_j) + β_j of each span with each label of its sentence; [γ, β] are the halves of a label's vector."""
    width = x.shape[1]
    gamma, beta = by[sentences, :, :width], by[sentences, :, width:]
    out = empty_tokens(len(x) * by.shape[1], width)
    np.add(x[:, None] * (1 + gamma), beta, out=out.reshape(len(x), by.shape[1], width))
    return out


@op(
    "pair label, rows one, boundary label, boundary label, word label, pair, pair, pair -> pair label",
    work=7,
)
def pair_logits(
    x: Array, y: Array, begin: Array, end: Array, inside: Array, starts: Integers, ends: Integers, sentences: Integers
) -> Array:
    """x + y + begin_s + end_e + (inside_s + … + inside_{e-1}) / sqrt(e - s) of the pairs (s, e)."""
    sums = np.zeros((len(inside) + 1, inside.shape[1]))
    np.cumsum(inside, axis=0, dtype=np.float64, out=sums[1:])
    within = (sums[ends - sentences] - sums[starts - sentences]) / np.sqrt(ends - starts)[:, None]
    logits = x + y.reshape(x.shape) + begin[starts] + end[ends]
    return np.asarray(logits + within, np.float32)
