"""Qwen2 (Yang et al. 2024; gte-Qwen2, mxbai-rerank-v2): Qwen3 without norms of heads, with biases of Q, K and V."""

from typing import ClassVar

from bertcli.models import eurobert, qwen3
from bertcli.models.config import count, sized
from bertcli.models.qwen3 import NextToken, Qwen3Config
from bertcli.models.registry import Family
from bertcli.models.static import Embeddings
from bertcli.network import prenorm, rotary
from bertcli.network.encoder import Linear
from bertcli.network.heads import TokenClassifier
from bertcli.network.module import part, parts
from bertcli.network.prenorm import LastTokenClassifier, NetworkOfNormedStates, RMSNorm
from bertcli.network.rotary import Gated


class SelfAttention(rotary.Attention):
    """Z = concat_h(softmax(R(Q_h) R(K_h)ᵀ / sqrt(D)) V_h) W_Oᵀ; only the output has no bias"""

    output: Linear = part(outputs="H", inputs="Q", bias=False)


class EncoderLayer(prenorm.EncoderLayer):
    """X = X + Attention(RMSNorm(X)), then X = X + FeedForward(RMSNorm(X))"""

    attention_norm: RMSNorm = part(features="H")
    attention: SelfAttention = part()
    feed_forward_norm: RMSNorm = part(features="H")
    feed_forward: Gated = part(bias=False)


class Encoder(prenorm.Encoder):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: RMSNorm = part(features="H")


class Qwen2(NetworkOfNormedStates):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    lm: NextToken | None = part()
    classifier: LastTokenClassifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends


class Qwen2Config(Qwen3Config):
    """A Qwen2 configuration with config.json's own keys; the defaults are those of Qwen2's code."""

    head_dim: int | None = count(None)
    model_type: str = "qwen2"

    title: ClassVar[str] = "Qwen2"


FAMILY = Family(
    types={"qwen2": "Qwen2"},
    config=Qwen2Config,
    network=Qwen2,
    prefixes=qwen3.FAMILY.prefixes,
    names=(eurobert.DECODER, eurobert.FEED_FORWARD_NORM, qwen3.HEADS),
    custom_code=True,  # gte-Qwen2: attention to both sides, which its config.json says, too
    variants={
        "gte-qwen2-1.5b": sized(
            28, 1536, vocab_size=151646, intermediate_size=8960, num_attention_heads=12, num_key_value_heads=2,
            is_causal=False,
        ),
        "mxbai-rerank-base-v2": sized(
            24, 896, intermediate_size=4864, num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True
        ),
    },
    hints={head: text.replace("Qwen3", "Qwen2", 1) for head, text in qwen3.FAMILY.hints.items()},
)  # fmt: skip
