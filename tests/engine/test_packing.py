"""Batches without padding, and attention in blocks: every query sees its keys, whatever the blocks are."""

from itertools import pairwise

import numpy as np
import pytest
from helpers.near import assert_near
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bertcli.engine import packing, sliding_window
from bertcli.engine.packing import Packed
from bertcli.engine.padded_batch import pack_padded
from bertcli.engine.threads import each, set_thread_count
from bertcli.network.ops import attend, scores, softmax
from bertcli.tracing.dispatch import Array, Integers

HEADS, SIZE = 3, 4
lengths = st.lists(st.integers(1, 90), min_size=1, max_size=5)


Sight = tuple[int | None, int | None]  # how far a query sees behind and ahead


def seen(queries: Integers, keys: Integers, sight: Sight) -> NDArray[np.bool_]:
    """[query, key]: whether a query sees a key."""
    behind, ahead = (1000 if far is None else far for far in sight)
    distance = queries[:, None] - keys
    return np.asarray((distance <= behind) & (distance >= -ahead))


def dense(q: Array, k: Array, v: Array, batch: Packed, rows: Integers, sight: Sight) -> NDArray[np.float64]:
    """Attention in float64, sentence by sentence and head by head, with every key masked that is not seen."""
    found = np.zeros(q.shape)
    for first, last in pairwise(batch.offsets.tolist()):
        own = (rows >= first) & (rows < last)
        mask = seen(batch.positions[rows[own]], batch.positions[first:last], sight)
        for head in range(HEADS):
            columns = slice(head * SIZE, (head + 1) * SIZE)
            logits = q[own][:, columns].astype(float) @ k[first:last, columns].T / np.sqrt(SIZE)
            weights = np.exp(logits) * mask
            found[own, columns] = weights / weights.sum(axis=1, keepdims=True) @ v[first:last, columns]
    return found


def in_blocks(q: Array, k: Array, v: Array, batch: Packed, queries: Integers, sight: Sight) -> Array:
    """The same with the blocks of a batch; `queries` are the positions of the queries."""
    found = np.full(q.shape, np.nan, dtype=np.float32)

    def compute(block: packing.AttentionBlock) -> None:
        logits = scores(block.query_heads(q), block.key_heads(k))
        logits[..., ~seen(*block.group.positions(queries, batch.positions), sight)] = -np.inf
        attend(softmax(logits), block.key_heads(v), into=block.query_heads(found))

    each(compute, sliding_window.local_blocks(batch, HEADS, *sight, queries))
    return found


@given(
    lengths=lengths,
    sight=st.sampled_from([(None, None), (None, 0)])
    | st.integers(0, 40).flatmap(lambda n: st.sampled_from([(n, n), (n, 0)])),
    limits=st.tuples(st.integers(1, 3000), st.integers(1, 50), st.integers(1, 50)),
    holes=st.booleans(),
    some=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_packing_blocks_equal_dense_masking(
    lengths: list[int], sight: Sight, limits: tuple[int, int, int], holes: bool, some: bool, seed: int
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
            patch.setattr(sliding_window, name, limit)
            patch.setattr(packing, name, limit, raising=name != "LOCAL_QUERIES")
        patch.setattr(packing, "LEAST_SCORES", 1)
        found = in_blocks(q, k, v, narrowed, queries, sight)
    assert_near(found, dense(q, k, v, batch, rows, sight), 1e-5)


def test_packing_divides_attention_only_where_another_core_is_worth_waking() -> None:
    def block_count(tokens: int) -> int:
        ids = np.zeros((1, tokens), int)
        batch, _ = pack_padded(ids, ids, ids == 0)
        return len(batch.blocks(12))

    set_thread_count(2)
    try:
        # 12 heads have 49,152 scores of 64 tokens, and 196,608 of 128.
        assert [block_count(tokens) for tokens in (8, 64, 128)] == [1, 1, 2]
    finally:
        set_thread_count(None)


def test_packing_computes_only_the_band_of_long_texts() -> None:
    ids = np.zeros((1, 2048), int)
    batch, _ = pack_padded(ids, ids, ids == 0)
    pairs = sum(block.group.score_count for block in sliding_window.local_blocks(batch, 12, 64, 64, batch.positions))
    assert pairs < 2048 * (129 + sliding_window.LOCAL_QUERIES)


def test_packing_computes_half_of_causal_attention() -> None:
    ids = np.zeros((1, 2048), int)
    batch, _ = pack_padded(ids, ids, ids == 0)
    blocks = sliding_window.local_blocks(batch, 12, None, 0, batch.positions)
    scores = sum(block.group.score_count * len(range(*block.heads.indices(12))) for block in blocks)
    assert 12 * 2048 * 2049 / 2 < scores < 12 * 2048 * (2048 + packing.LEAST_QUERIES) / 2 + 12 * 2048
