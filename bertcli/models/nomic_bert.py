"""NomicBERT (Nussbaum et al. 2024; nomic-embed-text): BERT with rotary positions and gated feed-forward layers, whose
layers have no biases.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.models.bert import EMBEDDINGS, MLM, POOLER
from bertcli.models.config import activation, choice, count, renamed
from bertcli.models.registry import Family, layer_names
from bertcli.models.rope import GLOBAL, RotaryConfig
from bertcli.network import encoder, rotary
from bertcli.network.encoder import LayerNorm
from bertcli.network.heads import Classifier, MaskedLM, Network, Pooler, TokenClassifier
from bertcli.network.module import Module, parameter, part, parts
from bertcli.network.ops import add, embed
from bertcli.network.rotary import Attention, Gated, Positions
from bertcli.tracing.dispatch import Array


class Embeddings(Module):
    """X = LayerNorm(E_tok[ids] + E_type[segments]); there may be no E_type"""

    token: Array = parameter("V H")
    segment: Array | None = parameter("T H", when="type_vocab_size")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = embed(self.token, batch.ids)
        return self.norm(x if self.segment is None else add(embed(self.segment, batch.segments), x))


class EncoderLayer(encoder.EncoderLayer[Positions]):
    """X = LayerNorm(X + Attention(X)), then X = LayerNorm(X + FeedForward(X)); norms always have biases"""

    attention: Attention = part()
    attention_norm: LayerNorm = part(features="H", bias=True)
    feed_forward: Gated = part()
    feed_forward_norm: LayerNorm = part(features="H", bias=True)


class Encoder(rotary.Layers):
    """L encoder layers, one after the other"""

    layers: tuple[EncoderLayer, ...] = parts("L")


class NomicBert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part(bias=False)
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()

    pooled: ClassVar = frozenset({"classifier"})


TRAINED = 2048  # tokens; on longer texts implementations disagree


class NomicBertConfig(RotaryConfig):
    """A NomicBERT configuration with config.json's own keys; the defaults are those of nomic-embed-text."""

    vocab_size: int = count(30528, "V", needed=True)
    hidden_act: str = activation("silu")
    max_position_embeddings: int = count(2048, "P")
    type_vocab_size: int = count(2, "T", least=0)
    head_dim: int | None = count(None)
    rotary_emb_fraction: float = choice(1.0)
    rotary_emb_interleaved: bool = choice(False)
    prenorm: bool = choice(False)
    parallel_block: bool = choice(False)
    use_rms_norm: bool = choice(False)
    causal: bool = choice(False)
    qkv_proj_bias: bool = choice(False)
    mlp_fc1_bias: bool = choice(False)
    mlp_fc2_bias: bool = choice(False)
    moe_every_n_layers: int = choice(0)
    model_type: str = "nomic_bert"

    names: ClassVar[Mapping[str, str]] = {  # of older files
        "n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
        "n_inner": "intermediate_size", "n_positions": "max_position_embeddings", "activation_function": "hidden_act",
        "layer_norm_epsilon": "layer_norm_eps", "rotary_emb_base": "rope_theta",
    }  # fmt: skip
    title: ClassVar[str] = "NomicBERT"
    theta_keys: ClassVar = {GLOBAL: ("rope_theta", 1000.0)}

    @classmethod
    def key(cls, name: str) -> str:
        return name

    @classmethod
    def prepared(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Older files' keys under their newer names."""
        values = renamed(data, cls.names)
        if values.get("hidden_act") == "swiglu":
            values["hidden_act"] = "silu"
        return super().prepared(values)

    @property
    def max_tokens(self) -> int:
        return min(super().max_tokens, TRAINED) if self.ropes[0].rope_type == "default" else super().max_tokens

    @property
    def has_segments(self) -> bool:
        return self.type_vocab_size > 1


# Our path in a layer, and what newer and older files call it.
LAYER = """
attention.query             self_attn.q_proj           attn.Wqkv[0/3]
attention.key               self_attn.k_proj           attn.Wqkv[1/3]
attention.value             self_attn.v_proj           attn.Wqkv[2/3]
attention.output            self_attn.o_proj           attn.out_proj
attention_norm              post_attention_layernorm   norm1
feed_forward.intermediate   mlp.gate_proj              mlp.fc12
feed_forward.gate           mlp.up_proj                mlp.fc11
feed_forward.output         mlp.down_proj              mlp.fc2
feed_forward_norm           post_mlp_layernorm         norm2
"""
FAMILY = Family(
    types={"nomic_bert": "NomicBert"},
    config=NomicBertConfig,
    network=NomicBert,
    prefixes=("nomic_bert.",),
    names=(
        (r"embeddings\.norm\.(\w+)", r"embeddings.LayerNorm.\1", r"emb_ln.\1"),
        *EMBEDDINGS,
        *layer_names(LAYER, "layers", "encoder.layers"),
        *POOLER,
        (r"mlm\.norm\.(\w+)", r"cls.predictions.transform.layer_norm.\1"),
        *MLM,
        (r"(?:token_)?classifier\.output\.(\w+)", r"classifier.\1"),
    ),
    base_pooler=False,
    own_code=True,
    variants={"nomic-embed-text": NomicBertConfig()},
    prompts=("search_query: ", "search_document: "),
)
WORDS = """
Embeddings
  Embeddings.token embed   | a) token embedding     | Token embeddings   | E_tok
  Embeddings.segment embed | b) segment embedding   | Segment embeddings | E_type
  Embeddings.segment add   | c) sum                 | Embedding sum
  Embeddings.norm norm     | d) layer normalization | Embedding output
"""
