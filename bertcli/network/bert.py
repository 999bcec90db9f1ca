"""The whole BERT: embeddings, encoder and the heads that a checkpoint has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertcli.network.encoder import Embeddings, Encoder
from bertcli.network.heads import (
    Classifier,
    MaskedLM,
    MultipleChoice,
    NextSentence,
    Pooler,
    QuestionAnswering,
    TokenClassifier,
)
from bertcli.network.module import part
from bertcli.network.network import Network


@dataclass(frozen=True, eq=False)
class Bert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part()
    nsp: NextSentence | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: QuestionAnswering | None = part()
    multiple_choice: MultipleChoice | None = part()

    pooled: ClassVar = frozenset({"nsp", "classifier", "multiple_choice"})
