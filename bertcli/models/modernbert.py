"""ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward layers, norms before them, no biases.

Most layers see only tokens near by: with local_attention 128, those at most 64 tokens away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bertcli.engine.array import Array, Integers
from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.errors import BertcliError, shown
from bertcli.models.config import Config, activation, choice, count, eps, layers, number, texts
from bertcli.models.registry import Family
from bertcli.network import encoder
from bertcli.network.encoder import aligned
from bertcli.network.module import Module, parameter, part, parts, setting
from bertcli.network.network import Network
from bertcli.network.ops import (
    add,
    each,
    embed,
    empty_like,
    linear,
    mean_tokens,
    mix,
    multiply,
    new_norm,
    rotate,
    scores,
    softmax,
    within,
)


@dataclass(frozen=True, eq=False)
class Linear(Module):
    """y = x Wᵀ"""

    weight: Array = parameter("outputs inputs")

    def forward(self, x: Array, activation: str | None = None) -> Array:
        return linear(x, self.weight, activation=activation)


@dataclass(frozen=True, eq=False)
class LayerNorm(Module):
    """y = (x - mean) / sqrt(variance + eps) · weight, over the hidden axis; x stays as it is"""

    weight: Array = parameter("features")
    eps: float = setting("norm_eps")

    def forward(self, x: Array) -> Array:
        return new_norm(x, self.weight, eps=self.eps)


@dataclass(frozen=True, eq=False)
class Embeddings(Module):
    """X = LayerNorm(E_tok[ids])"""

    token: Array = parameter("V H")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        return self.norm(embed(self.token, batch.ids))


@dataclass(frozen=True, eq=False)
class SelfAttention(Module):
    """Z = concat_h(softmax(R(Q_h) R(K_h)ᵀ / sqrt(D)) V_h) W_Oᵀ, R the rotation by position"""

    query: Linear = part(outputs="H", inputs="H")
    key: Linear = part(outputs="H", inputs="H")
    value: Linear = part(outputs="H", inputs="H")
    output: Linear = part(outputs="H", inputs="H")
    heads: int = setting("num_attention_heads")
    theta: float = setting("thetas")
    window: int | None = setting("windows")  # how far a layer sees; None: as far as the text goes

    def forward(self, x: Array, context: Array, batch: Packed, positions: Integers) -> Array:
        """x [query, hidden] at these positions, context [key, hidden] -> [query, hidden]"""
        q = rotate(self.query(x), positions, heads=self.heads, theta=self.theta)
        k = rotate(self.key(context), batch.positions, heads=self.heads, theta=self.theta)
        v = self.value(context)
        z = empty_like(q)

        def attend(block: AttentionBlock) -> None:
            weights = scores(block.query_heads(q), block.key_heads(k))  # [batch, head, query, key]
            if self.window is not None:
                weights = within(weights, *block.group.positions(positions, batch.positions), window=self.window)
            mix(softmax(weights), block.key_heads(v), into=block.query_heads(z))

        each(attend, batch.blocks(self.heads, self.window, positions))
        return self.output(z)


@dataclass(frozen=True, eq=False)
class FeedForward(Module):
    """(act(x W_1ᵀ) · x W_gᵀ) W_2ᵀ"""

    intermediate: Linear = part(outputs="F", inputs="H")
    gate: Linear = part(outputs="F", inputs="H")
    output: Linear = part(outputs="H", inputs="F")
    activation: str = setting("hidden_activation")

    def forward(self, x: Array) -> Array:
        return self.output(multiply(self.gate(x), self.intermediate(x, activation=self.activation)))


@dataclass(frozen=True, eq=False)
class EncoderLayer(Module):
    """X = X + Attention(LayerNorm(X)), then X = X + FeedForward(LayerNorm(X)); the first layer has no first norm"""

    attention_norm: LayerNorm | None = part(when="attention_norms", features="H")
    attention: SelfAttention = part()
    feed_forward_norm: LayerNorm = part(features="H")
    feed_forward: FeedForward = part()

    def forward(self, x: Array, context: Array, batch: Packed, positions: Integers) -> Array:
        """x [query, hidden] at these positions, context [key, hidden] -> [query, hidden]"""
        keys = context if self.attention_norm is None else self.attention_norm(context)
        queries = keys if x is context else x if self.attention_norm is None else self.attention_norm(x)
        x = add(x, self.attention(queries, keys, batch, positions))
        return add(x, self.feed_forward(self.feed_forward_norm(x)))


@dataclass(frozen=True, eq=False)
class Encoder(encoder.Layers[Integers]):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: LayerNorm = part(features="H")

    def forward(self, x: Array, batch: Packed, rows: Integers | None = None) -> Array:
        """The last layer's output [token, hidden], normed; with `rows` (ascending) only those: [row, hidden]."""
        return self.norm(super().forward(x, batch, rows))

    def states(self, x: Array, batch: Packed) -> Iterator[Array]:
        """The embeddings' output, then each layer's, the last one normed."""
        for n, state in enumerate(super().states(x, batch)):
            yield self.norm(state) if n == len(self.layers) else state

    def prepared(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Integers]:
        """The batch with these rows (None: all) as queries, and their positions."""
        return aligned(batch, rows)


@dataclass(frozen=True, eq=False)
class Transform(Module):
    """P(x) = LayerNorm(act(x Wᵀ)), with which every head begins"""

    dense: Linear = part(outputs="H", inputs="H")
    norm: LayerNorm = part(features="H")
    activation: str = setting("classifier_activation")

    def forward(self, x: Array) -> Array:
        return self.norm(self.dense(x, activation=self.activation))


@dataclass(frozen=True, eq=False)
class MaskedLM(Module):
    """P(x) E_tokᵀ + bias"""

    transform: Transform = part()
    decoder: Array = parameter("V H", tied="embeddings.token")
    bias: Array = parameter("V")

    def forward(self, x: Array) -> Array:
        """Hidden states [token, hidden] -> logits [token, vocabulary]"""
        return linear(self.transform(x), self.decoder, self.bias)


@dataclass(frozen=True, eq=False)
class TokenClassifier(Module):
    """P(x) W_cᵀ + b_c: one logit per label from every hidden state"""

    transform: Transform = part()
    output: encoder.Linear = part(outputs="C", inputs="H")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> logits [token, label]"""
        return self.output(self.transform(x))


@dataclass(frozen=True, eq=False)
class QuestionAnswering(TokenClassifier):
    """The same with two logits: 0 that an answer starts here, 1 that it ends here"""

    output: encoder.Linear = part(outputs="2", inputs="H")


@dataclass(frozen=True, eq=False)
class Classifier(Module):
    """P(X[CLS]) W_cᵀ + b_c, or the same of the mean of all tokens"""

    transform: Transform = part()
    output: encoder.Linear = part(outputs="C", inputs="H")
    pooling: str = setting("classifier_pooling")

    def forward(self, pooled: Array) -> Array:
        """First rows, or means [batch, hidden] -> logits [batch, label]"""
        return self.output(self.transform(pooled))


@dataclass(frozen=True, eq=False)
class MultipleChoice(Classifier):
    """The same with one logit: how well this choice fits"""

    output: encoder.Linear = part(outputs="1", inputs="H")


@dataclass(frozen=True, eq=False)
class ModernBert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: QuestionAnswering | None = part()
    multiple_choice: MultipleChoice | None = part()

    def reads(self, head: str, batch: Packed) -> Integers | None:
        """The packed rows of the hidden states that a head needs; None for all."""
        return None if self._takes_means(head) else super().reads(head, batch)

    def predict(self, head: str, hidden: Array, batch: Packed) -> Array:
        """A head's logits from the hidden states that it reads."""
        return super().predict(head, mean_tokens(hidden, batch.first) if self._takes_means(head) else hidden, batch)

    def finish(self, state: Array) -> Array:
        """A layer's output as heads read it: normed."""
        return self.encoder.norm(state)

    def _takes_means(self, head: str) -> bool:
        found = getattr(self, head)
        return isinstance(found, Classifier) and found.pooling == "mean"


GLOBAL, LOCAL = "full_attention", "sliding_attention"  # in layer_types and rope_parameters


@dataclass(frozen=True)
class ModernBertConfig(Config):
    """A ModernBERT configuration with config.json's own keys; the defaults are those of ModernBERT-base."""

    vocab_size: int = count(50368, "V", needed=True)
    hidden_size: int = count(768, "H", needed=True)
    num_hidden_layers: int = layers(22)
    num_attention_heads: int = count(12, "A", needed=True)
    intermediate_size: int = count(1152, "F", needed=True)
    hidden_activation: str = activation()
    norm_eps: float = eps(1e-5)
    max_position_embeddings: int = count(8192, "P")
    local_attention: int = count(128)
    global_attn_every_n_layers: int = count(3)
    global_rope_theta: float = number(160000.0, 2, 1e12)
    local_rope_theta: float = number(10000.0, 2, 1e12)
    layer_types: tuple[str, ...] = ()
    classifier_pooling: str = choice("cls", "mean")
    classifier_activation: str = activation()
    norm_bias: bool = choice(False)
    attention_bias: bool = choice(False)
    mlp_bias: bool = choice(False)
    classifier_bias: bool = choice(False)
    decoder_bias: bool = choice(True)
    pad_token_id: int = field(default=50283, kw_only=True)
    model_type: str = field(default="modernbert", kw_only=True)

    title: ClassVar[str] = "ModernBERT"
    absolute: ClassVar[bool] = False  # files say "absolute" or "sans_pos", and mean neither

    @classmethod
    def prepared(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """With newer files' layer_types and rope_parameters, which override the older keys."""
        found = dict(data) | {"layer_types": texts(data, "layer_types")}
        _check_rope("rope_scaling", data.get("rope_scaling"))
        ropes = data.get("rope_parameters") or {}
        if not isinstance(ropes, dict):
            raise BertcliError(f"rope_parameters is {shown(ropes)}, which is not an object.")
        for kind, key in ((GLOBAL, "global_rope_theta"), (LOCAL, "local_rope_theta")):
            rope = ropes.get(kind) or {}
            _check_rope(f"rope_parameters.{kind}", rope)
            if rope.get("rope_theta") is not None:
                found[key] = rope["rope_theta"]
        if "local_rope_theta" in found and found["local_rope_theta"] is None:  # not the default: that of global layers
            found["local_rope_theta"] = found.get("global_rope_theta", cls.global_rope_theta)
        return found

    def check(self) -> None:
        if self.sizes["D"] % 2:
            raise BertcliError(f"A head has {self.sizes['D']} numbers; rotary positions need an even number.")
        if self.layer_types and len(self.layer_types) != self.num_hidden_layers:
            raise BertcliError(f"layer_types names {len(self.layer_types)} of {self.num_hidden_layers} layers.")
        for kind in self.layer_types:
            if kind not in (GLOBAL, LOCAL):
                raise BertcliError(f"layer_types has {shown(kind)}; known are '{GLOBAL}' and '{LOCAL}'.")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of every layer, whether its attention is global or local."""
        every = self.global_attn_every_n_layers
        return self.layer_types or tuple(LOCAL if n % every else GLOBAL for n in range(self.num_hidden_layers))

    @property
    def windows(self) -> tuple[int | None, ...]:
        """Of every layer, how far it sees."""
        return tuple(self.local_attention // 2 if kind == LOCAL else None for kind in self.kinds)

    @property
    def thetas(self) -> tuple[float, ...]:
        """Of every layer, what its rotations are made from."""
        return tuple(self.local_rope_theta if kind == LOCAL else self.global_rope_theta for kind in self.kinds)

    @property
    def attention_norms(self) -> tuple[bool, ...]:
        """Of every layer, whether a norm comes before its attention."""
        return tuple(n > 0 for n in range(self.num_hidden_layers))


def _check_rope(key: str, rope: Any) -> None:
    """Refuse anything but plain rotary positions."""
    if not isinstance(rope or {}, dict):
        raise BertcliError(f"{key} is {shown(rope)}, which is not an object.")
    kind = (rope or {}).get("rope_type", (rope or {}).get("type", "default"))
    if kind != "default":
        raise BertcliError(f"{key} has rope_type {shown(kind)}; bertcli runs ModernBERT with 'default' only.")


LAYER = r"encoder\.layers\.(\d+)\."
WORDS = """
Embeddings
  Embeddings.token embed                  | token embedding       | Token ids, E_tok -> Token embeddings
  Embeddings.norm new_norm                | layer normalization   | Token embeddings -> Embedding output
Rows asked for
  Encoder.layers pick                     | rows                  | Encoder input, Rows -> Rows asked for
1 Multi-head attention
  EncoderLayer.attention_norm new_norm    | layer normalization   | Encoder input -> Norm 1 output
  SelfAttention.query linear              | linear Q              | Norm 1 output, W_Q -> Query (Q)
  SelfAttention.query rotate              | rotary positions      | Query (Q), Positions -> Rotated query
  SelfAttention.key linear                | linear K              | Norm 1 output, W_K -> Key (K)
  SelfAttention.key rotate                | rotary positions      | Key (K), Positions -> Rotated key
  SelfAttention.value linear              | linear V              | Norm 1 output, W_V -> Value (V)
  SelfAttention.value scores              | scaled dot product    | Rotated query, Rotated keyᵀ -> Attention scores
  SelfAttention.value within | local attention | Attention scores, Query positions, Key positions -> Local scores
  SelfAttention.value softmax             | softmax               | Attention scores -> Attention weights
  SelfAttention.value mix                 | weighted sum          | Attention weights, Value (V) -> Heads output
  SelfAttention.output linear             | concat and project    | Heads output, W_O -> Attention output
2 Add
  EncoderLayer.attention add              | residual              | Encoder input, Attention output -> Sub-layer sum
3 Gated feed-forward
  EncoderLayer.feed_forward_norm new_norm | layer normalization   | Sub-layer sum -> Norm 2 output
  FeedForward.gate linear                 | linear                | Norm 2 output, W_g -> Gate
  FeedForward.intermediate linear         | linear 1 + {act}      | Norm 2 output, W_1 -> Intermediate
  FeedForward.intermediate multiply       | gate                  | Gate, Intermediate -> Gated intermediate
  FeedForward.output linear               | linear 2              | Gated intermediate, W_2 -> FFN output
4 Add
  EncoderLayer.feed_forward add           | residual              | Sub-layer sum, FFN output -> Encoder layer output
Encoder output
  Encoder.norm new_norm                   | layer normalization   | Encoder layer output -> Encoder output
Head
  Transform.dense linear                  | linear + {act}        | Encoder output, W -> Transform
  Transform.norm new_norm                 | layer normalization   | Transform -> Transform norm
Masked language model
  MaskedLM.decoder linear                 | decode                | Transform norm, Decoder -> Vocabulary logits
Classifier
  Classifier.output linear                | linear                | Transform norm, W_c -> Label logits
Token classifier
  TokenClassifier.output linear           | linear                | Transform norm, W_c -> Label logits
Question answering
  QuestionAnswering.output linear         | linear                | Transform norm, W_qa -> Start and end logits
Multiple choice
  MultipleChoice.output linear            | linear                | Transform norm, W_m -> Choice logit
"""

FAMILY = Family(
    types={"modernbert": "ModernBert"},
    config=ModernBertConfig,
    network=ModernBert,
    prefix="model.",
    names=(
        (r"embeddings\.token", "embeddings.tok_embeddings.weight"),
        (r"embeddings\.norm\.(\w+)", r"embeddings.norm.\1"),
        (LAYER + r"attention_norm\.(\w+)", r"layers.\1.attn_norm.\2"),
        (LAYER + r"attention\.query\.(\w+)", r"layers.\1.attn.Wqkv.\2[0/3]"),
        (LAYER + r"attention\.key\.(\w+)", r"layers.\1.attn.Wqkv.\2[1/3]"),
        (LAYER + r"attention\.value\.(\w+)", r"layers.\1.attn.Wqkv.\2[2/3]"),
        (LAYER + r"attention\.output\.(\w+)", r"layers.\1.attn.Wo.\2"),
        (LAYER + r"feed_forward_norm\.(\w+)", r"layers.\1.mlp_norm.\2"),
        (LAYER + r"feed_forward\.intermediate\.(\w+)", r"layers.\1.mlp.Wi.\2[0/2]"),
        (LAYER + r"feed_forward\.gate\.(\w+)", r"layers.\1.mlp.Wi.\2[1/2]"),
        (LAYER + r"feed_forward\.output\.(\w+)", r"layers.\1.mlp.Wo.\2"),
        (r"encoder\.norm\.(\w+)", r"final_norm.\1"),
        (r"\w+\.transform\.(dense|norm)\.(\w+)", r"head.\1.\2"),
        (r"mlm\.decoder", "decoder.weight"),
        (r"mlm\.bias", "decoder.bias"),
        (r"(?:classifier|token_classifier|qa|multiple_choice)\.output\.(\w+)", r"classifier.\1"),
    ),
    variants={
        "modernbert-base": ModernBertConfig(),
        "modernbert-large": ModernBertConfig(
            hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, intermediate_size=2624
        ),
    },
)
