"""Padded batches [batch, token], as users of `LoadedModel.outputs` pass them: check them and pack them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError
from bertcli.tracing.dispatch import Integers


class Padded(NamedTuple):
    """A packed batch, each packed row's flat index in the padded one, and the padded one's shape."""

    batch: Packed
    rows: Integers
    shape: tuple[int, int]

    @classmethod
    def of(
        cls,
        ids: ArrayLike,
        segments: ArrayLike | None,
        mask: ArrayLike | None,
        max_tokens: int,
        vocab_size: int,
        segment_count: int,
    ) -> "Padded":
        """Check and pack ids, segments and mask, each [batch, token].

        Without segments all are 0; without a mask every token counts.

        Errors: BertcliError for shapes that do not agree, more tokens than positions, numbers that are not valid ids.
        """
        token_ids = _integers("ids", ids, vocab_size)
        if token_ids.ndim != 2 or token_ids.shape[1] > max_tokens:
            raise BertcliError(
                f"ids have shape {token_ids.shape}; a batch is [batch, token] with at most {max_tokens} tokens."
            )
        zeros = np.zeros_like(token_ids)
        segment_ids = zeros if segments is None else _integers("segments", segments, segment_count)
        seen = np.ones(token_ids.shape, dtype=bool) if mask is None else _array("mask", mask) != 0
        for name, array in (("segments", segment_ids), ("mask", seen)):
            if array.shape != token_ids.shape:
                raise BertcliError(
                    f"The shape of {name} is {array.shape}, that of ids is {token_ids.shape}: they must be equal."
                )
        batch, rows = pack_padded(token_ids, segment_ids, seen)
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


def pack_padded(ids: Integers, segments: Integers, mask: NDArray[np.bool_]) -> tuple[Packed, Integers]:
    """Pack a padded batch [batch, token]; also returns each packed row's flat index in the padded batch.

    Sentences are sorted by length so that those of equal length are computed together.
    """
    lengths = mask.sum(axis=1)
    order = np.argsort(lengths, kind="stable")
    flat = np.arange(mask.size).reshape(mask.shape)
    rows = flat[order][mask[order]]
    positions = rows % mask.shape[1]
    return Packed.of(ids.reshape(-1)[rows], segments.reshape(-1)[rows], positions, lengths[order]), rows
