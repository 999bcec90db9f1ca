"""Sentences packed end to end: no padding exists, so nothing is computed for it and no mask is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bertcli.parts import Array, Integers, watched
from bertcli.team import thread_count

MOST_SCORES = 1 << 18  # of a block: with V and the result 1.5 MiB, what one core has of the caches
MOST_TOKENS = 608  # of a part: at 512, 6 MiB of feed-forward activations a core; with AVX2 twice guarded.MOST
LEAST_TOKENS = 192  # of a part: with fewer, two cores do better to share each product than to read all weights each
UNEVEN = 1.2  # times the even share of a core: with longer parts, it is better to share each product
LEAST_SCORES = 1 << 16  # below this, waking another core costs more than it brings


class SameLength(NamedTuple):
    """Neighbouring sentences of one length, computed together: the packed rows of their queries and of their keys."""

    sentences: int
    queries: slice
    keys: slice

    @property
    def score_count(self) -> int:
        """Pairs of a query and a key."""
        return self.sentences * self.query_length * self.key_length

    @property
    def query_length(self) -> int:
        """Queries of each sentence."""
        return int(self.queries.stop - self.queries.start) // self.sentences

    @property
    def key_length(self) -> int:
        """Keys of each sentence."""
        return int(self.keys.stop - self.keys.start) // self.sentences

    def cut(self, sentences: int) -> Iterator[SameLength]:
        """The same in parts of so many sentences."""
        asked, seen = self.query_length, self.key_length
        for first in range(0, self.sentences, sentences):
            last = min(first + sentences, self.sentences)
            queries = slice(self.queries.start + first * asked, self.queries.start + last * asked)
            keys = slice(self.keys.start + first * seen, self.keys.start + last * seen)
            yield SameLength(last - first, queries, keys)


class AttentionBlock(NamedTuple):
    """Sentences of a group and some of their heads: as much of attention as is computed at a time."""

    group: SameLength
    heads: slice
    head_count: int  # of the whole

    def query_heads(self, x: Array) -> Array:
        """View of packed rows [token, head·size] as [batch, head, token, size]."""
        return self._view(x, self.group.queries)

    def key_heads(self, x: Array) -> Array:
        """The same of the rows that are looked at: keys, and values."""
        return self._view(x, self.group.keys)

    def _view(self, x: Array, rows: slice) -> Array:
        split = x[rows].reshape(self.group.sentences, -1, self.head_count, x.shape[1] // self.head_count, copy=False)
        return split.transpose(0, 2, 1, 3)[:, self.heads]


@dataclass(frozen=True, eq=False)
class Packed:
    """The tokens of a batch, end to end: sentence i is rows `offsets[i]` to `offsets[i + 1]`.

    A token that attention may not see is simply not here, which is what a weight of 0 for it comes to; the positions of
    the others stay what they were.
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
        """Attention of a batch in blocks whose scores fit the cache; whole groups where somebody watches."""
        if watched():
            return [AttentionBlock(group, slice(None), heads) for group in self.groups]
        scores = sum(group.score_count for group in self.groups) * heads
        limit = min(MOST_SCORES, max(LEAST_SCORES, scores // thread_count()))
        return [block for group in self.groups for block in _blocks(group, heads, limit)]

    def parts(self) -> list[Part]:
        """The batch in parts that one core each can compute, small enough for the cache; else whole."""
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
        """The same batch when only some rows (ascending) are queries; every row remains a key."""
        counts = np.diff(np.searchsorted(rows, self.offsets))
        return Packed(self.ids, self.segments, self.positions, self.offsets, _groups(counts, np.diff(self.offsets)))


class Part(NamedTuple):
    """Some sentences of a batch, as a batch, and the rows they are in the whole."""

    batch: Packed
    rows: slice


class Sentence(Protocol):
    """What `pack` needs of a tokenized text."""

    @property
    def ids(self) -> Sequence[int]: ...

    @property
    def segments(self) -> Sequence[int]: ...


def pack(sentences: Sequence[Sentence]) -> Packed:
    """Pack tokenized texts, in the order given; those of one length are computed together where they are neighbours."""
    lengths = np.array([len(sentence.ids) for sentence in sentences], dtype=np.intp)
    ids = np.concatenate([np.asarray(sentence.ids, dtype=np.intp) for sentence in sentences])
    segments = np.concatenate([np.asarray(sentence.segments, dtype=np.intp) for sentence in sentences])
    positions = np.concatenate([np.arange(length) for length in lengths])
    return Packed(ids, segments, positions, _offsets(lengths), _groups(lengths, lengths))


def pack_padded(ids: Integers, segments: Integers, mask: NDArray[np.bool_]) -> tuple[Packed, Integers]:
    """Pack a padded batch [batch, token]; also returns the flat index in it of every packed row.

    Sentences are sorted by length so that equal ones are computed together.
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
    """Some sentences with all their heads, or one with some of them: about `limit` scores each."""
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
