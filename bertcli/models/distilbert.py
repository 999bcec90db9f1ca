"""DistilBERT (Sanh et al. 2019): BERT without segments and pooler."""

from collections.abc import Mapping
from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.models.bert import EMBEDDINGS, FINE_TUNED
from bertcli.models.config import Config, agreed, layers, renamed
from bertcli.models.registry import Family
from bertcli.network import heads
from bertcli.network.encoder import Encoder, LayerNorm
from bertcli.network.heads import MaskedLM, Network, TokenClassifier
from bertcli.network.module import Module, fixed, parameter, part
from bertcli.network.ops import add, embed
from bertcli.tracing.dispatch import Array


class Embeddings(Module):
    """X = LayerNorm(E_tok[ids] + E_pos[positions])"""

    token: Array = parameter("V H")
    position: Array = parameter("P H")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = embed(self.token, batch.ids)
        return self.norm(add(embed(self.position, batch.positions), x))


class Classifier(heads.FirstTokenClassifier):
    """max(0, X[CLS] Wᵀ + b) W_cᵀ + b_c"""

    activation: str = fixed("relu")


class DistilBert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")


class DistilBertConfig(Config):
    """A DistilBERT configuration with BERT's keys; the defaults are those of distilbert-base-uncased."""

    num_hidden_layers: int = layers(6)
    model_type: str = "distilbert"

    names: ClassVar[Mapping[str, str]] = {
        "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
        "hidden_dim": "intermediate_size", "activation": "hidden_act",
    }  # fmt: skip
    title: ClassVar[str] = "DistilBERT"

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """BERT's keys for DistilBERT's own; of BERT's its code reads three sizes, and eps is always the default."""
        for key in ("dim", "n_layers", "n_heads"):
            agreed(data, key, cls.names[key])
        return renamed({**data, "layer_norm_eps": None, "hidden_act": None, "intermediate_size": None}, cls.names)


# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed    | a) token embedding     | Token embeddings    | E_tok
  Embeddings.position embed | b) position embedding  | Position embeddings | E_pos
  Embeddings.position add   | c) sum                 | Embedding sum
  Embeddings.norm norm      | d) layer normalization | Embedding output
"""

NAMES = """
encoder.layers.#.attention.{query,key,value,output}.*   transformer.layer.#.attention.{q,k,v,out}_lin.*
encoder.layers.#.attention_norm.*                       transformer.layer.#.sa_layer_norm.*
encoder.layers.#.feed_forward.{intermediate,output}.*   transformer.layer.#.ffn.{lin1,lin2}.*
encoder.layers.#.feed_forward_norm.*                    transformer.layer.#.output_layer_norm.*
mlm.transform.*                                         vocab_transform.*
mlm.norm.*                                              vocab_layer_norm.*
mlm.decoder                                             vocab_projector.weight
mlm.bias                                                vocab_projector.bias
{classifier,multiple_choice}.dense.*                    pre_classifier.*
"""
FAMILY = Family(
    types={"distilbert": "DistilBert"},
    config=DistilBertConfig,
    network=DistilBert,
    prefixes=("distilbert.",),
    names=(EMBEDDINGS, NAMES, FINE_TUNED),
    variants={
        "distilbert-base": {},
        "distilbert-base-cased": {"vocab_size": 28996},
        "distilbert-base-multilingual-cased": {"vocab_size": 119547},
    },
)
