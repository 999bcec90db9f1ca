"""Local attention: blocks of queries with the keys that stand near them, and few others."""

from collections.abc import Iterator

import numpy as np

from bertcli.engine.packing import LEAST_QUERIES, MOST_SCORES, AttentionBlock, Packed, SameLength, blocks_of, slices
from bertcli.tracing.dispatch import Integers, watched

LOCAL_QUERIES = 64  # of a block: OpenBLAS multiplies 64 queries and 192 keys in place


def local_blocks(
    batch: Packed, heads: int, window_left: int | None, window_right: int | None, queries: Integers
) -> list[AttentionBlock]:
    """The attention of a batch in blocks, as in `Packed.blocks`, that leave out most keys which no query sees.

    A query sees those that stand at most `window_left` before it and `window_right` after it (None: any). A block has
    all those that its queries see, and a few others, which the caller leaves out. `queries` are the positions of all
    queries; the batch must be `aligned`.
    """
    if watched() or (window_left is None and window_right is None):
        return batch.blocks(heads)
    limit, blocks = batch.most_scores(heads), list[AttentionBlock]()
    groups = batch.groups
    if window_left is not None:
        groups = tuple(part for group in batch.groups for part in _near(group, window_left))
    # By a block at least.
    seen = LOCAL_QUERIES + (LOCAL_QUERIES if window_left is None else window_left) + (window_right or 0)
    for number, group in enumerate(groups):
        if group.key_length <= seen:
            blocks += blocks_of(group, number, heads, limit)
        else:
            blocks += _local(
                group, number, heads, window_left, window_right, *group.positions(queries, batch.positions)
            )
    return blocks


def _near(group: SameLength, window_left: int) -> Iterator[SameLength]:
    """The same group; queries that see less far back than the last key of the only sentence are without keys."""
    last = group.queries.start + group.key_length + window_left
    if group.sentences > 1 or group.queries.stop <= last:
        yield group
    else:
        yield group._replace(queries=slice(group.queries.start, last))
        yield SameLength(1, slice(last, group.queries.stop), slice(group.keys.start, group.keys.start))


def _local(
    group: SameLength,
    number: int,
    heads: int,
    window_left: int | None,
    window_right: int | None,
    queries: Integers,
    keys: Integers,
) -> Iterator[AttentionBlock]:
    """Some queries of a sentence, with the keys that they see, given the positions of both: all heads, if they fit."""
    for part in group.cut(1):
        for rows in slices(len(queries), LEAST_QUERIES if window_left is None else LOCAL_QUERIES):
            first, last = 0, len(keys)
            if window_left is not None:
                first = int(np.searchsorted(keys, queries[rows][0] - window_left))
            if window_right is not None:
                last = int(np.searchsorted(keys, queries[rows][-1] + window_right, "right"))
            near = slice(first, last)
            scores = (rows.stop - rows.start) * (near.stop - near.start)
            for some in slices(heads, max(1, MOST_SCORES // max(1, scores))):
                yield AttentionBlock(part.narrowed(rows, near), some, heads, number, rows, near)
