"""ALBERT (Lan et al. 2020): BERT whose layers are one layer, run again and again, with narrow embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertcli.network import electra, encoder
from bertcli.network.encoder import EncoderLayer, Linear
from bertcli.network.heads import Classifier, MultipleChoice, NextSentence, Pooler, QuestionAnswering, TokenClassifier
from bertcli.network.module import part, parts, setting
from bertcli.network.network import Network


@dataclass(frozen=True, eq=False)
class Embeddings(electra.Embeddings):
    """BERT's with E numbers a token, projected to H"""

    projection: Linear = part(outputs="H", inputs="E")


@dataclass(frozen=True, eq=False)
class Encoder(encoder.Encoder):
    """L encoder layers, one after the other, of which most are the same"""

    layers: tuple[EncoderLayer, ...] = parts("L", shared="groups")


@dataclass(frozen=True, eq=False)
class MaskedLM(electra.MaskedLM):
    """LayerNorm(act(x Wᵀ + b)) E_tokᵀ + bias, back at the width of the embeddings"""

    activation: str = setting("hidden_act")


@dataclass(frozen=True, eq=False)
class SentenceOrder(NextSentence):
    """Two logits from the pooled vector: 0 is in order, 1 is swapped"""


@dataclass(frozen=True, eq=False)
class Albert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part()
    sop: SentenceOrder | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: QuestionAnswering | None = part()
    multiple_choice: MultipleChoice | None = part()

    pooled: ClassVar = frozenset({"sop", "classifier", "multiple_choice"})
