"""LSTM (Hochreiter & Schmidhuber 1997) over the words of packed sentences, in both directions at once.

Called by the op `network.ops.lstm`, for GLiNER's head (kinds/spans/network.py). Weights and the order of gates are
those of torch.nn.LSTM.
"""

from typing import NamedTuple

import numpy as np

from bertcli.engine.kernels import activate, empty_tokens, product
from bertcli.tracing.dispatch import Array, Integers


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
