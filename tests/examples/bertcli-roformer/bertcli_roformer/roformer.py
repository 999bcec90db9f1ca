"""RoFormer (Su et al. 2021): BERT whose attention turns queries and keys by their positions, and has no E_pos."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.models import nomic_bert
from bertcli.models.bert import EMBEDDINGS, LAYER, MLM
from bertcli.models.config import choice, count, sized
from bertcli.models.registry import Family
from bertcli.models.roberta import FINE_TUNED
from bertcli.models.rope import RotaryConfig
from bertcli.network import encoder, heads, rotary
from bertcli.network.encoder import LayerNorm, Linear
from bertcli.network.heads import MaskedLM, Network, TokenClassifier
from bertcli.network.module import parameter, part, parts, setting
from bertcli.network.rotary import Attention, Positions
from bertcli.tracing.dispatch import Array


class Embeddings(nomic_bert.Embeddings):
    """X = LayerNorm(E_tok[ids] + E_type[segments]), then projected to H where E is another number"""

    token: Array = parameter("V E")
    segment: Array = parameter("T E")
    norm: LayerNorm = part(features="E")
    projection: Linear | None = part(when="has_projection", outputs="H", inputs="E")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = super().forward(batch)
        return x if self.projection is None else self.projection(x)


class EncoderLayer(encoder.EncoderLayer[Positions]):
    """X = LayerNorm(X + Attention(X)), then X = LayerNorm(X + FeedForward(X))"""

    attention: Attention = part()


class Encoder(rotary.Layers):
    """L encoder layers, one after the other"""

    layers: tuple[EncoderLayer, ...] = parts("L")


class FirstTokenClassifier(heads.FirstTokenClassifier):
    """act(X[first] Wᵀ + b) W_cᵀ + b_c"""

    activation: str = setting("hidden_act")


class RoFormer(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part(features="E")
    classifier: FirstTokenClassifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends


class RoFormerConfig(RotaryConfig):
    """A RoFormer configuration with config.json's own keys; the defaults are those of transformers."""

    vocab_size: int = count(50000, "V", needed=True)
    embedding_size: int | None = count(None, "E")  # None: hidden_size
    max_position_embeddings: int = count(1536, "P")
    type_vocab_size: int = count(2, "T")
    rotary_value: bool = choice(False)
    model_type: str = "roformer"

    title: ClassVar[str] = "RoFormer"

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        return data  # its code reads no key for the base of its rotations, which is 10000

    @cached_property
    def sizes(self) -> dict[str, int]:
        return super().sizes | {"E": self.embedding_size or self.hidden_size}

    @property
    def has_segments(self) -> bool:
        return True


# The names of these modules' steps in `trace`, beside those of the classes that they are derived from.
STEP_NAMES = """
Embeddings
  Embeddings.projection linear | e) projection | Encoder input | W_e
"""

# Our paths and the checkpoint's names, as bertcli/models/tensor_names.py reads them. RoFormer turns neighbours of a
# head's numbers by position, the house's rotations numbers half a head apart: hence [pairs].
NAMES = """
embeddings.projection.*                    embeddings_project.*
encoder.layers.#.attention.{query,key}.*   encoder.layer.#.attention.self.{query,key}.*[pairs]
encoder.layers.#.attention.value.*         encoder.layer.#.attention.self.value.*
"""

FAMILY = Family(
    types={"roformer": "RoFormer"},
    config=RoFormerConfig,
    network=RoFormer,
    prefixes=("roformer.",),
    names=(NAMES, EMBEDDINGS, LAYER, MLM, FINE_TUNED),
    variants={"roformer-small": sized(6, 384, embedding_size=128, max_position_embeddings=512)},
    ignored_prefixes=("encoder.embed_positions.",),  # sines and cosines, which are computed here
)
