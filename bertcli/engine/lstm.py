"""LSTM (Hochreiter & Schmidhuber 1997) over the words of packed sentences, in both directions at once.

The op is `network.ops.lstm`; GLiNER reads its words with it. Weights and order of gates are those of torch.nn.LSTM.
"""

from typing import NamedTuple

import numpy as np

from bertcli.engine.kernels import activate, empty_tokens, product
from bertcli.tracing.dispatch import Array, Integers


class Direction(NamedTuple):
    """The weights of one direction. Gates are those of input, forgetting, candidate and output, one below the other."""

    input: Array  # [4 half, hidden]
    recurrent: Array  # [4 half, half]
    input_bias: Array  # [4 half]
    recurrent_bias: Array  # [4 half]


def read_both_ways(x: Array, left: Direction, right: Direction, offsets: Integers) -> Array:
    """Compute the op `lstm`: x [word, hidden] to [word, 2 half]; sentence i is the rows offsets[i] to offsets[i + 1].

    All sentences take a step together. A shorter one ends earlier: sentences are in order of their length, and a step
    is made of those that have a word left.
    """
    half = left.recurrent.shape[1]
    directions = (left, right)
    # Of all words at once: only the product with the state before has to wait for it.
    gates = np.stack([product(x, one.input, one.input_bias + one.recurrent_bias, None) for one in directions])
    recurrent = np.stack([one.recurrent.T for one in directions])
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    begins, ends, lengths = offsets[:-1][order], offsets[1:][order] - 1, lengths[order]
    out = empty_tokens(len(x), 2 * half)
    hidden = np.zeros((2, len(order), half), np.float32)
    cell = np.zeros_like(hidden)
    for step in range(int(lengths.max(initial=0))):
        count = int(np.searchsorted(-lengths, -step))  # sentences of more words than `step`
        rows = np.stack([begins[:count] + step, ends[:count] - step])
        some = np.take_along_axis(gates, rows[:, :, None], axis=1)
        some += hidden[:, :count] @ recurrent
        entering, kept, candidate, given = np.split(some, 4, axis=2)
        for gate in (entering, kept, given):
            activate(gate, "sigmoid")
        np.tanh(candidate, out=candidate)
        cell[:, :count] *= kept
        cell[:, :count] += entering * candidate
        np.multiply(given, np.tanh(cell[:, :count]), out=hidden[:, :count])
        out[rows[0], :half] = hidden[0, :count]
        out[rows[1], half:] = hidden[1, :count]
    return out
