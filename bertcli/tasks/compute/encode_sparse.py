"""encode --sparse: a text's weight of every entry of the vocabulary, most of them 0.

    w_v = max_t ln(1 + relu(x_tv)),   x = MLM(hidden state of token t), special tokens included

A checkpoint's SpladePooling may ask for the sum instead of the maximum, and for one more logarithm: ln(1 + ln(1 + …)).
Source: Formal et al. 2021, "SPLADE v2: Sparse Lexical and Expansion Model for Information Retrieval".
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from bertcli.engine.packing import Packed
from bertcli.files.texts import Item
from bertcli.lean import lean_dataclass
from bertcli.loaded_model import LoadedModel
from bertcli.sentence.sparse import SparsePooling
from bertcli.tasks.compute.batches import NUMBERS_TOGETHER, check_finite, check_needs, hidden_states, in_packed_batches
from bertcli.tasks.compute.encode import PreparedTask
from bertcli.tasks.compute.prepared import prepare
from bertcli.tasks.compute.sparse_vectors import SparseBlock, SparseTask, SparseVector, largest
from bertcli.tasks.encode_sparse import SPEC, EncodeSparseOptions, has_table
from bertcli.tracing.dispatch import Array


def plan(model: LoadedModel, options: EncodeSparseOptions) -> PreparedTask[SparseBlock]:
    """What gives the blocks; BertcliError for a model without the head, and for options as in encode."""
    check_needs(model, SPEC.needs(options))
    if model.folder is not None and options.prompt_name is not None and model.sentence.routed:
        from bertcli.tasks.compute.sparse_queries import plan_queries  # few models have a table for queries

        if has_table(model, options.prompt_name):
            return plan_queries(model, options)
    reading, prompt, chunking, _ = prepare(model, options)
    pooling = model.sentence.sparse or SparsePooling()
    return SpladeTask(model, reading, chunking, 0, options.words, pooling, prompt=prompt)


@lean_dataclass
class SpladeTask(SparseTask):
    """Sparse vectors whose tokens are pooled like that."""

    pooling: SparsePooling

    @property
    def summary(self) -> str:
        strategy, activation, most = self.pooling
        rule = "ln(1 + ln(1 + relu))" if activation == "log1p_relu" else "ln(1 + relu)"
        kept = f"; the {most} largest" if most else ""
        why = "" if self.model.sentence.sparse else ", since the checkpoint specifies no SpladePooling"
        route = "; the route for documents" if self.model.sentence.routed else ""
        return f"the {strategy} over tokens of {rule}{kept}{why}{route}{super().summary}"

    def vectors(self, items: Sequence[Item]) -> list[SparseVector]:
        return in_packed_batches([item.tokens for item in items], self.reading.batch_tokens, self._vectors)

    def _vectors(self, packed: Packed) -> Iterator[SparseVector]:
        hidden = hidden_states(self.model, packed)
        for first, last in pairwise(packed.offsets.tolist()):
            weights = self._weights(hidden[first:last], packed)
            (indices,) = np.nonzero(weights)
            yield largest(indices, weights[indices], self.pooling.max_active)

    def _weights(self, hidden: Array, packed: Packed) -> Array:
        """The weight of each entry [vocabulary] from the hidden states of one text [token, hidden]."""
        step = max(1, NUMBERS_TOGETHER // self.model.config.vocab_size)
        weights = np.zeros(self.model.config.vocab_size, np.float64)
        for first in range(0, len(hidden), step):
            logits = self.model.network.predict("mlm", hidden[first : first + step], packed)
            if self.pooling.strategy == "max":  # the logarithms keep the order: one a text is enough
                highest = logits.max(axis=0)
                check_finite(highest)
                np.maximum(weights, self._activated(highest), out=weights)
            else:
                check_finite(logits.max(axis=0))
                weights += self._activated(logits).sum(axis=0, dtype=np.float64)
        return weights.astype(np.float32)

    def _activated(self, logits: Array) -> Array:
        once = np.log1p(np.maximum(logits, 0))
        return np.log1p(once) if self.pooling.activation == "log1p_relu" else once
