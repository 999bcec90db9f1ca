"""EuroBERT (Boizard et al. 2025): a decoder's layers that see both ways: RMS norms before them, rotary positions, gated
feed-forward layers, no biases, and in the larger models fewer heads of keys than of queries.
"""

from typing import Any, ClassVar

from bertcli.models.config import activation, choice, count, eps, sized
from bertcli.models.registry import Family
from bertcli.models.rope import RotaryConfig
from bertcli.models.static import Embeddings
from bertcli.network import heads, prenorm
from bertcli.network.heads import TokenClassifier
from bertcli.network.module import Module, fixed, parameter, part, parts, setting
from bertcli.network.ops import linear
from bertcli.network.prenorm import NetworkOfNormedStates, RMSNorm
from bertcli.network.rotary import Attention, Gated
from bertcli.tracing.dispatch import Array


class EncoderLayer(prenorm.EncoderLayer):
    """X = X + Attention(RMSNorm(X)), then X = X + FeedForward(RMSNorm(X))"""

    attention_norm: RMSNorm = part(features="H")
    attention: Attention = part(bias=False)
    feed_forward_norm: RMSNorm = part(features="H")
    feed_forward: Gated = part(bias=False)


class Encoder(prenorm.Encoder):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: RMSNorm = part(features="H")


class MaskedLM(Module):
    """x Wᵀ"""

    decoder: Array = parameter("V H", tied="embeddings.token")

    def forward(self, x: Array) -> Array:
        """Hidden states [token, hidden] -> logits [token, vocabulary]"""
        return linear(x, self.decoder)


class Classifier(heads.TwoLayerPrediction):
    """gelu(x Wᵀ + b) W_cᵀ + b_c, of the first token, the mean of all, or every token, whose logits are then averaged"""

    activation: str = fixed("gelu")
    pooling: str = setting("classifier_pooling")


class EuroBert(NetworkOfNormedStates):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()


class EuroBertConfig(RotaryConfig):
    """A EuroBERT configuration with config.json's own keys; the defaults are those of EuroBERT-210m."""

    vocab_size: int = count(128256, "V", needed=True)
    num_key_value_heads: int | None = count(None)
    head_dim: int | None = count(None)
    hidden_act: str = activation("silu")
    rms_norm_eps: float = eps(1e-5)
    attention_bias: bool = choice(False)
    mlp_bias: bool = choice(False)
    classifier_pooling: str = choice("late", "mean", "bos")
    pad_token_id: int = 128001
    tie_word_embeddings: bool = False
    model_type: str = "eurobert"

    title: ClassVar[str] = "EuroBERT"


# Our path in a layer, and its name in files: those of Llama.
# Qwen2, Qwen3 and Gemma 3 have these names, too.
DECODER = """
embeddings.token                                        embed_tokens.weight
encoder.layers.#.attention_norm.*                       layers.#.input_layernorm.*
encoder.layers.#.attention.{query,key,value,output}.*   layers.#.self_attn.{q,k,v,o}_proj.*
encoder.layers.#.feed_forward.{gate,intermediate}.*     layers.#.mlp.{up,gate}_proj.*
encoder.layers.#.feed_forward.output.*                  layers.#.mlp.down_proj.*
encoder.norm.*                                          norm.*
"""
FEED_FORWARD_NORM = "encoder.layers.#.feed_forward_norm.*    layers.#.post_attention_layernorm.*"
HEADS = """
mlm.decoder                              lm_head.weight
classifier.dense.*                       dense.*
{classifier,token_classifier}.output.*   classifier.*
"""
GROUPED: dict[str, Any] = {"num_attention_heads": 18, "num_key_value_heads": 6}
FAMILY = Family(
    types={"eurobert": "EuroBert"},
    config=EuroBertConfig,
    network=EuroBert,
    prefixes=("model.",),
    names=(DECODER, FEED_FORWARD_NORM, HEADS),
    custom_code=True,
    variants={
        "eurobert-210m": {},
        "eurobert-610m": sized(26, 1152, intermediate_size=4096, **GROUPED),
        "eurobert-2.1b": sized(32, 2304, intermediate_size=6144, **GROUPED),
    },
)
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Masked language model
  MaskedLM.decoder linear | decode | Vocabulary logits | Decoder
"""
