"""The whole BERT: embeddings, encoder and the heads that a checkpoint has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bertcli.encoder import Embeddings, Encoder
from bertcli.heads import Classifier, MaskedLM, NextSentence, Pooler
from bertcli.ops import pick
from bertcli.packing import Packed
from bertcli.parts import Array, Integers, Module
from bertcli.textbook import Textbook
from bertcli.tree import part


@dataclass(frozen=True, eq=False)
class Bert(Module):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part()
    nsp: NextSentence | None = part()
    classifier: Classifier | None = part()

    def forward(self, batch: Packed, rows: Integers | None = None) -> Array:
        """Hidden states [token, hidden] of the last layer; with `rows` (ascending packed rows) only those."""
        return self.encoder(self.embeddings(batch), batch, rows)

    def states(self, batch: Packed) -> Iterator[Array]:
        """Hidden states after the embeddings and after each layer; a layer runs only when its output is asked for."""
        return self.encoder.states(self.embeddings(batch), batch)


class Outputs(NamedTuple):
    """Hidden states and the output of each head; None for a head the model does not have"""

    hidden: Array  # [token, hidden]
    pooled: Array | None  # [batch, hidden]
    mlm: Array | None  # logits [token, vocabulary]
    nsp: Array | None  # logits [batch, 2]
    classifier: Array | None  # logits [batch, label]


def outputs(network: Bert | Textbook, batch: Packed) -> Outputs:
    """A whole pass: the encoder, then every head the model has; the masked-language-model head on every token."""
    hidden = network(batch)
    pooled = network.pooler(pick(hidden, batch.first)) if network.pooler else None
    mlm = network.mlm(hidden) if network.mlm else None
    if pooled is None or isinstance(network, Textbook):
        return Outputs(hidden, pooled, mlm, None, None)
    nsp = network.nsp(pooled) if network.nsp else None
    return Outputs(hidden, pooled, mlm, nsp, network.classifier(pooled) if network.classifier else None)
