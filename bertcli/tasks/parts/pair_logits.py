"""Compute the logits of pairs for cross-encoders that score with sentence-transformers modules, not with a head."""

from collections.abc import Sequence

import numpy as np

from bertcli.engine.packing import Packed, Sentence
from bertcli.errors import check_finite
from bertcli.kinds.pair_scores import PairScores
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.running.batches import (
    Numbers,
    hidden_states,
    in_packed_batches,
    logits_of_each,
)


def logits_by_modules(model: LoadedModel, scores: PairScores, packed: Packed) -> Numbers:
    """Compute the logits [sentence, output]. Errors: BertcliError for NaN and infinity."""
    logits = scores.of(hidden_states(model, packed), packed.offsets)
    check_finite(logits)
    return logits.astype(np.float64)


def logits_of_pairs(model: LoadedModel, sentences: Sequence[Sentence], batch_tokens: int | None) -> list[Numbers]:
    """Compute a cross-encoder's logits of each pair, with its modules or its classification head."""
    scored = model.pair_scores
    if scored is None:
        return logits_of_each(model, "classifier", sentences, batch_tokens)
    return in_packed_batches(sentences, batch_tokens, lambda packed: logits_by_modules(model, scored, packed))
