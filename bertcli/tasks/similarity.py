"""How alike texts are: the cosines of their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.tasks.encode import Block


def similarity(blocks: Sequence[Block]) -> tuple[NDArray[np.float64], list[dict[str, Any]]]:
    """Cosines of all texts with all [text, text], and as records {index, text, cosine: [one a text]}."""
    items = [item for block in blocks for item in block.items]
    matrix = cosines(np.concatenate([np.asarray(block.vectors) for block in blocks])) if blocks else np.empty((0, 0))
    rows = zip(items, matrix.tolist(), strict=True)
    return matrix, [{"index": item.index, "text": item.text.text, "cosine": row} for item, row in rows]


def cosines(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """cos(x_i, x_j) for all rows [n, n]; a zero vector has 0 with every other and 1 with itself."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1.0)
    result = np.clip(directions @ directions.T, -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return np.asarray(result)
