"""similarity: the cosines of all pairs of texts."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        yield {**item.named, "text": item.chunk_text, "cosine": row.tolist()}


def vectors_of(blocks: Sequence[Block]) -> NDArray[Any]:
    """The vectors of all texts [text, width]."""
    if not blocks:
        return np.empty((0, 1))
    return np.concatenate([np.asarray(block.vectors) for block in blocks])


def cosines(vectors: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """cos(x_i, x_j) [some, n] for some rows i at a time; a zero vector has 0 with every other and 1 with itself."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1.0)
    count = len(vectors)
    together = max(1, NUMBERS // max(1, count))
    for first in range(0, count, together):
        rows = np.arange(first, min(first + together, count))
        result = np.clip(directions[rows] @ directions.T, -1.0, 1.0)
        # With itself, whatever the rounding, and for a zero vector, too.
        result[rows - first, rows] = 1.0
        yield result
