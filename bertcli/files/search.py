"""Exact search in a file of vectors: every row is compared with the query, a block of rows at a time."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.formats import ending_of, endings
from bertcli.files.held import Vectors
from bertcli.files.kinds import format_of
from bertcli.files.stored import Numbers, StoredVectors
from bertcli.files.vectors import quantize, stored_width
from bertcli.order import best_first

NUMBERS = 1 << 22  # in a block: 32 MiB in float64
Scores = NDArray[np.float64]


class Nearest(NamedTuple):
    """The rows nearest to each query, best first, ties in file order: both [query, at most top_k]; of so many rows."""

    rows: NDArray[np.int64]
    scores: Scores
    of: int


def nearest(queries: NDArray[np.floating[Any]], stored: StoredVectors, top_k: int) -> Nearest:
    """The rows with the largest cosine(query, row); queries [query, width].

    A zero vector has cosine 0 with everything. int8 rows are compared as stored: a scale per row changes no cosine.
    Rows of bits are compared with the signs of the query: 1 − 2 · (bits that differ) / width, the cosine of vectors of
    ±1. Errors: BertcliError if the widths differ, and for rows that are NaN or infinite.
    """
    width, count = queries.shape[1], 0
    directions, signs = queries.astype(np.float64), quantize(queries, "binary").values
    directions /= _lengths(directions)[:, None]
    rows, scores = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0))
    for block in stored.blocks(max(1, NUMBERS // max(1, width))):
        binary, length = block.dtype == np.uint8, block.shape[1]
        if length != stored_width(width, "binary" if binary else "float32"):
            size = f"{8 * length} bits" if binary else f"{length} numbers"
            raise BertcliError(
                f"{stored.file} has vectors of {size}, but this model gives {width}: use the model and the settings "
                "that made them (layer, pooling, truncated dimensions)."
            )
        cosines = _same_signs(signs, block, width) if binary else _cosines(directions, block)
        bad = np.flatnonzero(~np.isfinite(cosines).all(axis=0))
        if bad.size:
            raise BertcliError(f"{stored.file}, row {count + bad[0]}: NaN or infinite numbers; create the file again.")
        numbers = np.broadcast_to(np.arange(count, count + len(block)), cosines.shape)
        rows, scores = np.concatenate([rows, numbers], 1), np.concatenate([scores, cosines], 1)
        count += len(block)
        kept = np.sort(_best(scores, top_k), axis=1)  # in file order, which ties keep
        rows, scores = np.take_along_axis(rows, kept, 1), np.take_along_axis(scores, kept, 1)
    order = _best(scores, top_k)
    return Nearest(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1), count)


def _best(scores: Scores, top_k: int) -> NDArray[np.intp]:
    """Where the `top_k` best of each row are, best first [query, at most top_k]."""
    return np.array([best_first(row, top_k) for row in scores], np.intp).reshape(len(scores), -1)


def _cosines(directions: Scores, block: Numbers) -> Scores:
    """Cosines [query, row] of vectors of length 1 with rows."""
    with np.errstate(all="ignore"):  # non-finite numbers show in the result
        wide = block.astype(np.float64)
        return np.asarray(directions @ wide.T / _lengths(wide)).clip(-1, 1)


def _lengths(vectors: Scores) -> Scores:
    """|x| of every row, 1 where that is 0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.where(lengths == 0, 1.0, lengths)


def _same_signs(signs: NDArray[np.uint8], block: NDArray[np.uint8], width: int) -> Scores:
    """The same [query, row] of vectors of ±1 whose bits are given."""
    different = [np.bitwise_count(block ^ query).sum(axis=1, dtype=np.int64) for query in signs]
    return 1 - 2 * np.array(different, np.float64).reshape(len(signs), len(block)) / width


def open_vectors(file: str) -> StoredVectors:
    """Open a file that `bertcli encode -o` wrote.

    Errors: BertcliError for a file that is missing, damaged, or holds no vectors of whole texts.
    """
    path, kinds = Path(file), endings("array", "arrays", "vectors")
    if ending_of(file) not in kinds:
        raise BertcliError(f"{file}: a file of vectors ends in {', '.join(kinds)}.")
    if not path.is_file():
        raise BertcliError(f"{file} is missing: give an existing file of vectors, such as encode -o writes.")
    return format_of(file, Vectors).open_vectors(path)
