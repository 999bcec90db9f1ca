"""Qwen3 (Yang et al. 2025; Qwen3-Embedding and -Reranker): EuroBERT's layers, with a norm of every head before the
rotation. A token sees only itself and those before it, unless a model that was fine-tuned to see both ways says so.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from bertcli.errors import BertcliError, quoted
from bertcli.models import eurobert
from bertcli.models.config import activation, count, eps, sized
from bertcli.models.registry import Family
from bertcli.models.rope import LOCAL, LocalConfig
from bertcli.models.static import Embeddings
from bertcli.network import prenorm
from bertcli.network.heads import TokenClassifier
from bertcli.network.module import part, parts
from bertcli.network.prenorm import LastTokenClassifier, NetworkOfNormedStates, QueryKeyNormAttention, RMSNorm
from bertcli.network.rotary import Gated


class EncoderLayer(prenorm.EncoderLayer):
    """X = X + Attention(RMSNorm(X)), then X = X + FeedForward(RMSNorm(X))"""

    attention_norm: RMSNorm = part(features="H")
    attention: QueryKeyNormAttention = part(bias="attention_bias")
    feed_forward_norm: RMSNorm = part(features="H")
    feed_forward: Gated = part(bias=False)


class Encoder(prenorm.Encoder):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: RMSNorm = part(features="H")


class NextToken(eurobert.MaskedLM):
    """x Wᵀ: a logit for every token that may come next"""


class Qwen3(NetworkOfNormedStates):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    lm: NextToken | None = part()
    classifier: LastTokenClassifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends


# What other code calls attention to both sides; transformers reads none of these.
BOTH_WAYS = ("use_bidirectional_attention", "bidirectional_attention", "bidirectional", "is_bidirectional")


class Qwen3Config(LocalConfig):
    """A Qwen3 configuration with config.json's own keys; the defaults are those of Qwen3's code."""

    vocab_size: int = count(151936, "V", needed=True)
    num_key_value_heads: int | None = count(32)
    head_dim: int | None = count(128)
    hidden_act: str = activation("silu")
    rms_norm_eps: float = eps(1e-6)
    max_position_embeddings: int = count(32768, "P")
    attention_bias: bool = False
    use_sliding_window: bool = False
    sliding_window: int = count(4096)
    max_window_layers: int = count(28, least=0)
    is_causal: bool = True
    pad_token_id: int = -1  # none
    tie_word_embeddings: bool = False
    model_type: str = "qwen3"

    title: ClassVar[str] = "Qwen3"
    names: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Drop windows whose size is null, and keys that transformers ignores."""
        causal = data.get("is_causal", True)
        for key in BOTH_WAYS:
            if data.get(key) and causal is not False:
                raise BertcliError(
                    f"{key} is {quoted(data[key])}, but attention is causal unless is_causal is false: set that."
                )
        windows = data.get("use_sliding_window") if data.get("sliding_window", True) is not None else False
        return super().normalized({**data, "use_sliding_window": windows})

    def check(self) -> None:
        super().check()
        if LOCAL in self.layer_types and not self.use_sliding_window:
            raise BertcliError(f"layer_types has '{LOCAL}', but use_sliding_window is false, or the window is null.")

    @property
    def causal(self) -> bool:
        return self.is_causal

    def is_local(self, layer: int) -> bool:
        return self.use_sliding_window and layer >= self.max_window_layers

    @property
    def radius(self) -> int:
        return self.sliding_window - self.is_causal


QUERY_NORMS = "encoder.layers.#.attention.{query,key}_norm.*    layers.#.self_attn.{q,k}_norm.*"
HEADS = """
lm.decoder                               lm_head.weight
{classifier,token_classifier}.output.*   score.*
qa.output.*                              qa_outputs.*
"""
FAMILY = Family(
    types={"qwen3": "Qwen3"},
    config=Qwen3Config,
    network=Qwen3,
    prefixes=("model.", "transformer."),  # the latter of Qwen3ForQuestionAnswering
    names=(eurobert.DECODER, eurobert.FEED_FORWARD_NORM, QUERY_NORMS, HEADS),
    variants={
        "qwen3-embedding-0.6b": sized(
            28, 1024, vocab_size=151669, intermediate_size=3072, num_key_value_heads=8, tie_word_embeddings=True
        ),
    },
    hints={
        "mlm": "Qwen3 is a causal model: it predicts the next word, not one that is masked.",
        "classifier": "Qwen3 ranks without one if modules.json lists LogitScore, as newer revisions of rerankers do.",
    },
)
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Next token
  NextToken.decoder linear | decode | Next-token logits | Decoder
"""
