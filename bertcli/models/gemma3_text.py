"""Gemma 3 (EmbeddingGemma, Vera et al. 2025; or causal, as it was trained first): EuroBERT's layers, with norms after
them, too, and before the rotation. Most layers see only tokens near by. Norms multiply by 1 + w.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from bertcli.engine.packing import Packed
from bertcli.models import eurobert, static
from bertcli.models.config import activation, choice, count, eps, number
from bertcli.models.registry import Family
from bertcli.models.rope import GLOBAL, LOCAL, LocalConfig
from bertcli.network import prenorm
from bertcli.network.module import part, parts, setting
from bertcli.network.ops import add, rms_norm, scale
from bertcli.network.prenorm import LastTokenClassifier, NetworkOfNormedStates
from bertcli.network.rotary import Gated, Positions
from bertcli.tracing.dispatch import Array


class Embeddings(static.Embeddings):
    """X = E_tok[ids] · sqrt(H)"""

    factor: float = setting("embedding_factor")

    def forward(self, batch: Packed) -> Array:
        """Token ids of a batch -> [token, hidden]"""
        return scale(super().forward(batch), factor=self.factor)


class RMSNorm(prenorm.RMSNorm):
    """y = x / sqrt(mean of squares + eps) · (1 + weight), over the hidden axis or that of every head"""

    def forward(self, x: Array, heads: int = 1) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return rms_norm(x, self.weight, eps=self.eps, offset=1, heads=heads)


class SelfAttention(prenorm.QueryKeyNormAttention):
    """With norms that multiply by 1 + weight"""

    query_norm: RMSNorm = part(features="D")
    key_norm: RMSNorm = part(features="D")


class EncoderLayer(prenorm.EncoderLayer):
    """X = X + RMSNorm(Attention(RMSNorm(X))), then X = X + RMSNorm(FeedForward(RMSNorm(X)))"""

    attention_norm: RMSNorm = part(features="H")
    attention: SelfAttention = part(bias=False)
    attention_output_norm: RMSNorm = part(features="H")
    feed_forward_norm: RMSNorm = part(features="H")
    feed_forward: Gated = part(bias=False)
    feed_forward_output_norm: RMSNorm = part(features="H")

    def forward(self, x: Array, context: Array, batch: Packed, positions: Positions) -> Array:
        """x [query, hidden], context [key, hidden], both at these positions -> [query, hidden]"""
        keys = self.attention_norm(context)
        queries = keys if x is context else self.attention_norm(x)
        x = add(x, self.attention_output_norm(self.attention(queries, keys, batch, positions)))
        return add(x, self.feed_forward_output_norm(self.feed_forward(self.feed_forward_norm(x))))


class Encoder(prenorm.Encoder):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: RMSNorm = part(features="H")


class Gemma(NetworkOfNormedStates):
    """Token ids to hidden states, with a head to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    classifier: LastTokenClassifier | None = part()


class GemmaConfig(LocalConfig):
    """A Gemma 3 configuration with config.json's own keys; the defaults are those of Gemma's code."""

    vocab_size: int = count(262208, "V", needed=True)
    num_key_value_heads: int = count(4)
    head_dim: int = count(256)
    hidden_act: str = activation("gelu_pytorch_tanh")
    rms_norm_eps: float = eps(1e-6)
    max_position_embeddings: int = count(131072, "P")
    sliding_window: int = count(4096)
    sliding_window_pattern: int = count(6)
    query_pre_attn_scalar: float = number(256, 1e-6, 1e6)
    use_bidirectional_attention: bool = False
    is_causal: bool = choice(True)  # false would change the windows, too
    attention_bias: bool = choice(False)
    attn_logit_softcapping: float | None = choice(None)
    model_type: str = "gemma3_text"

    title: ClassVar[str] = "Gemma 3"
    theta_keys: ClassVar = {GLOBAL: ("rope_theta", 1000000.0), LOCAL: ("rope_local_base_freq", 10000.0)}
    scaled: ClassVar = (GLOBAL,)

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read a pad_token_id of null as no padding token, not as the default."""
        none = {"pad_token_id": -1} if data.get("pad_token_id", 0) is None else {}
        return {**super().normalized(data), **none}

    @property
    def embedding_factor(self) -> float:
        """The factor on the embeddings."""
        return float(self.hidden_size**0.5)

    @property
    def score_scale(self) -> float:
        """Scores are divided by sqrt(query_pre_attn_scalar)."""
        return self.query_pre_attn_scalar / self.head_dim

    def is_local(self, layer: int) -> bool:
        return (layer + 1) % self.sliding_window_pattern != 0

    @property
    def causal(self) -> bool:
        return not self.use_bidirectional_attention

    @property
    def radius(self) -> int:
        return self.sliding_window - 1 if self.causal else self.sliding_window // 2


NAMES = """
encoder.layers.#.attention.{query,key}_norm.*     layers.#.self_attn.{q,k}_norm.*
encoder.layers.#.attention_output_norm.*          layers.#.post_attention_layernorm.*
encoder.layers.#.feed_forward_norm.*              layers.#.pre_feedforward_layernorm.*
encoder.layers.#.feed_forward_output_norm.*       layers.#.post_feedforward_layernorm.*
classifier.output.*                               score.*
"""
FAMILY = Family(
    types={"gemma3_text": "Gemma3Text"},
    config=GemmaConfig,
    network=Gemma,
    prefixes=("model.",),
    names=(eurobert.DECODER, NAMES),
    variants={
        "embeddinggemma-300m": {
            "vocab_size": 262144, "hidden_size": 768, "num_hidden_layers": 24, "num_attention_heads": 3,
            "num_key_value_heads": 1, "intermediate_size": 1152, "max_position_embeddings": 2048,
            "sliding_window": 512, "use_bidirectional_attention": True,
        },
    },
)  # fmt: skip
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed                         | token embedding   | Token embeddings | E_tok
  Embeddings.token scale                         | scale             | Embedding output
1 Multi-head attention
  EncoderLayer.attention_output_norm rms_norm    | RMS normalization | Output norm
2 Add
  EncoderLayer.attention_output_norm add         | residual          | Sub-layer sum
4 Add
  EncoderLayer.feed_forward_output_norm rms_norm | RMS normalization | Output norm
  EncoderLayer.feed_forward_output_norm add      | residual          | Encoder layer output
"""
