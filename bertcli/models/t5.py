"""The encoder of T5 (Raffel et al. 2020; sentence-t5, gtr-t5, instructor), and those of mT5 and UMT5.

RMS norms before the layers, no biases, scores that are not divided by sqrt(D), and no positions but a bias for how far
apart two tokens are: the same in all layers of T5 and mT5, of each layer in UMT5. Decoders are not read.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.errors import BertcliError
from bertcli.models.config import Config, count, eps, renamed, sized
from bertcli.models.registry import Family
from bertcli.models.static import LONGEST_TEXT, Embeddings
from bertcli.network import encoder, prenorm
from bertcli.network.encoder import Linear, aligned
from bertcli.network.heads import TokenClassifier
from bertcli.network.module import parameter, part, parts, setting
from bertcli.network.ops import multiply, scores
from bertcli.network.position_ops import add_bias, relative_bias
from bertcli.network.prenorm import LayersThenNorm, NetworkOfNormedStates, RMSNorm
from bertcli.tracing.dispatch import Array, Integers

Biases = list[Array]  # of each group of sentences [head, query, key]
Positions = list[tuple[Integers, Integers]]  # of each group's queries and keys
Shared = tuple[Positions, Biases]  # no biases where every layer has its own


class SelfAttention(encoder.SelfAttention[Shared]):
    """Z = concat_h(softmax(Q_h K_hᵀ + bias_h) V_h) W_Oᵀ"""

    query: Linear = part(outputs="Q", inputs="H")
    key: Linear = part(outputs="Q", inputs="H")
    value: Linear = part(outputs="Q", inputs="H")
    output: Linear = part(outputs="H", inputs="Q")
    relative: Array | None = parameter("K A", when="has_own_bias")
    farthest: int = setting("relative_attention_max_distance")
    terms: float = setting("score_scale")  # scores are divided by sqrt(terms · D), which is 1

    def forward(self, x: Array, context: Array, batch: Packed, shared: Shared) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]"""
        positions, _ = shared
        if self.relative is not None:
            shared = positions, [relative_bias(self.relative, *pair, farthest=self.farthest) for pair in positions]
        return super().forward(x, context, batch, shared)

    def scores(self, block: AttentionBlock, q: Array, k: Array, shared: Shared) -> Array:
        """Q_h K_hᵀ, and for each group of sentences a bias [head, query, key]"""
        _, biases = shared
        x = scores(block.query_heads(q), block.key_heads(k), terms=self.terms)
        return add_bias(x, biases[block.number][block.heads, block.queries, block.keys])


class FeedForward(encoder.FeedForward):
    """act(x W_1ᵀ) W_2ᵀ, or in newer models (act(x W_1ᵀ) · x W_gᵀ) W_2ᵀ"""

    gate: Linear | None = part(when="is_gated", outputs="F", inputs="H")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        inner = self.intermediate(x, activation=self.activation)
        return self.output(inner if self.gate is None else multiply(self.gate(x), inner))


class EncoderLayer(prenorm.EncoderLayer):
    """X = X + Attention(RMSNorm(X)), then X = X + FeedForward(RMSNorm(X))"""

    attention_norm: RMSNorm = part(features="H")
    attention: SelfAttention = part(bias=False)
    feed_forward_norm: RMSNorm = part(features="H")
    feed_forward: FeedForward = part(bias=False)


class Encoder(LayersThenNorm[Shared]):
    """L encoder layers, one after the other, then a norm; in T5 and mT5 all add the same bias to their scores"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: RMSNorm = part(features="H")
    relative: Array | None = parameter("K A", when="has_shared_bias")
    farthest: int = setting("relative_attention_max_distance")

    def layer_inputs(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Shared]:
        """The batch, and for each group of its sentences positions, and the bias of every query and key."""
        batch, queries = aligned(batch, rows)
        positions = [group.positions(queries, batch.positions) for group in batch.groups]
        if self.relative is None:
            return batch, (positions, [])
        return batch, (positions, [relative_bias(self.relative, *pair, farthest=self.farthest) for pair in positions])


class T5(NetworkOfNormedStates):
    """Token ids to hidden states, with a head to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    token_classifier: TokenClassifier | None = part()


class T5Config(Config):
    """A T5, mT5 or UMT5 configuration with config.json's own keys."""

    vocab_size: int = count(32128, "V", needed=True)
    head_dim: int = count(64)
    rms_norm_eps: float = eps(1e-6)
    # Below 4 buckets no distance has its own.
    relative_attention_num_buckets: int = count(32, "K", least=4)
    relative_attention_max_distance: int = count(128, least=2, most=LONGEST_TEXT)
    is_gated: bool = False
    model_type: str = "t5"

    absolute: ClassVar[bool] = False
    title: ClassVar[str] = "T5"
    names: ClassVar[Mapping[str, str]] = {
        "d_model": "hidden_size", "d_kv": "head_dim", "d_ff": "intermediate_size", "num_layers": "num_hidden_layers",
        "num_heads": "num_attention_heads", "layer_norm_epsilon": "rms_norm_eps",
    }  # fmt: skip

    def check(self) -> None:
        farthest = self.relative_attention_max_distance
        # A quarter of the buckets have one distance each, and all of these are below the farthest.
        most = 4 * farthest - 1
        if self.relative_attention_num_buckets > most:
            raise BertcliError(
                f"relative_attention_num_buckets is {self.relative_attention_num_buckets}; with a "
                f"relative_attention_max_distance of {farthest} it must be at most {most}."
            )

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Divide feed_forward_proj ("relu", "gated-gelu") in two; leave out the keys of the decoder."""
        values = renamed(data, cls.names)
        projection = values.get("feed_forward_proj", "relu" if values.get("model_type") == "t5" else "gated-gelu")
        *before, activation = projection.split("-") if isinstance(projection, str) else [projection]
        if before not in ([], ["gated"]):
            # No activation has this name, so that the check of hidden_act refuses it.
            activation = projection
        if projection == "gated-gelu":
            # As transformers reads it: GELU by tanh, whatever the name says.
            activation = "gelu_new"
        return {**values, "hidden_act": activation, "is_gated": bool(before), "is_encoder_decoder": False}

    @cached_property
    def sizes(self) -> dict[str, int]:
        sizes = super().sizes
        return sizes | {"D": self.head_dim, "Q": sizes["A"] * self.head_dim}

    @property
    def score_scale(self) -> float:
        """Scores are not divided by sqrt(D)."""
        return 1 / self.head_dim

    @property
    def has_own_bias(self) -> bool:
        """True if every layer has its own bias of distances (UMT5)."""
        return self.model_type == "umt5"

    @property
    def has_shared_bias(self) -> bool:
        """True if all layers share one bias of distances (T5, mT5)."""
        return not self.has_own_bias

    @property
    def max_tokens(self) -> int:
        return LONGEST_TEXT


# The table of tokens as transformers reads it. MADLAD has only the decoder's, which was tied to the encoder's.
NAMES = """
embeddings.token                              encoder.embed_tokens.weight
                                              shared.weight
                                              decoder.embed_tokens.weight
encoder.relative                              encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight
encoder.layers.#.attention.relative           encoder.block.#.layer.0.SelfAttention.relative_attention_bias.weight
encoder.layers.#.attention_norm.*             encoder.block.#.layer.0.layer_norm.*
encoder.layers.#.attention.{query,key}.*      encoder.block.#.layer.0.SelfAttention.{q,k}.*
encoder.layers.#.attention.{value,output}.*   encoder.block.#.layer.0.SelfAttention.{v,o}.*
encoder.layers.#.feed_forward_norm.*          encoder.block.#.layer.1.layer_norm.*
encoder.layers.#.feed_forward.intermediate.*  encoder.block.#.layer.1.DenseReluDense.wi.*
                                              encoder.block.#.layer.1.DenseReluDense.wi_0.*
encoder.layers.#.feed_forward.gate.*          encoder.block.#.layer.1.DenseReluDense.wi_1.*
encoder.layers.#.feed_forward.output.*        encoder.block.#.layer.1.DenseReluDense.wo.*
encoder.norm.*                                encoder.final_layer_norm.*
token_classifier.output.*                     classifier.*
"""
GATED: dict[str, Any] = {"hidden_act": "gelu_new", "is_gated": True}
FAMILY = Family(
    types={"t5": "T5", "mt5": "MT5", "umt5": "UMT5"},
    config=T5Config,
    network=T5,
    prefixes=("transformer.",),  # of a token classifier
    names=(NAMES,),
    ignored_prefixes=("decoder.", "lm_head.", "shared."),
    without_lora=("shared.weight", "decoder.embed_tokens.weight"),
    without_copies=("shared.weight", "decoder.embed_tokens.weight"),
    hints={"mlm": "T5 has no masks to fill: bertcli runs its encoder, for encode, similarity and search."},
    variants={
        "t5-small": sized(6, 512, intermediate_size=2048),
        "sentence-t5-base": sized(12, 768),
        "sentence-t5-large": sized(24, 1024),
        "mt5-small": sized(
            8, 512, vocab_size=250112, num_attention_heads=6, intermediate_size=1024, model_type="mt5", **GATED
        ),
        "umt5-small": sized(
            8, 512, vocab_size=256384, num_attention_heads=6, intermediate_size=1024, model_type="umt5", **GATED
        ),
    },
)
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Relative positions
  Encoder.relative relative_bias       | bias of distances     | Bias                | T
1 Multi-head attention
  SelfAttention.relative relative_bias | bias of distances     | Bias                | T
  SelfAttention.value add_bias         | b) bias of distances  | Attention scores
3 Feed-forward
  FeedForward.gate linear              | linear                | Gate                | W_g
  FeedForward.gate multiply            | gate                  | Gated intermediate
"""
