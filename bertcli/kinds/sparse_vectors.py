"""Sparse vectors, and what computes them of a text's hidden states: SPLADE's rule.

    w_v = max_t ln(1 + relu(x_tv)),   x = MLM(hidden state of token t), special tokens included

A checkpoint's SpladePooling may ask for the sum instead of the maximum, and for one more logarithm: ln(1 + ln(1 + …)).
Source: Formal et al. 2021, "SPLADE v2: Sparse Lexical and Expansion Model for Information Retrieval".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.packing import Packed
from bertcli.errors import check_finite
from bertcli.kinds.relevance import RelevanceScore
from bertcli.network.heads import Network
from bertcli.ranking import best_first
from bertcli.tokens import Tokenizer
from bertcli.tracing.dispatch import Array

LOGITS_TOGETHER = 1 << 22  # over the vocabulary, held at a time: 16 MB, 137 tokens at BERT's vocabulary


class SparseVector(NamedTuple):
    """The entries that are not 0: ids of the vocabulary, ascending, and their weights."""

    indices: NDArray[np.int32]
    values: NDArray[np.float32]


def largest(indices: NDArray[Any], values: Array, most: int | None) -> SparseVector:
    """The vector with these entries, or only with the `most` largest."""
    if most:
        kept = np.sort(best_first(np.abs(values), most))
        indices, values = indices[kept], values[kept]
    return SparseVector(indices.astype(np.int32), values)


class SparseVectors(NamedTuple):
    """Sparse vectors of many texts, one after the other: row i has the next `counts[i]` of all entries."""

    counts: NDArray[np.int32]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Sequence[SparseVector]) -> Self:
        """Put vectors one after the other."""
        counts = np.array([len(vector.indices) for vector in vectors], np.int32)
        indices = [np.empty(0, np.int32), *(vector.indices for vector in vectors)]
        values = [np.empty(0, np.float32), *(vector.values for vector in vectors)]
        return cls(counts, np.concatenate(indices), np.concatenate(values))


@dataclass(frozen=True)
class SparseProduct(RelevanceScore):
    """The product of a query's sparse vector with a document's, or their cosine; 0 for one without entries."""

    options: ClassVar[Mapping[str, Any]] = {"sparse": True}
    cosine: bool

    def score(self, query: SparseVector, document: SparseVector, pieces: Sequence[str]) -> float:
        _, of_query, of_document = np.intersect1d(query.indices, document.indices, True, return_indices=True)
        x, y = (vector.values.astype(np.float64) for vector in (query, document))
        score = float(x[of_query] @ y[of_document])
        lengths = float(np.linalg.norm(x) * np.linalg.norm(y)) if self.cosine else 1.0
        return score / lengths if lengths else 0.0

    def scores(self, query: SparseVector, documents: SparseVectors) -> NDArray[np.float64]:
        """The score of each of many documents: as `score`, up to rounding, and faster by far."""
        weights = np.zeros(1 + max(vectors.indices.max(initial=0) for vectors in (query, documents)))
        weights[query.indices] = query.values
        # Entries that are not the query's add 0.
        scores = _sums(documents.counts, weights[documents.indices] * documents.values)
        if self.cosine:
            squares = _sums(documents.counts, documents.values.astype(np.float64) ** 2)
            lengths = np.sqrt(squares) * np.sqrt((weights**2).sum())
            scores = scores / np.where(lengths > 0, lengths, 1)
        return scores

    def note(self, queries: str, documents: str) -> str:
        return f"queries: {queries}; documents: {documents}"


def _sums(counts: NDArray[np.int32], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each row's numbers, of which row i has the next `counts[i]`; 0 for a row without any."""
    sums = np.zeros(len(counts))
    # Only these: `reduceat` gives a row without numbers the first of the next.
    filled = np.flatnonzero(counts)
    if len(filled):
        begins = np.cumsum(counts, dtype=np.int64) - counts
        sums[filled] = np.add.reduceat(numbers, begins[filled])
    return sums


class SparseWeights:
    """What computes sparse vectors of hidden states. head: the prediction head that it needs; None for none."""

    head: str | None = None
    max_active: int | None = None

    @property
    def summary(self) -> str:
        """Say for the user how weights are made."""
        raise NotImplementedError

    def of(self, hidden: Array, packed: Packed, network: Network, tokenizer: Tokenizer) -> Iterator[SparseVector]:
        """Yield the vector of each text of a batch, from its hidden states [token, hidden]."""
        raise NotImplementedError


@dataclass(frozen=True)
class SpladeWeights(SparseWeights):
    """SPLADE: a text's weight of each vocabulary entry is the `max` or the `sum` over its tokens' logits.

    The logits first go through ln(1 + relu(x)) (`relu`), or through that and once more ln(1 + x) (`log1p_relu`).
    max_active: keep only this number of the largest weights; None: all. is_stated: the folder has these settings.
    """

    strategy: str = "max"
    activation: str = "relu"
    max_active: int | None = None
    is_stated: bool = False
    head = "mlm"

    @property
    def summary(self) -> str:
        rule = "ln(1 + ln(1 + relu))" if self.activation == "log1p_relu" else "ln(1 + relu)"
        kept = f"; the {self.max_active} largest" if self.max_active else ""
        why = "" if self.is_stated else ", since the checkpoint specifies no SpladePooling"
        return f"the {self.strategy} over tokens of {rule}{kept}{why}"

    def of(self, hidden: Array, packed: Packed, network: Network, tokenizer: Tokenizer) -> Iterator[SparseVector]:
        for first, last in pairwise(packed.offsets.tolist()):
            weights = self._weights(hidden[first:last], packed, network)
            (indices,) = np.nonzero(weights)
            yield largest(indices, weights[indices], self.max_active)

    def _weights(self, hidden: Array, packed: Packed, network: Network) -> Array:
        """Compute the weights [vocabulary] of one text from its hidden states [token, hidden]."""
        size = len(network.embeddings.token)
        step = max(1, LOGITS_TOGETHER // size)
        weights: Any = 0.0
        for first in range(0, len(hidden), step):
            logits = network.predict("mlm", hidden[first : first + step], packed)
            if self.strategy == "max":  # the logarithms keep the order: one a text is enough
                highest = logits.max(axis=0)
                check_finite(highest)
                weights = np.maximum(weights, self._activated(highest).astype(np.float64))
            else:
                check_finite(logits.max(axis=0))
                weights = weights + self._activated(logits).sum(axis=0, dtype=np.float64)
        return np.asarray(weights, np.float32).reshape(-1)

    def _activated(self, logits: Array) -> Array:
        once = np.log1p(np.maximum(logits, 0))
        return np.log1p(once) if self.activation == "log1p_relu" else once
