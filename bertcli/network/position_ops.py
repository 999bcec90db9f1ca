"""Ops that depend on positions, beyond those in ops.py: relative biases, RoPE, windows, convolutions. BERT uses none.

The arithmetic is in engine/positions.py; here are the shapes and costs for a trace.
"""

from math import sqrt

import numpy as np

from bertcli.engine import positions
from bertcli.engine.kernels import take_rows
from bertcli.engine.positions import Frequencies
from bertcli.network.ops import linear_work
from bertcli.tracing.dispatch import Array, Integers, op


@op("rows hidden, token, boundary -> token hidden")
def embed_counted(table: Array, ids: Integers, offsets: Integers, *, padding: int) -> Array:
    """E[p + n], n the number of tokens but padding that a sentence has up to here; E[p] for padding, whose id is p."""
    return take_rows(table, positions.counted(ids, offsets, padding))


@op("bucket head, query, key -> head query key", work=1, beside=-1)
def relative_bias(table: Array, queries: Integers, keys: Integers, *, farthest: int) -> Array:
    """T[bucket(query - key)] of every head, for the positions of queries and keys (Raffel et al. 2020's buckets).

    From the distance `farthest` on all have the last bucket of their direction.
    """

    def of_distances(distance: Integers) -> Array:
        return table.T.take(positions.t5_bucket(distance, len(table), farthest), axis=1)

    return positions.by_distance(of_distances, queries, keys)


@op("batch head query key, head query key -> batch head query key", work=1, over="x")
def add_bias(x: Array, bias: Array) -> Array:
    """x + bias, one bias for all sentences, written over x."""
    return positions.add_to_scores(x, bias)


@op("batch head query key, query, key -> batch head query key", work=2, over="x")
def add_alibi(x: Array, queries: Integers, keys: Integers, *, slopes: tuple[float, ...]) -> Array:
    """x_ij - slope_h |i - j| for the positions of queries and keys, written over x (Press et al. 2021)."""
    falling = -np.array(slopes, np.float32)[:, None]
    biases = positions.by_distance(lambda distance: falling * np.abs(distance, dtype=np.float32), queries, keys)
    return positions.add_to_scores(x, biases)


@op("batch head row size, bucket head size -> batch head row bucket", contracts=True, work=1)
def bucket_scores(x: Array, table: Array, *, terms: int) -> Array:
    """X T_hᵀ / sqrt(terms · D): every query or key with every bucket of relative positions."""
    by_bucket: Array = np.matmul(x * np.float32(1 / sqrt(terms * x.shape[-1])), table.transpose(1, 2, 0))
    return by_bucket


@op("batch head query key, batch head query bucket, query, key -> batch head query key", work=1, over="x", beside=2)
def add_by_query(x: Array, by_query: Array, queries: Integers, keys: Integers, *, buckets: int, farthest: int) -> Array:
    """x_ij + Y_i,b(i - j) with the bucket b of DeBERTa's relative positions, written over x."""
    return positions.add_to_scores(x, positions.by_bucket(by_query, queries, keys, buckets, farthest, of_keys=False))


@op("batch head query key, batch head key bucket, query, key -> batch head query key", work=1, over="x", beside=2)
def add_by_key(x: Array, by_key: Array, queries: Integers, keys: Integers, *, buckets: int, farthest: int) -> Array:
    """x_ij + Y_j,b(i - j) with the bucket b of DeBERTa's relative positions, written over x."""
    return positions.add_to_scores(x, positions.by_bucket(by_key, queries, keys, buckets, farthest, of_keys=True))


@op("token in, out in width, out -> token out", contracts=True, work=linear_work)
def convolve(
    x: Array, weight: Array, bias: Array, first: Integers, where: Integers, *, activation: str | None = None
) -> Array:
    """activation(Σ_k W_k x_{p + k - w/2} + b) over the w positions p + k - w/2 around each token's position p.

    Sentences begin at the rows `first`; `where` are the positions, and x is 0 at one that has no token.
    """
    return positions.convolved(x, weight, bias, first, where, activation)


@op("token hidden, token -> token hidden", work=3, over="x")
def rotate(x: Array, where: Integers, *, heads: int, inverse_frequencies: Frequencies, scaling: float = 1) -> Array:
    """RoPE: pairs (x_j, x_{j + D/2}) of every head, turned by p r_j at position p and scaled, written over x."""
    return positions.rotate(x, *positions.angles(where, inverse_frequencies, scaling), heads)


@op("batch head query key, query, key -> batch head query key", work=1, over="x")
def within(x: Array, queries: Integers, keys: Integers, *, window_left: int | None, window_right: int | None) -> Array:
    """x where a key is at most `window_left` before a query, or `window_right` after it, else -∞, written over x."""
    return positions.mask_window(x, queries, keys, window_left, window_right)
