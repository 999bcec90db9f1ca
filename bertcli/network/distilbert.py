"""DistilBERT (Sanh et al. 2019): BERT without segments and pooler."""

from __future__ import annotations

from dataclasses import dataclass

from bertcli.engine.array import Array
from bertcli.engine.packing import Packed
from bertcli.network import heads
from bertcli.network.encoder import Encoder, LayerNorm, Linear
from bertcli.network.heads import MaskedLM, QuestionAnswering, TokenClassifier
from bertcli.network.module import Module, fixed, parameter, part
from bertcli.network.network import Network
from bertcli.network.ops import add, embed


@dataclass(frozen=True, eq=False)
class Embeddings(Module):
    """X = LayerNorm(E_tok[ids] + E_pos[positions])"""

    token: Array = parameter("V H")
    position: Array = parameter("P H")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        x = embed(self.token, batch.ids)
        return self.norm(add(embed(self.position, batch.positions), x))


@dataclass(frozen=True, eq=False)
class Classifier(heads.FirstTokenClassifier):
    """max(0, X[CLS] Wᵀ + b) W_cᵀ + b_c"""

    activation: str = fixed("relu")


@dataclass(frozen=True, eq=False)
class MultipleChoice(Classifier):
    """The same with one logit: how well this choice fits"""

    output: Linear = part(outputs="1", inputs="H")


@dataclass(frozen=True, eq=False)
class DistilBert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: QuestionAnswering | None = part()
    multiple_choice: MultipleChoice | None = part()
