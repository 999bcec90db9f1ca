"""Cosine similarity of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def similarity(vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Cosines of all rows with all rows [n, n]; a zero vector has 0 with every other and 1 with itself."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1.0)
    cosines = np.clip(directions @ directions.T, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return np.asarray(cosines)
