"""BERT whole: embeddings, encoder and whichever heads a checkpoint has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bertcli.encoder import Embeddings, Encoder
from bertcli.heads import Classifier, MaskedLM, NextSentence, Pooler
from bertcli.ops import Integers
from bertcli.packing import Packed
from bertcli.parts import Array, Module
from bertcli.tree import part


@dataclass(frozen=True, eq=False)
class Bert(Module):
    """Token ids to hidden states, and heads to call on them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part()
    nsp: NextSentence | None = part()
    classifier: Classifier | None = part()

    def forward(self, batch: Packed, rows: Integers | None = None) -> Array:
        """Hidden states [token, hidden] of the last layer; with `rows` (ascending packed rows) only of these."""
        return self.encoder(self.embeddings(batch), batch, rows)

    def states(self, batch: Packed) -> Iterator[Array]:
        """Hidden states after the embeddings and after every layer; layers not asked for are not run."""
        return self.encoder.states(self.embeddings(batch), batch)
