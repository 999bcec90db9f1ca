"""Sentences packed end to end: no padding exists, so nothing is computed for it and no mask is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.integer[Any]]
Array = NDArray[np.float32]


class Group(NamedTuple):
    """Neighbouring sentences that are alike in shape: where their queries and their keys lie in the packed rows."""

    sentences: int
    queries: slice
    keys: slice


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
    groups: tuple[Group, ...]

    @property
    def first(self) -> Integers:
        """The row of each sentence's first token, [CLS]."""
        return self.offsets[:-1]

    def narrow(self, rows: Integers) -> Packed:
        """The same batch when only some rows (ascending) are queries; every row remains a key."""
        counts = np.diff(np.searchsorted(rows, self.offsets))
        return Packed(self.ids, self.segments, self.positions, self.offsets, _groups(counts, np.diff(self.offsets)))


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
    packed = Packed(ids.reshape(-1)[rows], segments.reshape(-1)[rows], positions, _offsets(counts), _groups(counts, counts))
    return packed, rows


def split_heads(x: Array, rows: slice, sentences: int, heads: int) -> Array:
    """View of some packed rows [token, head·size] as [batch, head, token, size]."""
    _, hidden = x.shape
    split = x[rows].reshape(sentences, -1, heads, hidden // heads, copy=False)
    return split.transpose(0, 2, 1, 3)


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(lengths, dtype=np.intp)])


def _groups(queries: Integers, keys: Integers) -> tuple[Group, ...]:
    return tuple(_runs(queries.tolist(), keys.tolist()))


def _runs(queries: list[int], keys: list[int]) -> Iterator[Group]:
    query = key = 0
    for (asked, seen), run in groupby(zip(queries, keys, strict=True)):
        sentences = len(list(run))
        if asked:
            yield Group(sentences, slice(query, query + sentences * asked), slice(key, key + sentences * seen))
        query += sentences * asked
        key += sentences * seen
