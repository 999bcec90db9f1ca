"""Sentences packed end to end: there is no padding, so nothing is computed for it and no mask is needed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from bertcli.engine.threads import thread_count
from bertcli.tracing.dispatch import Array, Batch, Integers, divided, shape_only, untraced, watched

MOST_SCORES = 1 << 18  # of a block: with V and the result 1.5 MiB, one core's share of the caches
MOST_TOKENS = 800  # of a micro-batch: 10 MiB of feed-forward activations; with fewer, weights are read more often
LEAST_TOKENS = 192  # of a micro-batch: with fewer, sharing each product is faster than reading all weights on each core
UNEVEN = 1.2  # times a core's even share: if the longest micro-batch is longer, it is faster to share each product
LEAST_QUERIES = 128  # of a block of one head: with fewer, products are slow
LEAST_SCORES = 1 << 16  # below this, waking another core costs more than it saves


class SameLength(NamedTuple):
    """Adjacent sentences of equal length, computed together: the packed rows of their queries and of their keys."""

    sentences: int
    queries: slice
    keys: slice

    @property
    def score_count(self) -> int:
        """Number of query-key pairs."""
        return self.sentences * self.query_length * self.key_length

    @property
    def query_length(self) -> int:
        """Queries per sentence."""
        return int(self.queries.stop - self.queries.start) // self.sentences

    @property
    def key_length(self) -> int:
        """Keys per sentence."""
        return int(self.keys.stop - self.keys.start) // self.sentences

    def positions(self, queries: Integers, keys: Integers) -> tuple[Integers, Integers]:
        """Of the first sentence, where its queries and keys stand, given the positions of all."""
        return divided(queries[self.queries], 0, self.sentences)[0], divided(keys[self.keys], 0, self.sentences)[0]

    def aligned(self, queries: Integers, keys: Integers) -> "Iterator[SameLength]":
        """The same group, sentence by sentence if their queries or keys do not stand at the same positions."""
        positions = (queries[self.queries], keys[self.keys])
        by_sentence = [rows.reshape(self.sentences, -1) for rows in positions]
        if all((rows == rows[0]).all() for rows in by_sentence):
            yield self
        else:
            yield from self.cut(1)

    def narrowed(self, queries: slice, keys: slice) -> "SameLength":
        """Of the only sentence, these queries and keys; of several, all."""
        if self.sentences > 1:
            return self
        query, key = self.queries.start, self.keys.start
        query_rows = slice(query + queries.start, query + queries.stop)
        return SameLength(1, query_rows, slice(key + keys.start, key + keys.stop))

    def cut(self, sentences: int) -> "Iterator[SameLength]":
        """The same group in parts of at most this many sentences."""
        query_length, key_length = self.query_length, self.key_length
        for first in range(0, self.sentences, sentences):
            last = min(first + sentences, self.sentences)
            queries = slice(self.queries.start + first * query_length, self.queries.start + last * query_length)
            keys = slice(self.keys.start + first * key_length, self.keys.start + last * key_length)
            yield SameLength(last - first, queries, keys)


class AttentionBlock(NamedTuple):
    """Sentences of a group and some of their heads: the amount of attention that is computed at a time."""

    group: SameLength  # the queries and keys of this block
    heads: slice
    head_count: int  # of the whole
    number: int  # index in `groups`; with a window, of its parts
    queries: slice = slice(None)  # of each sentence's queries
    keys: slice = slice(None)  # of each sentence's keys

    def query_heads(self, x: Array) -> Array:
        """View of packed rows [token, head·size] as [batch, head, token, size]."""
        return self._view(x, self.group.queries)

    def key_heads(self, x: Array) -> Array:
        """The same for keys and values."""
        return self._view(x, self.group.keys)

    def split(self, x: Array) -> Array:
        """View of rows that are not tokens [row, head·size] as [row, head, size]."""
        return divided(x, 1, self.head_count)[:, self.heads]

    def _view(self, x: Array, rows: slice) -> Array:
        split = divided(divided(x[rows], 0, self.group.sentences), 2, self.head_count)
        return split.transpose(0, 2, 1, 3)[:, self.heads]


@dataclass(frozen=True, eq=False, repr=False)
class Packed(Batch):
    """The tokens of a batch, end to end: sentence i is rows `offsets[i]` to `offsets[i + 1]`.

    Masked tokens are left out, which equals an attention weight of 0; the remaining tokens keep their positions.
    """

    ids: Integers
    segments: Integers
    positions: Integers
    offsets: Integers
    groups: tuple[SameLength, ...]

    @classmethod
    def of(cls, ids: Integers, segments: Integers, positions: Integers, lengths: Integers) -> "Packed":
        """Sentences of these lengths; adjacent ones of equal length are computed together."""
        return cls(ids, segments, positions, np.cumsum(np.append(0, lengths)), _groups(lengths, lengths))

    @cached_property
    def first(self) -> Integers:
        """The row of each sentence's first token, [CLS]."""
        return self.offsets[:-1]

    @property
    def max_distance(self) -> int:
        """How far apart two tokens of a sentence stand at most; when a watcher is set, as far as in any sentence."""
        if watched():
            return 1 << 30
        return int((self.positions[self.offsets[1:] - 1] - self.positions[self.first]).max(initial=0))

    def blocks(self, heads: int) -> list[AttentionBlock]:
        """The attention of a batch in blocks whose scores fit the cache; whole groups when a watcher is set."""
        if watched():
            return [AttentionBlock(group, slice(None), heads, number) for number, group in enumerate(self.groups)]
        limit = self.most_scores(heads)
        return [block for number, group in enumerate(self.groups) for block in blocks_of(group, number, heads, limit)]

    def most_scores(self, heads: int) -> int:
        """How many scores a block has at most."""
        scores = sum(group.score_count for group in self.groups) * heads
        return min(MOST_SCORES, max(LEAST_SCORES, scores // thread_count()))

    def micro_batches(self) -> "list[MicroBatch]":
        """The batch in cache-sized parts, one per core at a time; undivided where that would be slower."""
        total, cores = len(self.ids), thread_count()
        rounds = -(-total // (MOST_TOKENS * cores))
        count = min(len(self.offsets) - 1, rounds * cores, total // LEAST_TOKENS)
        if count > 1:
            middles = (self.offsets[1:] + self.offsets[:-1]) / 2
            cuts = [0, *np.searchsorted(middles, np.arange(1, count) * total / count), len(middles)]
            parts = [self._micro_batch(first, last) for first, last in pairwise(np.unique(cuts).tolist())]
            longest = max(len(part.batch.ids) for part in parts)
            if -(-len(parts) // cores) * cores * longest < UNEVEN * total:
                return parts
        return [MicroBatch(self, slice(0, total))]

    def _micro_batch(self, first: int, last: int) -> "MicroBatch":
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        return MicroBatch(Packed.of(self.ids[rows], self.segments[rows], self.positions[rows], np.diff(offsets)), rows)

    def narrow(self, rows: Integers) -> "Packed":
        """The same batch with only some rows (ascending) as queries; every row remains a key."""
        offsets = untraced(self.offsets)
        counts = np.diff(np.searchsorted(untraced(rows), offsets))
        return replace(self, groups=_groups(counts, np.diff(offsets)))

    def attending(self, counts: Sequence[int]) -> "Packed":
        """The same batch with only the first `counts` tokens of each sentence as keys; every row remains a query."""
        spans = zip(pairwise(self.offsets.tolist()), counts, strict=True)
        return replace(
            self, groups=tuple(SameLength(1, slice(*span), slice(span[0], span[0] + count)) for span, count in spans)
        )

    def aligned(self, queries: Integers) -> "Packed":
        """The same batch, its groups of sentences whose tokens stand at the same positions.

        `queries` are the positions of the queries. Only masks with holes, and some rows, make more groups.
        """
        queries, keys = untraced(queries), untraced(self.positions)
        groups = [part for group in self.groups for part in group.aligned(queries, keys)]
        return replace(self, groups=tuple(groups))


def batch_of_shapes(batch: int, sequence: int) -> Packed:
    """A batch of so many sentences of this length, whose ids have no memory."""
    rows = batch * sequence
    ids = shape_only((rows,), np.intp)
    whole = SameLength(batch, slice(0, rows), slice(0, rows))
    return Packed(ids, ids, ids, np.arange(batch + 1) * sequence, (whole,))


class MicroBatch(NamedTuple):
    """Some sentences of a batch as a batch of their own, and their rows in the whole."""

    batch: Packed
    rows: slice


class Sentence(Protocol):
    """What `pack` needs of a tokenized text."""

    @property
    def ids(self) -> Sequence[int]: ...

    @property
    def segments(self) -> Sequence[int]: ...


def pack(sentences: Sequence[Sentence]) -> Packed:
    """Pack tokenized texts in the order given."""
    lengths = np.array([len(sentence.ids) for sentence in sentences], dtype=np.intp)
    ids = np.concatenate([np.asarray(sentence.ids, dtype=np.intp) for sentence in sentences])
    segments = np.concatenate([np.asarray(sentence.segments, dtype=np.intp) for sentence in sentences])
    positions = np.concatenate([np.arange(length) for length in lengths])
    return Packed.of(ids, segments, positions, lengths)


def blocks_of(group: SameLength, number: int, heads: int, limit: int) -> Iterator[AttentionBlock]:
    """About `limit` scores per block: some sentences, or some heads of one, or some queries of one head."""
    scores_per_head = group.query_length * group.key_length  # of one sentence
    sentences = max(1, limit // max(1, scores_per_head * heads))
    heads_per_block = heads if sentences > 1 else min(heads, max(1, limit // scores_per_head))
    queries_per_block = group.query_length
    if scores_per_head > limit:
        queries_per_block = max(LEAST_QUERIES, limit // group.key_length)
    for part in group.cut(sentences):
        for first in range(0, heads, heads_per_block):
            for queries in slices(group.query_length, queries_per_block):
                group_part = part.narrowed(queries, slice(0, group.key_length))
                yield AttentionBlock(group_part, slice(first, first + heads_per_block), heads, number, queries)


def slices(count: int, step: int) -> list[slice]:
    """`step` of so many at a time."""
    return [slice(first, min(first + step, count)) for first in range(0, count, step)]


def _groups(queries: Integers, keys: Integers) -> tuple[SameLength, ...]:
    """Adjacent sentences with equal numbers of queries and of keys; those without queries belong to none."""
    groups = []
    query = key = 0
    for (query_count, key_count), run in groupby(zip(queries.tolist(), keys.tolist(), strict=True)):
        sentences = len(list(run))
        after = query + sentences * query_count, key + sentences * key_count
        if query_count:
            groups.append(SameLength(sentences, slice(query, after[0]), slice(key, after[1])))
        query, key = after
    return tuple(groups)
