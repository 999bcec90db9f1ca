"""Exact search: every row of a file is compared with the query, a chunk of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.quantise import quantise, stored_width
from bertcli.search.stored import Stored

NUMBERS = 1 << 22  # in a chunk: 32 MiB in float64
Scores = NDArray[np.float64]


class Nearest(NamedTuple):
    """The rows nearest to each query, best first, ties in file order: both [query, at most top_k]."""

    rows: NDArray[np.int64]
    scores: Scores


def nearest(queries: NDArray[np.floating[Any]], stored: Stored, top_k: int) -> Nearest:
    """The rows with the largest cosine(query, row); queries [query, width].

    A zero vector has cosine 0 with everything. int8 rows are compared as stored: a scale per row changes no cosine.
    Rows of bits are compared with the signs of the query: 1 − 2 · (bits that differ) / width, the cosine of vectors of
    ±1. Errors: BertcliError if the widths differ, and for rows that are NaN or infinite.
    """
    width = queries.shape[1]
    if stored.width != stored_width(width, "binary" if stored.binary else "float32"):
        what = f"{8 * stored.width} bits" if stored.binary else f"{stored.width} numbers"
        raise BertcliError(
            f"{stored.file} has vectors of {what}, but this model gives {width}: use the model and the settings that "
            "made them (layer, pooling, truncated dimensions)."
        )
    compare = _bits(queries) if stored.binary else _cosines(queries)
    best = Nearest(np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0)))
    begin = 0
    for chunk in stored.chunks(max(1, NUMBERS // max(1, width))):
        scores = compare(chunk)
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=0))
        if bad.size:
            raise BertcliError(f"{stored.file}, row {begin + bad[0]}: NaN or infinite numbers; create the file again.")
        rows = np.broadcast_to(np.arange(begin, begin + len(chunk)), scores.shape)
        best = _first(np.concatenate([best.rows, rows], 1), np.concatenate([best.scores, scores], 1), top_k)
        begin += len(chunk)
    return best


def _first(rows: NDArray[np.int64], scores: Scores, count: int) -> Nearest:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Nearest(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1))


def _cosines(queries: NDArray[np.floating[Any]]) -> Callable[[NDArray[Any]], Scores]:
    directions = queries.astype(np.float64)
    directions /= _lengths(directions)[:, None]

    def compare(chunk: NDArray[Any]) -> Scores:
        with np.errstate(all="ignore"):  # non-finite numbers show in the result
            wide = chunk.astype(np.float64)
            return np.asarray(directions @ wide.T / _lengths(wide)).clip(-1, 1)

    return compare


def _lengths(vectors: Scores) -> Scores:
    """|x| of every row, 1 where that is 0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.where(lengths == 0, 1.0, lengths)


def _bits(queries: NDArray[np.floating[Any]]) -> Callable[[NDArray[Any]], Scores]:
    signs, width = quantise(queries, "binary").values, queries.shape[1]

    def compare(chunk: NDArray[Any]) -> Scores:
        different = [np.bitwise_count(chunk ^ query).sum(axis=1, dtype=np.int64) for query in signs]
        shares: Scores = np.array(different, np.float64).reshape(len(signs), len(chunk)) / width
        return 1 - 2 * shares

    return compare
