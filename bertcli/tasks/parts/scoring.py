"""Compute the logits of pairs for cross-encoders that score with sentence-transformers modules, not with a head."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bertcli.engine.packing import Packed, Sentence
from bertcli.errors import BertcliError, quoted
from bertcli.kinds.vectors import pool
from bertcli.loaded_model import LoadedModel
from bertcli.network.after_pooling import Dense, LayerNorm
from bertcli.tasks.running.batches import (
    Numbers,
    check_finite,
    check_head,
    hidden_states,
    in_packed_batches,
    logits_of_each,
)
from bertcli.tracing.dispatch import Array


class Scoring(NamedTuple):
    """The pooling of a pair's token vectors, and the layers from the pooled vector to the logits."""

    pooling: tuple[str, ...]
    layers: tuple[Dense | LayerNorm, ...]

    @property
    def outputs(self) -> int:
        """The number of logits."""
        return len(self.layers[-1].weight)

    def logits(self, model: LoadedModel, packed: Packed) -> Numbers:
        """Compute the logits [sentence, output]. Errors: BertcliError for NaN and infinity."""
        logits = self.of(hidden_states(model, packed), packed)
        check_finite(logits)
        return logits.astype(np.float64)

    def of(self, states: Array, packed: Packed) -> Array:
        """The logits from the hidden states [token, hidden]."""
        x = np.concatenate([pool(states, packed.offsets, mode) for mode in self.pooling], axis=1)
        for layer in self.layers:
            x = layer(x)
        return x


def scoring(model: LoadedModel) -> Scoring | None:
    """Read the scoring of a cross-encoder made of modules; None for a model with a classification head.

    Logits of the next token come from its row in a table: their difference is that of the rows, as one layer.
    Errors: BertcliError for a token that the table does not have.
    """
    pair_layers = model.kind.pair_layers
    if pair_layers is None:
        return None
    if pair_layers.next_token is None:
        return Scoring(pair_layers.pooling, pair_layers.layers)
    check_head(model, "lm", "LogitScore")
    table, (true, false) = model.network.lm.decoder, pair_layers.next_token
    if max(true, false or 0) >= len(table):
        raise BertcliError(
            f"{model.name} has {len(table)} tokens, and LogitScore needs the ids {quoted(pair_layers.next_token)}."
        )
    weight = table[[true]] if false is None else table[[true]] - table[[false]]
    return Scoring(pair_layers.pooling, (Dense(weight, None, "identity"),))


def logits_of_pairs(model: LoadedModel, sentences: Sequence[Sentence], batch_tokens: int | None) -> list[Numbers]:
    """Compute a cross-encoder's logits of each pair, with its modules or its classification head."""
    scored = scoring(model)
    if scored is None:
        return logits_of_each(model, "classifier", sentences, batch_tokens)
    return in_packed_batches(sentences, batch_tokens, lambda packed: scored.logits(model, packed))
