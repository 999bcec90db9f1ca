"""RoBERTa (Liu et al. 2019), XLM-RoBERTa and CamemBERT: BERT with other positions, without segments.

Positions count from the id of padding, 1: the first token of a text stands at position 2. Tokens that have this id, and
tokens that a mask leaves out, are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertcli.engine.array import Array
from bertcli.engine.packing import Packed
from bertcli.network import encoder, heads
from bertcli.network.encoder import Encoder
from bertcli.network.heads import FirstTokenClassifier, MultipleChoice, Pooler, QuestionAnswering, TokenClassifier
from bertcli.network.module import fixed, part, setting
from bertcli.network.network import Network
from bertcli.network.ops import add, add_row, embed, embed_counted


@dataclass(frozen=True, eq=False)
class Embeddings(encoder.Embeddings):
    """X = LayerNorm(E_tok[ids] + E_type[0] + E_pos[positions])"""

    padding: int = setting("pad_token_id")

    def forward(self, batch: Packed) -> Array:
        x = add_row(embed(self.token, batch.ids), self.segment)
        return self.norm(add(embed_counted(self.position, batch.ids, batch.offsets, padding=self.padding), x))


@dataclass(frozen=True, eq=False)
class MaskedLM(heads.MaskedLM):
    """BERT's, with the exact GELU whatever the configuration says"""

    activation: str = fixed("gelu")


@dataclass(frozen=True, eq=False)
class Roberta(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part()
    classifier: FirstTokenClassifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: QuestionAnswering | None = part()
    multiple_choice: MultipleChoice | None = part()

    pooled: ClassVar = frozenset({"multiple_choice"})
