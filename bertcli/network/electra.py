"""ELECTRA (Clark et al. 2020): BERT whose embeddings may be narrower than its layers, without a pooler.

Two models come out of its training: a generator, which fills masks, and a discriminator, which tells replaced tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from bertcli.engine.array import Array
from bertcli.engine.packing import Packed
from bertcli.network import encoder, heads
from bertcli.network.encoder import Encoder, LayerNorm, Linear
from bertcli.network.heads import QuestionAnswering, TokenClassifier
from bertcli.network.module import Module, fixed, parameter, part, setting
from bertcli.network.network import Network


@dataclass(frozen=True, eq=False)
class Embeddings(encoder.Embeddings):
    """BERT's with E numbers a token, then projected to H where that is another number"""

    token: Array = parameter("V E")
    segment: Array = parameter("T E")
    position: Array = parameter("P E")
    norm: LayerNorm = part(features="E")
    projection: Linear | None = part(when="has_projection", outputs="H", inputs="E")

    def forward(self, batch: Packed) -> Array:
        x = super().forward(batch)
        return x if self.projection is None else self.projection(x)


@dataclass(frozen=True, eq=False)
class MaskedLM(heads.MaskedLM):
    """The generator's: LayerNorm(gelu(x Wᵀ + b)) E_tokᵀ + bias, back at the width of the embeddings"""

    transform: Linear = part(outputs="E", inputs="H")
    norm: LayerNorm = part(features="E")
    decoder: Array = parameter("V E", tied="embeddings.token")
    activation: str = fixed("gelu")


@dataclass(frozen=True, eq=False)
class ReplacedTokens(Module):
    """The discriminator's: one logit for every token; above 0, it takes the token for a replaced one"""

    dense: Linear = part(outputs="H", inputs="H")
    output: Linear = part(outputs="1", inputs="H")
    activation: str = setting("hidden_act")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> logits [token, 1]"""
        return self.output(self.dense(x, activation=self.activation))


@dataclass(frozen=True, eq=False)
class Classifier(heads.FirstTokenClassifier):
    """gelu(X[CLS] Wᵀ + b) W_cᵀ + b_c"""

    activation: str = fixed("gelu")


@dataclass(frozen=True, eq=False)
class MultipleChoice(Classifier):
    """The same with one logit: how well this choice fits"""

    output: Linear = part(outputs="1", inputs="H")


@dataclass(frozen=True, eq=False)
class Electra(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part()
    rtd: ReplacedTokens | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: QuestionAnswering | None = part()
    multiple_choice: MultipleChoice | None = part()
