"""encode --sparse (SPLADE): a weight for every entry of the vocabulary, most of them 0.

    w_v = max_t ln(1 + relu(x_tv)),   x = MLM(hidden state of token t), special tokens included

bge-m3 weighs the tokens of the text instead, and of each id takes the largest weight; special tokens are left out:

    w_v = max_t relu(h_t · w + b),   t of the id v

A checkpoint's SpladePooling may ask for the sum instead of the maximum, and for one more logarithm: ln(1 + ln(1 + …)).
Source: Formal et al. 2021, "SPLADE v2: Sparse Lexical and Expansion Model for Information Retrieval".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from bertcli.engine.packing import Packed
from bertcli.files.texts import Item
from bertcli.folder.layout import SPARSE_FILE
from bertcli.loaded_model import LoadedModel
from bertcli.network.after_pooling import Dense
from bertcli.sentence.sparse import SparsePooling
from bertcli.tasks.compute.encode import PreparedTask
from bertcli.tasks.encode_sparse import SPEC, EncodeSparseOptions, has_table
from bertcli.tasks.parts.prepared import prepare
from bertcli.tasks.parts.sparse_vectors import SparseBlock, SparseTask, SparseVector, largest
from bertcli.tasks.running.batches import NUMBERS_TOGETHER, check_finite, check_needs, hidden_states, in_packed_batches
from bertcli.tokens import Tokenizer
from bertcli.tracing.dispatch import Array


def plan(model: LoadedModel, options: EncodeSparseOptions) -> PreparedTask[SparseBlock]:
    """Make the task. Errors: BertcliError for a model without the head, and for options as in encode."""
    layers = None if model.path is None else model.sentence.tokens
    if layers is not None and layers.sparse is not None:
        read_options, prompt, chunking, _ = prepare(model, options)
        return TokenWeightTask(model, read_options, chunking, 0, options.words, layers.sparse, prompt=prompt)
    check_needs(model, SPEC.needs(options))
    if model.folder is not None and options.prompt_name is not None and model.sentence.routed:
        from bertcli.tasks.parts.sparse_queries import plan_queries  # few models have a table for queries

        if has_table(model, options.prompt_name):
            return plan_queries(model, options)
    read_options, prompt, chunking, _ = prepare(model, options)
    pooling = model.sentence.sparse or SparsePooling()
    return SpladeTask(model, read_options, chunking, 0, options.words, pooling, prompt=prompt)


@dataclass(frozen=True, eq=False, repr=False)
class SpladeTask(SparseTask):
    """The task of SPLADE: runs the MLM head, and pools over a text's tokens."""

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
        return in_packed_batches([item.tokens for item in items], self.read_options.batch_tokens, self._vectors)

    def _vectors(self, packed: Packed) -> Iterator[SparseVector]:
        hidden = hidden_states(self.model, packed)
        for first, last in pairwise(packed.offsets.tolist()):
            weights = self._weights(hidden[first:last], packed)
            (indices,) = np.nonzero(weights)
            yield largest(indices, weights[indices], self.pooling.max_active)

    def _weights(self, hidden: Array, packed: Packed) -> Array:
        """Compute the weights [vocabulary] of one text from its hidden states [token, hidden]."""
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


@dataclass(frozen=True, eq=False, repr=False)
class TokenWeightTask(SparseTask):
    """Sparse vectors of bge-m3: the weight that `layer` gives each token."""

    layer: Dense

    @property
    def summary(self) -> str:
        return f"the largest weight of each token, from {SPARSE_FILE}{super().summary}"

    def vectors(self, items: Sequence[Item]) -> list[SparseVector]:
        return in_packed_batches([item.tokens for item in items], self.read_options.batch_tokens, self._vectors)

    def _vectors(self, packed: Packed) -> Iterator[SparseVector]:
        return token_weights(self.layer(hidden_states(self.model, packed)), packed, self._left_out)

    @cached_property
    def _left_out(self) -> list[int]:
        return unweighed(self.tokenizer)


def unweighed(tokenizer: Tokenizer) -> list[int]:
    """Ids of the tokens that have no weight; the mask token, as in FlagEmbedding, may have one."""
    ids = map(tokenizer.special_id, ("cls", "sep", "pad", "unk"))
    return [id for id in ids if id is not None]


def token_weights(weights: Array, packed: Packed, left_out: Sequence[int]) -> Iterator[SparseVector]:
    """The vector of each text, from the weights of tokens [token, 1]."""
    check_finite(weights)
    for first, last in pairwise(packed.offsets.tolist()):
        ids, places = np.unique(packed.ids[first:last], return_inverse=True)
        largest_of = np.zeros(len(ids), np.float32)
        np.maximum.at(largest_of, places, weights[first:last, 0])
        kept = (largest_of > 0) & ~np.isin(ids, left_out)
        yield SparseVector(ids[kept].astype(np.int32), largest_of[kept])
