"""The rows of a file of vectors that are nearest to queries, exactly: a block of rows is compared at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.read.vector_reader import StoredVectors
from bertcli.files.search import Best, Nearest, Scores, similarities
from bertcli.files.write.vector_writer import quantize, stored_width

NUMBERS = 1 << 22  # in a block: 32 MiB in float64


def nearest(queries: NDArray[np.floating[Any]], stored: StoredVectors, top_k: int, how: str = "cosine") -> Nearest:
    """Find the rows most similar to each query [query, width], by one of the functions of `similarities`.

    int8 rows are compared as stored where a scale per row changes nothing: in cosines. Rows of bits are compared with
    the signs of the query: 1 − 2 · (bits that differ) / width, the cosine of vectors of ±1, which the other ways order
    alike. Errors: BertcliError if the widths differ, where scales are missing, and for rows that are NaN or infinite.
    """
    width, best = queries.shape[1], Best(len(queries), top_k)
    signs = quantize(queries, "binary").values
    read = stored.blocks if how == "cosine" else stored.scaled
    for block in read(max(1, NUMBERS // max(1, width))):
        binary, length = block.dtype == np.uint8, block.shape[1]
        wanted = stored_width(width, "binary") if binary else width
        if length != wanted:
            size = f"{8 * length} bits" if binary else f"{length} numbers"
            raise BertcliError(
                f"{stored.file} has vectors of {size}, but this model gives {width}: use the model and the settings "
                "that made them (layer, pooling, truncated dimensions)."
            )
        cosines = _same_signs(signs, block, width) if binary else similarities(queries, block, how)
        bad = np.flatnonzero(~np.isfinite(cosines).all(axis=0))
        if bad.size:
            row = best.count + bad[0]
            raise BertcliError(f"{stored.file}, row {row}: NaN or infinite numbers; create the file again.")
        best.add(cosines)
    return best.found()


def _same_signs(signs: NDArray[np.uint8], block: NDArray[np.uint8], width: int) -> Scores:
    """Cosines [query, row] of vectors of ±1 that are given as bits."""
    different = [np.bitwise_count(block ^ query).sum(axis=1, dtype=np.int64) for query in signs]
    return 1 - 2 * np.array(different, np.float64).reshape(len(signs), len(block)) / width
