"""similarity: the cosines of all pairs of texts."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.ranking import ROUNDING, best_first
from bertcli.report.digits import short, short_rows
from bertcli.tasks.compute.encode import Block

# Cosines computed at a time.
NUMBERS = 1 << 20


def similarity(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Records {index, text, cosine: [one per text]}, one after the other: the cosines of all pairs of texts.

    Parts of texts are compared like texts; chunk, start and end, after the index, say which part it is.
    """
    items = [item for block in blocks for item in block.items]
    rows = chain.from_iterable(cosines(vectors_of(blocks)))
    for item, row in zip(items, rows, strict=True):
        yield {**item.named, "text": item.chunk_text, "cosine": short_rows(row.astype(np.float32))}


def nearest_pairs(blocks: Sequence[Block], top_k: int, min_score: float = -1.0) -> Iterator[dict[str, Any]]:
    """Records {row, other, score, text, other_text}: of each text the `top_k` others with the largest cosines.

    Only cosines of at least `min_score`. The whole matrix is never there: memory is that of the vectors.
    """
    items = [item for block in blocks for item in block.items]
    rows = chain.from_iterable(cosines(vectors_of(blocks)))
    for number, (item, scores) in enumerate(zip(items, rows, strict=True)):
        for other in _best_others(scores, number, top_k, min_score):
            yield {
                "row": number,
                "other": int(other),
                "score": short(float(scores[other])),
                "text": item.chunk_text,
                "other_text": items[other].chunk_text,
            }


def _best_others(scores: NDArray[np.float64], row: int, top_k: int, min_score: float) -> NDArray[np.intp]:
    """The texts with the largest scores beside a row's own, best first; ties are in the order of the texts."""
    # As scores are printed, so that one that was read there has its own pair.
    near = scores.astype(np.float32) >= np.float32(min_score)
    if top_k + 1 < len(scores):
        # With itself, the row is among the best; what equals the last of them up to rounding may be better.
        near &= scores >= np.partition(scores, -top_k - 1)[-top_k - 1] - ROUNDING
    candidates: NDArray[np.intp] = np.flatnonzero(near)
    others = candidates[candidates != row]
    best: NDArray[np.intp] = others[best_first(scores[others], top_k)]
    return best


def vectors_of(blocks: Sequence[Block]) -> NDArray[Any]:
    """The vectors of all texts [text, width]."""
    if not blocks:
        return np.empty((0, 1))
    return np.concatenate([np.asarray(block.vectors) for block in blocks])


def cosines(vectors: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """cos(x_i, x_j) [some, n] for some rows i at a time; a zero vector has 0 with every other and 1 with itself."""
    count = len(vectors)
    together = max(1, NUMBERS // max(1, count))
    directions = np.empty(vectors.shape)
    for first in range(0, count, together):
        some = vectors[first : first + together].astype(np.float64)
        lengths = np.linalg.norm(some, axis=1, keepdims=True)
        directions[first : first + together] = some / np.where(lengths > 0, lengths, 1.0)
    for first in range(0, count, together):
        rows = np.arange(first, min(first + together, count))
        result = np.clip(directions[rows] @ directions.T, -1.0, 1.0)
        # With itself, whatever the rounding, and for a zero vector, too.
        result[rows - first, rows] = 1.0
        yield result
