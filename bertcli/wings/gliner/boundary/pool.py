"""`Pool`: the spans of a text that are scored, chosen by how likely words begin and end entities of any type.

Spans are half-open: from the boundary before their first word to that after their last one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bertcli.tracing.dispatch import Array, Integers

PREFERRED = np.float32(5000)  # the library's, above every sum of logits


class Pool(NamedTuple):
    """The spans of a batch, by sentence, start and end.

    starts, ends   the boundaries before the first word and after the last one, counted through the batch
    sentences      the sentence of each span, ascending
    """

    starts: Integers
    ends: Integers
    sentences: Integers


class SpanEnds(NamedTuple):
    """What the boundaries of a batch say of spans that begin or end there.

    starts, ends       logits [boundary, type]
    firsts, lasts      vectors [boundary, width], whose product says how well two boundaries fit
    """

    starts: Array
    ends: Array
    firsts: Array
    lasts: Array


# No tuple: of a configuration's tuples each layer has a value of its own.
@dataclass(frozen=True)
class PoolLimits:
    """How many boundaries are paired, how many spans a pool has, and how many each type has of its own choice."""

    boundaries: int
    spans: int
    of_a_type: int


def pool_of(ends: SpanEnds, offsets: Sequence[int], limits: PoolLimits) -> Pool:
    """Choose the spans of sentences, whose boundaries are the rows offsets[i] to offsets[i + 1]."""
    starts, stops, sentences = [], [], []
    for sentence, (first, last) in enumerate(pairwise(offsets)):
        begin, end = _chosen(SpanEnds(*(array[first:last] for array in ends)), limits)
        starts.append(begin + first)
        stops.append(end + first)
        sentences.append(np.full(len(begin), sentence))
    return Pool(np.concatenate(starts), np.concatenate(stops), np.concatenate(sentences))


def _chosen(ends: SpanEnds, limits: PoolLimits) -> tuple[Integers, Integers]:
    """Choose the spans of one sentence: the starts and the ends, counted from 0.

    The likeliest starts and ends of any type are paired. The best pairs of each type come first, then the best of all.
    """
    count, width = ends.firsts.shape
    best_start, best_end = ends.starts.max(axis=1), ends.ends.max(axis=1)
    firsts = np.argsort(-best_start, kind="stable")[: limits.boundaries]
    lasts = np.argsort(-best_end, kind="stable")[: limits.boundaries]
    fit = ends.firsts[firsts] @ ends.lasts[lasts].T / np.float32(np.sqrt(width))
    rows, columns = np.nonzero(firsts[:, None] < lasts)
    begin, end, fit = firsts[rows], lasts[columns], fit[rows, columns]
    priority = fit + best_start[begin] + best_end[end]
    of_types = fit[:, None] + ends.starts[begin] + ends.ends[end]
    ranked = np.argsort(-of_types, axis=0, kind="stable")[: limits.of_a_type]
    # From the last rank to the first: a pair has the best of its ranks.
    for rank in reversed(range(len(ranked))):
        priority[ranked[rank]] = PREFERRED + np.float32(limits.of_a_type - rank)
    order = np.lexsort((begin * count + end, -priority))[: limits.spans]
    order = order[np.lexsort((end[order], begin[order]))]
    return begin[order], end[order]
