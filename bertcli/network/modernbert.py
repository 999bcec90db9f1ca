"""ModernBERT (Warner et al. 2024): rotary positions, gated feed-forward layers, norms before them, no biases.

Most layers see only tokens near by: with local_attention 128, those at most 64 tokens away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bertcli.engine.array import Array, Integers
from bertcli.engine.packing import AttentionBlock, Packed
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
class Encoder(encoder.Layers):
    """L encoder layers, one after the other, then a norm"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    norm: LayerNorm = part(features="H")

    def forward(self, x: Array, batch: Packed, rows: Integers | None = None) -> Array:
        """The last layer's output [token, hidden], normed; with `rows` (ascending) only those: [row, hidden]."""
        return self.norm(super().forward(x, batch, rows))

    def states(self, x: Array, batch: Packed) -> Iterator[Array]:
        """The embeddings' output, then each layer's, the last one normed."""
        for number, state in enumerate(super().states(x, batch)):
            yield self.norm(state) if number == len(self.layers) else state

    def prepared(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Any]:
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
