"""The ops of the heads of GLiNER2 that no other model has; the decorator above each op gives its shape and cost.

Pages show its formula (formulas.py), and work out single numbers of it (worked.js). No graph of another engine has
these heads, so these ops have no ONNX rule.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bertcli.engine.kernels import activate, empty_tokens, product
from bertcli.network.ops import linear_work
from bertcli.tracing.dispatch import Array, op

# Element-wise operations for each number of a GRU's result: two gates of a sum and a sigmoid (4), the candidate of a
# product, a sum and a tanh; then (1 - z) n + z h.
GRU_WORK = 2 * (1 + 4) + 3 + 4


@op("step gate, row gate, row hidden -> row hidden", work=GRU_WORK)
def gru(x: Array, y: Array, h: Array) -> Array:
    """(1 - z) n + z h, of gates r, z, n = σ(x_r + y_r), σ(x_z + y_z), tanh(x_n + r y_n); x is the same for all rows.

    x are the products of a GRU with its input, y those with the state h before (Cho et al. 2014).
    """
    size = h.shape[1]
    reset, update, candidate = (slice(gate * size, (gate + 1) * size) for gate in range(3))
    gates = y[:, : 2 * size] + x[:, : 2 * size]
    activate(gates, "sigmoid")
    new = np.tanh(x[:, candidate] + gates[:, reset] * y[:, candidate])
    z = gates[:, update]
    out = empty_tokens(*h.shape)
    np.add((1 - z) * new, z * h, out=out)
    return out


def _beside_macs(sizes: Mapping[str, int], arguments: Mapping[str, Any]) -> int:
    return sizes["row"] * sizes["out"] * sizes["both"]


@op("row one, row other, out both, out -> row out", macs=_beside_macs, work=linear_work)
def linear_beside(x: Array, y: Array, weight: Array, bias: Array, *, activation: str | None = None) -> Array:
    """activation([x, y] Wᵀ + b): the numbers of x stand before those of y."""
    beside = empty_tokens(len(x), x.shape[1] + y.shape[1])
    beside[:, : x.shape[1]] = x
    beside[:, x.shape[1] :] = y
    return product(beside, weight, bias, activation)
