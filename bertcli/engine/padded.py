"""Ids, segments and masks as people hold them, padded, to a packed batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertcli.engine.array import Integers
from bertcli.engine.packing import Packed, pack_padded
from bertcli.errors import BertcliError


class Limits(NamedTuple):
    """What a model can read: so many tokens in a text, ids and segments below these numbers."""

    tokens: int
    ids: int
    segments: int


class Padded(NamedTuple):
    """A packed batch, each packed row's flat index in the padded one, and the padded one's shape."""

    batch: Packed
    rows: Integers
    shape: tuple[int, int]

    @classmethod
    def of(cls, ids: ArrayLike, segments: ArrayLike | None, mask: ArrayLike | None, limits: Limits) -> Padded:
        """ids, segments, mask [batch, token]; without segments all are 0, without a mask every token counts.

        Errors: BertcliError for shapes that do not agree, more tokens than positions, numbers that are not valid ids.
        """
        token_ids = _integers("ids", ids, limits.ids)
        if token_ids.ndim != 2 or token_ids.shape[1] > limits.tokens:
            raise BertcliError(
                f"ids have shape {token_ids.shape}; a batch is [batch, token] with at most {limits.tokens} tokens."
            )
        zeros = np.zeros_like(token_ids)
        kinds = zeros if segments is None else _integers("segments", segments, limits.segments)
        seen = np.ones(token_ids.shape, dtype=bool) if mask is None else _array("mask", mask) != 0
        for name, array in (("segments", kinds), ("mask", seen)):
            if array.shape != token_ids.shape:
                raise BertcliError(
                    f"The shape of {name} is {array.shape}, that of ids is {token_ids.shape}: they must be equal."
                )
        batch, rows = pack_padded(token_ids, kinds, seen)
        return cls(batch, rows, (token_ids.shape[0], token_ids.shape[1]))


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
