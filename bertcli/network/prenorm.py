"""Pre-norm layers (Xiong et al. 2020) with rotary positions: decoders, and encoders made from them.

The last layer's output goes through a norm as well. Families differ in their norms.
"""

from collections.abc import Iterator
from typing import Any

from bertcli.engine.packing import Packed
from bertcli.network import rotary
from bertcli.network.encoder import LayerNorm, Layers, Linear, S
from bertcli.network.heads import LinearPrediction, Network
from bertcli.network.module import Module, fixed, parameter, part, setting
from bertcli.network.ops import add, last_tokens, mean_tokens, new_norm, rms_norm
from bertcli.network.rotary import Positions
from bertcli.tracing.dispatch import Array, Integers


class NormKeepingInput(LayerNorm):
    """BERT's LayerNorm for an x that stays as it is"""

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return new_norm(x, self.weight, self.bias, eps=self.eps)


class RMSNorm(Module):
    """y = x / sqrt(mean of squares + eps) · weight, over the hidden axis or a head's (Zhang & Sennrich 2019)"""

    weight: Array = parameter("features")
    eps: float = setting("rms_norm_eps")

    def forward(self, x: Array, heads: int = 1) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return rms_norm(x, self.weight, eps=self.eps, heads=heads)


class QueryKeyNormAttention(rotary.Attention):
    """With a norm of every head of queries and of keys before the rotation"""

    query_norm: RMSNorm = part(features="D")
    key_norm: RMSNorm = part(features="D")

    def queries(self, x: Array) -> Array:
        return self.query_norm(super().queries(x), heads=self.heads)

    def keys(self, x: Array) -> Array:
        return self.key_norm(super().keys(x), heads=self.key_heads)


class EncoderLayer(Module, abstract=True):
    """X = X + Attention(Norm(X)), then X = X + FeedForward(Norm(X)); a first layer may have no first norm"""

    attention_norm: Any
    attention: Any
    feed_forward_norm: Any
    feed_forward: Any

    def forward(self, x: Array, context: Array, batch: Packed, shared: Any) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]; `shared` is what attention needs beside them"""
        if self.attention_norm is None:
            queries, keys = x, context
        else:
            keys = self.attention_norm(context)
            # In all layers but a last one with few rows both are one array: norm it once.
            queries = keys if x is context else self.attention_norm(x)
        x = add(x, self.attention(queries, keys, batch, shared))
        return add(x, self.feed_forward(self.feed_forward_norm(x)))


class LayersThenNorm(Layers[S], abstract=True):
    """Layer after layer, then a norm"""

    norm: NormKeepingInput | RMSNorm

    def forward(self, x: Array, batch: Packed, rows: Integers | None = None) -> Array:
        """The last layer's output [token, hidden], normed; with `rows` (ascending) only those: [row, hidden]."""
        return self.norm(super().forward(x, batch, rows))

    def states(self, x: Array, batch: Packed) -> Iterator[Array]:
        """The embeddings' output, then each layer's, the last one normed."""
        for n, state in enumerate(super().states(x, batch)):
            yield self.norm(state) if n == len(self.layers) else state


class Encoder(rotary.Layers, LayersThenNorm[Positions], abstract=True):
    """L encoder layers that look at positions, one after the other, then a norm"""


class NetworkOfNormedStates(Network):
    """A network whose encoder ends in a norm; a head's `pooling` chooses the states that it reads.

    "last": the last token. "mean": the mean of all tokens. "late": every token, and then the mean of the logits.
    Anything else: the first token.
    """

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
        if pooling == "last":
            hidden = last_tokens(hidden, batch.ids, batch.first, padding=getattr(self, head).padding)
        elif pooling == "mean":
            hidden = mean_tokens(hidden, batch.first)
        logits = super().predict(head, hidden, batch)
        return mean_tokens(logits, batch.first) if pooling == "late" else logits

    def _pooling(self, head: str) -> str | None:
        return getattr(getattr(self, head), "pooling", None)


class LastTokenClassifier(LinearPrediction):
    """X[last] W_cᵀ: one logit per label from the last token that is not padding [batch, label]"""

    output: Linear = part(outputs="C", inputs="H", bias=False)
    pooling: str = fixed("last")
    padding: int = setting("pad_token_id")


# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
1 Multi-head attention
  EncoderLayer.attention_norm rms_norm    | RMS normalization   | Attention input
  EncoderLayer.attention_norm new_norm    | layer normalization | Attention input
  QueryKeyNormAttention.query_norm rms_norm     | RMS normalization   | Query norm
  QueryKeyNormAttention.key_norm rms_norm       | RMS normalization   | Key norm
  QueryKeyNormAttention.query_norm rotate       | rotary positions    | Rotated query
  QueryKeyNormAttention.key_norm rotate         | rotary positions    | Rotated key
2 Add
  EncoderLayer.attention add              | residual            | Sub-layer sum
3 Gated feed-forward
  EncoderLayer.feed_forward_norm rms_norm | RMS normalization   | Feed-forward input
  EncoderLayer.feed_forward_norm new_norm | layer normalization | Feed-forward input
4 Add
  EncoderLayer.feed_forward add           | residual            | Encoder layer output
Encoder output
  LayersThenNorm.norm rms_norm                   | RMS normalization   | Encoder output
  LayersThenNorm.norm new_norm                   | layer normalization | Encoder output
Classifier
  LastTokenClassifier.output linear       | linear              | Label logits | W_c
"""
