"""What newer families are made of: rotary positions (Su et al. 2021), gated feed-forward layers (Shazeer 2020), and
norms before attention and feed-forward.

A key head may serve several query heads (Ainslie et al. 2023): there are M / D of them, with D numbers each.
"""

from collections.abc import Callable, Iterator
from typing import Any

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.engine.positions import Rates
from bertcli.engine.seam import Array, Integers, untraced
from bertcli.network import encoder
from bertcli.network.encoder import LayerNorm, Linear, aligned
from bertcli.network.heads import Network
from bertcli.network.module import Module, parameter, part, setting
from bertcli.network.ops import (
    add,
    attend,
    each,
    empty_like,
    last_tokens,
    mean_tokens,
    multiply,
    new_norm,
    repeat_heads,
    rms_norm,
    rotate,
    scores,
    softmax,
    within,
)


class NewNorm(LayerNorm):
    """BERT's LayerNorm for an x that stays as it is"""

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return new_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(Module):
    """y = x / sqrt(mean of squares + eps) · weight, over the hidden axis (Zhang & Sennrich 2019)"""

    weight: Array = parameter("features")
    eps: float = setting("rms_norm_eps")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return rms_norm(x, self.weight, eps=self.eps)


class Attention(encoder.SelfAttention[Integers]):
    """Z = concat_h(softmax(R(Q_h) R(K_h)ᵀ / sqrt(D)) V_h) W_Oᵀ, R the rotation by position"""

    query: Linear = part(outputs="Q", inputs="H")
    key: Linear = part(outputs="M", inputs="H")
    value: Linear = part(outputs="M", inputs="H")
    output: Linear = part(outputs="H", inputs="Q")
    key_heads: int = setting("key_heads")
    rates: Rates = setting("rates")  # how fast the pairs of a head turn
    stretched: Callable[[int], Rates] | None = setting("stretched")  # the same of a text of so many tokens
    window: int | None = setting("windows")  # how far a layer sees; None: as far as the text goes
    terms: float = setting("score_terms")  # scores are divided by sqrt(terms · D)

    def forward(self, x: Array, context: Array, batch: Packed, positions: Integers) -> Array:
        """x [query, hidden] at these positions, context [key, hidden] -> [query, hidden]"""
        own_q, own_k = self.own_rates(batch)
        q = rotate(self.queries(x), positions, heads=self.heads, rates=self.rates, own=own_q)
        k = rotate(self.keys(context), batch.positions, heads=self.key_heads, rates=self.rates, own=own_k)
        v = self.value(context)
        if self.key_heads < self.heads:
            k, v = (repeat_heads(narrow, q, heads=self.key_heads, of=self.heads) for narrow in (k, v))
        z = empty_like(q)

        def compute(block: AttentionBlock) -> None:
            weights = scores(block.query_heads(q), block.key_heads(k), terms=self.terms)  # [batch, head, query, key]
            if self.window is not None:
                weights = within(weights, *block.group.positions(positions, batch.positions), window=self.window)
            attend(softmax(weights), block.key_heads(v), into=block.query_heads(z))

        each(compute, batch.blocks(self.heads, self.window, positions))
        return self.output(z)

    def own_rates(self, batch: Packed) -> tuple[tuple[tuple[slice, Rates], ...], ...]:
        """The rates of each text's queries, and of its keys, if texts turn by their lengths."""
        if self.stretched is None:
            return (), ()
        positions = untraced(batch.positions)
        rates = [self.stretched(int(positions[group.keys].max()) + 1) for group in batch.groups]
        queries, keys = [group.queries for group in batch.groups], [group.keys for group in batch.groups]
        return tuple(zip(queries, rates, strict=True)), tuple(zip(keys, rates, strict=True))

    def queries(self, x: Array) -> Array:
        """[query, hidden] -> [query, head·size], before the rotation"""
        return self.query(x)

    def keys(self, x: Array) -> Array:
        """[key, hidden] -> [key, key head·size], before the rotation"""
        return self.key(x)


class Gated(encoder.FeedForward):
    """(act(x W_1ᵀ) · x W_gᵀ) W_2ᵀ"""

    intermediate: Linear = part(outputs="F", inputs="H", bias=False)
    gate: Linear = part(outputs="F", inputs="H", bias=False)
    output: Linear = part(outputs="H", inputs="F")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return self.output(multiply(self.gate(x), self.intermediate(x, activation=self.activation)))


class Layers(encoder.Layers[Integers]):
    """Layers whose attention looks at positions"""

    def prepared(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Integers]:
        """The batch with these rows (None: all) as queries, and their positions."""
        return aligned(batch, rows)


class EncoderLayer(Module, abstract=True):
    """X = X + Attention(Norm(X)), then X = X + FeedForward(Norm(X)); a first layer may have no first norm"""

    attention_norm: Any
    attention: Any
    feed_forward_norm: Any
    feed_forward: Any

    def forward(self, x: Array, context: Array, batch: Packed, positions: Integers) -> Array:
        """x [query, hidden] at these positions, context [key, hidden] -> [query, hidden]"""
        keys = context if self.attention_norm is None else self.attention_norm(context)
        queries = keys if x is context else x if self.attention_norm is None else self.attention_norm(x)
        x = add(x, self.attention(queries, keys, batch, positions))
        return add(x, self.feed_forward(self.feed_forward_norm(x)))


class Encoder(Layers, abstract=True):
    """L encoder layers, one after the other, then a norm"""

    norm: NewNorm | RMSNorm

    def forward(self, x: Array, batch: Packed, rows: Integers | None = None) -> Array:
        """The last layer's output [token, hidden], normed; with `rows` (ascending) only those: [row, hidden]."""
        return self.norm(super().forward(x, batch, rows))

    def states(self, x: Array, batch: Packed) -> Iterator[Array]:
        """The embeddings' output, then each layer's, the last one normed."""
        for n, state in enumerate(super().states(x, batch)):
            yield self.norm(state) if n == len(self.layers) else state


class NormedNetwork(Network):
    """A network whose encoder ends in a norm, with a classifier of the first token, of the last, of the mean of all
    tokens, or of every token, whose logits are then averaged ("late")"""

    def final_norm(self, state: Array) -> Array:
        """A layer's output as heads read it: normed."""
        normed: Array = self.encoder.norm(state)
        return normed

    def input_rows(self, head: str, batch: Packed) -> Integers | None:
        """The packed rows of the hidden states that a head needs; None for all."""
        return None if self._pooling(head) in ("last", "mean", "late") else super().input_rows(head, batch)

    def predict(self, head: str, hidden: Array, batch: Packed) -> Array:
        """A head's logits from the hidden states that it reads."""
        pooling = self._pooling(head)
        if pooling in ("last", "mean"):
            hidden = (last_tokens if pooling == "last" else mean_tokens)(hidden, batch.first)
        logits = super().predict(head, hidden, batch)
        return mean_tokens(logits, batch.first) if pooling == "late" else logits

    def _pooling(self, head: str) -> str | None:
        return getattr(getattr(self, head), "pooling", None)


WORDS = """
1 Multi-head attention
  EncoderLayer.attention_norm rms_norm    | RMS normalization   | Attention input
  EncoderLayer.attention_norm new_norm    | layer normalization | Attention input
  Attention.query linear                  | linear Q            | Query (Q)        | W_Q
  Attention.query rotate                  | rotary positions    | Rotated query
  Attention.key linear                    | linear K            | Key (K)          | W_K
  Attention.key rotate                    | rotary positions    | Rotated key
  Attention.value linear                  | linear V            | Value (V)        | W_V
  Attention.value repeat_heads            | shared heads        | Keys of all heads
  Attention.value repeat_heads of Value (V) | shared heads      | Values of all heads
  Attention.value scores                  | scaled dot product  | Attention scores
  Attention.value within                  | local attention     | Local scores
  Attention.value softmax                 | softmax             | Attention weights
  Attention.value attend                  | weighted sum        | Heads output
  Attention.output linear                 | concat and project  | Attention output | W_O
2 Add
  EncoderLayer.attention add              | residual            | Sub-layer sum
3 Gated feed-forward
  EncoderLayer.feed_forward_norm rms_norm | RMS normalization   | Feed-forward input
  EncoderLayer.feed_forward_norm new_norm | layer normalization | Feed-forward input
  Gated.gate linear                       | linear              | Gate             | W_g
  Gated.intermediate linear               | linear 1 + {act}    | Intermediate     | W_1
  Gated.intermediate multiply             | gate                | Gated intermediate
  Gated.output linear                     | linear 2            | FFN output       | W_2
4 Add
  EncoderLayer.feed_forward add           | residual            | Encoder layer output
Encoder output
  Encoder.norm rms_norm                   | RMS normalization   | Encoder output
  Encoder.norm new_norm                   | layer normalization | Encoder output
"""
