"""Sliding-window attention: blocks of queries, each with little more than the keys in its window.

Scores outside the windows are masked by the op `within`; how far a window reaches is said in models/rope.py.
"""

from collections.abc import Iterator

import numpy as np

from bertcli.engine.packing import LEAST_QUERIES, MOST_SCORES, AttentionBlock, Packed, SameLength, blocks_of, slices
from bertcli.tracing.dispatch import Integers, watched

LOCAL_QUERIES = 64  # of a block: OpenBLAS multiplies 64 queries and 192 keys in place


def local_blocks(
    batch: Packed, heads: int, window_left: int | None, window_right: int | None, queries: Integers
) -> list[AttentionBlock]:
    """Divide a batch's attention into blocks, as `Packed.blocks` does, without most of the keys outside the windows.

    A query sees the keys at most `window_left` positions before it and `window_right` after it (None: no limit). A
    block may have a few keys more; the caller masks them (`positions.mask_window`). `queries` are the positions of all
    queries; the batch must be `aligned`.
    """
    # A watcher sees the whole attention as one block, as it does without a window.
    if watched() or (window_left is None and window_right is None):
        return batch.blocks(heads)
    limit, blocks = batch.most_scores(heads), list[AttentionBlock]()
    groups = batch.groups
    if window_left is not None:
        groups = tuple(part for group in batch.groups for part in _without_keyless(group, window_left))
    # The keys that a block of LOCAL_QUERIES queries sees at most: a shorter text is not worth cutting.
    seen = LOCAL_QUERIES + (LOCAL_QUERIES if window_left is None else window_left) + (window_right or 0)
    for number, group in enumerate(groups):
        if group.key_length <= seen:
            blocks += blocks_of(group, number, heads, limit)
        else:
            positions = group.positions(queries, batch.positions)
            blocks += _cut(group, number, heads, window_left, window_right, *positions)
    return blocks


def _without_keyless(group: SameLength, window_left: int) -> Iterator[SameLength]:
    """Split off the queries of a single sentence that lie too far behind its last key to see any key.

    That happens where keys end early, as with `Packed.attending`. Their group has no keys. Groups of several sentences
    are returned as they are.
    """
    last = group.queries.start + group.key_length + window_left
    if group.sentences > 1 or group.queries.stop <= last:
        yield group
    else:
        yield group._replace(queries=slice(group.queries.start, last))
        yield SameLength(1, slice(last, group.queries.stop), slice(group.keys.start, group.keys.start))


def _cut(
    group: SameLength,
    number: int,
    heads: int,
    window_left: int | None,
    window_right: int | None,
    queries: Integers,
    keys: Integers,
) -> Iterator[AttentionBlock]:
    """Cut each sentence of a group into blocks of LOCAL_QUERIES queries and the keys in their windows.

    queries and keys are the positions of both. A block has all heads, if their scores fit into the cache.
    """
    # In causal attention without a window a block's keys reach back to the beginning: larger blocks do better.
    queries_per_block = LEAST_QUERIES if window_left is None else LOCAL_QUERIES
    for sentence in group.cut(1):
        for rows in slices(len(queries), queries_per_block):
            first, last = 0, len(keys)
            if window_left is not None:
                first = int(np.searchsorted(keys, queries[rows][0] - window_left))
            if window_right is not None:
                last = int(np.searchsorted(keys, queries[rows][-1] + window_right, "right"))
            near = slice(first, last)
            scores = (rows.stop - rows.start) * (near.stop - near.start)
            heads_per_block = max(1, MOST_SCORES // max(1, scores))
            for some_heads in slices(heads, heads_per_block):
                yield AttentionBlock(sentence.narrowed(rows, near), some_heads, heads, number, rows, near)
