"""Mixture of experts (Shazeer et al. 2017): a router sends each token to a few of the feed-forward networks of a layer.

The op is `network.ops.experts`; nomic-embed-text-v2-moe uses it (models/nomic_bert.py).
"""

import numpy as np

from bertcli.engine.kernels import empty_tokens, product
from bertcli.tracing.dispatch import Array


def mixture(x: Array, shares: Array, inner: Array, outer: Array, bias: Array, top: int, activation: str) -> Array:
    """Compute the op `experts`: each token's `top` experts, weighted by the router's probabilities.

    x [token, hidden]; shares [token, expert], the probabilities; inner and outer [expert·size, hidden]; bias [hidden].
    """
    count = shares.shape[1]
    size = len(inner) // count
    # Stable: of equal shares the first, whatever else is in the batch.
    chosen = np.argsort(-shares, axis=1, kind="stable")[:, :top]
    out = empty_tokens(*x.shape)
    out[...] = bias
    for expert in range(count):
        (rows,) = np.nonzero((chosen == expert).any(axis=1))
        if not len(rows):
            continue
        weight_rows = slice(expert * size, (expert + 1) * size)
        hidden = product(x.T[:, rows].T, inner[weight_rows], None, activation)
        result = product(hidden, outer[weight_rows].T, None, None)
        out.T[:, rows] += result.T * shares[rows, expert]
    return out
