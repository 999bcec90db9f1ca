"""A padded batch given from Python: checked, then packed without its padding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertcli.config import BertConfig
from bertcli.errors import BertcliError
from bertcli.packing import Packed, pack_padded
from bertcli.parts import Integers


def packed_batch(
    config: BertConfig, ids: ArrayLike, segments: ArrayLike | None, mask: ArrayLike | None
) -> tuple[Packed, Integers, tuple[int, int]]:
    """ids, segments, mask [batch, token] -> packed tokens, each row's flat index in the batch, the batch's shape.

    Errors: BertcliError for shapes that do not agree, more tokens than positions, numbers that are not valid ids.
    """
    token_ids = _integers("ids", ids, config.vocab_size)
    if token_ids.ndim != 2 or token_ids.shape[1] > config.max_position_embeddings:
        raise BertcliError(
            f"ids have shape {token_ids.shape}; a batch is [batch, token] with at most "
            f"{config.max_position_embeddings} tokens."
        )
    zeros = np.zeros_like(token_ids)
    kinds = zeros if segments is None else _integers("segments", segments, config.type_vocab_size)
    seen = np.ones(token_ids.shape, dtype=bool) if mask is None else _array("mask", mask) != 0
    for name, array in (("segments", kinds), ("mask", seen)):
        if array.shape != token_ids.shape:
            raise BertcliError(
                f"The shape of {name} is {array.shape}, that of ids is {token_ids.shape}: they must be equal."
            )
    batch, rows = pack_padded(token_ids, kinds, seen)
    return batch, rows, (token_ids.shape[0], token_ids.shape[1])


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise BertcliError(
            f"The rows of {name} have different lengths: pad the shorter ones, and set the mask to 0 there."
        ) from None


def _integers(name: str, values: ArrayLike, limit: int) -> Integers:
    array = _array(name, values)
    if array.size == 0:
        return array.astype(np.intp)
    if array.dtype.kind not in "iu":
        raise BertcliError(f"{name} are of type {array.dtype}; they must be whole numbers.")
    if array.min() < 0 or array.max() >= limit:
        raise BertcliError(f"{name} must be between 0 and {limit - 1}; found {array.min()} to {array.max()}.")
    return array.astype(np.intp)
