"""Sentences packed end to end: there is no padding, so nothing is computed for it and no mask is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bertcli.parts import Array, Integers, watched
from bertcli.team import thread_count

MOST_SCORES = 1 << 18  # of a block: with V and the result 1.5 MiB, one core's share of the caches
MOST_TOKENS = 608  # of a part: at 512, 6 MiB of feed-forward activations per core; with AVX2 twice guarded.MOST
LEAST_TOKENS = 192  # of a part: with fewer, sharing each product is faster than each core reading all the weights
UNEVEN = 1.2  # times a core's even share: if the longest part is longer, it is faster to share each product
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

    def cut(self, sentences: int) -> Iterator[SameLength]:
        """The same group in parts of at most this many sentences."""
        asked, seen = self.query_length, self.key_length
        for first in range(0, self.sentences, sentences):
            last = min(first + sentences, self.sentences)
            queries = slice(self.queries.start + first * asked, self.queries.start + last * asked)
            keys = slice(self.keys.start + first * seen, self.keys.start + last * seen)
            yield SameLength(last - first, queries, keys)


class AttentionBlock(NamedTuple):
    """Sentences of a group and some of their heads: the amount of attention that is computed at a time."""

    group: SameLength
    heads: slice
    head_count: int  # of the whole

    def query_heads(self, x: Array) -> Array:
        """View of packed rows [token, head·size] as [batch, head, token, size]."""
        return self._view(x, self.group.queries)

    def key_heads(self, x: Array) -> Array:
        """The same for keys and values."""
        return self._view(x, self.group.keys)

    def _view(self, x: Array, rows: slice) -> Array:
        split = x[rows].reshape(self.group.sentences, -1, self.head_count, x.shape[1] // self.head_count, copy=False)
        return split.transpose(0, 2, 1, 3)[:, self.heads]


@dataclass(frozen=True, eq=False)
class Packed:
    """The tokens of a batch, end to end: sentence i is rows `offsets[i]` to `offsets[i + 1]`.

    Masked tokens are left out, which equals an attention weight of 0; the remaining tokens keep their positions.
    """

    ids: Integers
    segments: Integers
    positions: Integers
    offsets: Integers
    groups: tuple[SameLength, ...]

    @property
    def first(self) -> Integers:
        """The row of each sentence's first token, [CLS]."""
        return self.offsets[:-1]

    def blocks(self, heads: int) -> list[AttentionBlock]:
        """The attention of a batch in blocks whose scores fit the cache; whole groups when a watcher is set."""
        if watched():
            return [AttentionBlock(group, slice(None), heads) for group in self.groups]
        scores = sum(group.score_count for group in self.groups) * heads
        limit = min(MOST_SCORES, max(LEAST_SCORES, scores // thread_count()))
        return [block for group in self.groups for block in _blocks(group, heads, limit)]

    def parts(self) -> list[Part]:
        """The batch in cache-sized parts, one per core at a time; undivided where that would be slower."""
        total, cores = len(self.ids), thread_count()
        rounds = -(-total // (MOST_TOKENS * cores))
        count = min(len(self.offsets) - 1, rounds * cores, total // LEAST_TOKENS)
        if count > 1:
            middles = (self.offsets[1:] + self.offsets[:-1]) / 2
            cuts = [0, *np.searchsorted(middles, np.arange(1, count) * total / count), len(middles)]
            parts = [self._part(first, last) for first, last in pairwise(np.unique(cuts).tolist())]
            longest = max(len(part.batch.ids) for part in parts)
            if -(-len(parts) // cores) * cores * longest < UNEVEN * total:
                return parts
        return [Part(self, slice(0, total))]

    def _part(self, first: int, last: int) -> Part:
        offsets = self.offsets[first : last + 1]
        rows, lengths = slice(int(offsets[0]), int(offsets[-1])), np.diff(offsets)
        groups = _groups(lengths, lengths)
        return Part(
            Packed(self.ids[rows], self.segments[rows], self.positions[rows], offsets - offsets[0], groups), rows
        )

    def narrow(self, rows: Integers) -> Packed:
        """The same batch with only some rows (ascending) as queries; every row remains a key."""
        counts = np.diff(np.searchsorted(rows, self.offsets))
        return Packed(self.ids, self.segments, self.positions, self.offsets, _groups(counts, np.diff(self.offsets)))


class Part(NamedTuple):
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
    """Pack tokenized texts in the order given; adjacent ones of equal length are computed together."""
    lengths = np.array([len(sentence.ids) for sentence in sentences], dtype=np.intp)
    ids = np.concatenate([np.asarray(sentence.ids, dtype=np.intp) for sentence in sentences])
    segments = np.concatenate([np.asarray(sentence.segments, dtype=np.intp) for sentence in sentences])
    positions = np.concatenate([np.arange(length) for length in lengths])
    return Packed(ids, segments, positions, _offsets(lengths), _groups(lengths, lengths))


def pack_padded(ids: Integers, segments: Integers, mask: NDArray[np.bool_]) -> tuple[Packed, Integers]:
    """Pack a padded batch [batch, token]; also returns each packed row's flat index in the padded batch.

    Sentences are sorted by length so that those of equal length are computed together.
    """
    lengths = mask.sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    flat = np.arange(mask.size).reshape(mask.shape)
    rows = flat[order][mask[order]]
    counts = lengths[order]
    positions = rows % mask.shape[1]
    packed = Packed(
        ids.reshape(-1)[rows], segments.reshape(-1)[rows], positions, _offsets(counts), _groups(counts, counts)
    )
    return packed, rows


def _blocks(group: SameLength, heads: int, limit: int) -> Iterator[AttentionBlock]:
    """Several sentences with all heads, or one sentence with some of its heads: about `limit` scores per block."""
    alone = group.query_length * group.key_length
    together = max(1, limit // (alone * heads))
    step = heads if together > 1 else min(heads, max(1, limit // alone))
    for part in group.cut(together):
        for first in range(0, heads, step):
            yield AttentionBlock(part, slice(first, first + step), heads)


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(lengths, dtype=np.intp)])


def _groups(queries: Integers, keys: Integers) -> tuple[SameLength, ...]:
    return tuple(_runs(queries.tolist(), keys.tolist()))


def _runs(queries: list[int], keys: list[int]) -> Iterator[SameLength]:
    query = key = 0
    for (asked, seen), run in groupby(zip(queries, keys, strict=True)):
        sentences = len(list(run))
        if asked:
            yield SameLength(sentences, slice(query, query + sentences * asked), slice(key, key + sentences * seen))
        query += sentences * asked
        key += sentences * seen
