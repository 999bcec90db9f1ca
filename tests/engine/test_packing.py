"""Batches without padding, and attention in blocks: every query sees its keys, whatever the blocks are."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bertcli.engine import packing
from bertcli.engine.packing import Packed, pack_padded
from bertcli.engine.seam import Array, Integers
from bertcli.engine.threads import each
from bertcli.network.ops import attend, scores, softmax

HEADS, SIZE = 3, 4
lengths = st.lists(st.integers(1, 90), min_size=1, max_size=5)


def dense(q: Array, k: Array, v: Array, batch: Packed, rows: Integers, window: int | None) -> NDArray[np.float64]:
    """Attention in float64, sentence by sentence and head by head, with every key outside the window masked."""
    found = np.zeros(q.shape)
    for first, last in pairwise(batch.offsets.tolist()):
        own = (rows >= first) & (rows < last)
        apart = np.abs(batch.positions[rows[own]][:, None] - batch.positions[first:last])
        for head in range(HEADS):
            columns = slice(head * SIZE, (head + 1) * SIZE)
            logits = q[own][:, columns].astype(float) @ k[first:last, columns].T / np.sqrt(SIZE)
            weights = np.exp(logits) * (True if window is None else apart <= window)
            found[own, columns] = weights / weights.sum(axis=1, keepdims=True) @ v[first:last, columns]
    return found


def in_blocks(q: Array, k: Array, v: Array, batch: Packed, queries: Integers, window: int | None) -> Array:
    """The same with the blocks of a batch; `queries` are the positions of the queries."""
    found = np.full(q.shape, np.nan, dtype=np.float32)

    def compute(block: packing.AttentionBlock) -> None:
        logits = scores(block.query_heads(q), block.key_heads(k))
        if window is not None:
            asked, seen = block.group.positions(queries, batch.positions)
            logits[..., np.abs(asked[:, None] - seen) > window] = -np.inf
        attend(softmax(logits), block.key_heads(v), into=block.query_heads(found))

    each(compute, batch.blocks(HEADS, window, queries))
    return found


@given(
    lengths=lengths,
    window=st.none() | st.integers(0, 40),
    limits=st.tuples(st.integers(1, 3000), st.integers(1, 50), st.integers(1, 50)),
    holes=st.booleans(),
    some=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_packing_blocks_equal_dense_masking(
    lengths: list[int], window: int | None, limits: tuple[int, int, int], holes: bool, some: bool, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    mask = np.arange(max(lengths)) < np.array(lengths)[:, None]
    if holes:
        mask &= generator.random(mask.shape) < 0.8
        mask[:, 0] = True
    batch, _ = pack_padded(np.zeros(mask.shape, int), np.zeros(mask.shape, int), mask)
    total = len(batch.ids)
    rows = np.flatnonzero(generator.random(total) < 0.3) if some else np.arange(total)
    queries = batch.positions[rows]
    narrowed = (batch.narrow(rows) if some else batch).aligned(queries)
    q, k, v = (generator.standard_normal((n, HEADS * SIZE), dtype=np.float32) for n in (len(rows), total, total))
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in zip(("MOST_SCORES", "LEAST_QUERIES", "LOCAL_QUERIES"), limits, strict=True):
            patch.setattr(packing, name, limit)
        patch.setattr(packing, "LEAST_SCORES", 1)
        found = in_blocks(q, k, v, narrowed, queries, window)
    np.testing.assert_allclose(found, dense(q, k, v, batch, rows, window), rtol=0, atol=1e-5)


def test_packing_computes_only_the_band_of_long_texts() -> None:
    ids = np.zeros((1, 2048), int)
    batch, _ = pack_padded(ids, ids, ids == 0)
    pairs = sum(block.group.score_count for block in batch.blocks(12, 64))
    assert pairs < 2048 * (129 + packing.LOCAL_QUERIES)
