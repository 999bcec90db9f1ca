"""The ops of the head of spans: an LSTM over words, pairs of words, the scores of spans for labels.

As in network/ops.py, the decorator above each op gives its shape and cost. Pages show its formula (formulas.py), and
work out single numbers of it (worked.js). No graph of another engine has this head: these ops have no ONNX rule.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bertcli.engine.kernels import activate, empty_tokens, product, take_columns
from bertcli.network.ops import linear_work
from bertcli.tracing.dispatch import Array, Integers, op, watched

MOST_TOGETHER = 2048  # rows of spans: with 2,048 numbers each 16 MB, which a core's caches take in turn


def in_parts(run: Callable[[slice], Array], count: int, most: int = MOST_TOGETHER) -> Array:
    """Compute `count` rows, at most `most` at a time, so that what lies between fits the caches; at once if watched."""
    if watched() or count <= most:
        return run(slice(0, count))
    return np.concatenate([run(slice(first, first + most)) for first in range(0, count, most)])


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
    return activate(pairs, activation)


@op("span hidden, sentence label hidden, span -> span label", contracts=True)
def label_scores(x: Array, labels: Array, sentences: Integers) -> Array:
    """x · yᵀ: every span with the labels of its own sentence; `sentences` says which that is, in ascending order."""
    scores = np.empty((len(x), labels.shape[1]), np.float32)
    bounds = np.searchsorted(sentences, np.arange(len(labels) + 1))
    for sentence, (first, last) in enumerate(pairwise(bounds.tolist())):
        np.matmul(x[first:last], labels[sentence].T, out=scores[first:last])
    return scores


# ------------------------------------------------------------------------------------------------------------ the LSTM


class Direction(NamedTuple):
    """The weights of one direction. `4 half`: the rows of input gate, forget gate, candidate and output gate."""

    input: Array  # [4 half, hidden]
    recurrent: Array  # [4 half, half]
    input_bias: Array  # [4 half]
    recurrent_bias: Array  # [4 half]


def read_both_ways(x: Array, left: Direction, right: Direction, offsets: Integers) -> Array:
    """Compute the op `lstm`: x [word, hidden] to [word, 2 half]; sentence i is the rows offsets[i] to offsets[i + 1].

    Step t reads word t of every sentence from the left, and word t from its end from the right. Sentences are sorted
    by length, the longest first, so that those that still have a word are the first ones of each array.
    """
    half = left.recurrent.shape[1]
    # [direction, word, 4 half], of all words at once: only the product with the state before has to wait for it.
    of_words = np.stack([product(x, one.input, one.input_bias + one.recurrent_bias, None) for one in (left, right)])
    recurrent = np.stack([left.recurrent.T, right.recurrent.T])
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    begins, ends, lengths = offsets[:-1][order], offsets[1:][order] - 1, lengths[order]
    out = empty_tokens(len(x), 2 * half)
    hidden = np.zeros((2, len(order), half), np.float32)
    cell = np.zeros_like(hidden)
    for step in range(int(lengths.max(initial=0))):
        count = int(np.searchsorted(-lengths, -step))  # sentences of more words than `step`
        rows = np.stack([begins[:count] + step, ends[:count] - step])
        gates = np.take_along_axis(of_words, rows[:, :, None], axis=1)
        gates += hidden[:, :count] @ recurrent
        input_gate, forget_gate, candidate, output_gate = np.split(gates, 4, axis=2)
        for gate in (input_gate, forget_gate, output_gate):
            activate(gate, "sigmoid")
        np.tanh(candidate, out=candidate)
        cell[:, :count] *= forget_gate
        cell[:, :count] += input_gate * candidate
        np.multiply(output_gate, np.tanh(cell[:, :count]), out=hidden[:, :count])
        out[rows[0], :half] = hidden[0, :count]
        out[rows[1], half:] = hidden[1, :count]
    return out
