"""DeBERTa-v2 and v3 (He et al. 2021): attention looks at what tokens are and, apart from that, how far apart they are.

A score has three terms: content to content, content to position, and position to content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from bertcli.engine.array import Array, Integers
from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.engine.positions import near_buckets
from bertcli.network import encoder, heads
from bertcli.network.encoder import LayerNorm, Linear, aligned
from bertcli.network.heads import QuestionAnswering, TokenClassifier
from bertcli.network.module import Module, parameter, part, parts, setting
from bertcli.network.network import Network
from bertcli.network.ops import (
    add,
    add_by_key,
    add_by_query,
    bucket_scores,
    convolve,
    embed,
    linear,
    new_norm,
    pick,
    scores,
)


@dataclass(frozen=True, eq=False)
class Projection(Module):
    """y = x Wᵀ"""

    weight: Array = parameter("outputs inputs")

    def forward(self, x: Array) -> Array:
        return linear(x, self.weight)


@dataclass(frozen=True, eq=False)
class Embeddings(Module):
    """X = LayerNorm(P(E_tok[ids] + E_pos[positions] + E_type[segments])): version 3 has the first term only"""

    token: Array = parameter("V E")
    position: Array | None = parameter("P E", when="position_biased_input")
    segment: Array | None = parameter("T E", when="has_segments")
    projection: Projection | None = part(when="has_projection", outputs="H", inputs="E")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        x = embed(self.token, batch.ids)
        if self.position is not None:
            x = add(embed(self.position, batch.positions), x)
        if self.segment is not None:
            x = add(embed(self.segment, batch.segments), x)
        return self.norm(x if self.projection is None else self.projection(x))


class Relative(NamedTuple):
    """What every layer needs: the embeddings of relative positions, where the queries stand, and which rows they are"""

    embeddings: Array  # [bucket, hidden], of the buckets that the batch's distances have
    queries: Integers
    rows: Integers | None


class Places(NamedTuple):
    """The same in one layer: relative positions as keys and as queries [bucket, hidden]"""

    keys: Array | None
    queries: Array | None
    batch: Packed
    positions: Integers  # of the queries


@dataclass(frozen=True, eq=False)
class SelfAttention(encoder.SelfAttention):
    """BERT's, with scores (Q_i·K_j + Q_i·PK_b + K_j·PQ_b) / sqrt(3D), where b is the bucket of i - j"""

    position_key: Linear | None = part(when="has_position_key", outputs="H", inputs="H")
    position_query: Linear | None = part(when="has_position_query", outputs="H", inputs="H")
    to_position: bool = setting("content_to_position")
    to_content: bool = setting("position_to_content")
    buckets: int = setting("position_buckets")
    farthest: int = setting("farthest")

    def forward(self, x: Array, context: Array, batch: Packed, shared: Any = None) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]; without projections of its own, keys' serve."""
        keys = (self.position_key or self.key)(shared.embeddings) if self.to_position else None
        queries = (self.position_query or self.query)(shared.embeddings) if self.to_content else None
        return super().forward(x, context, batch, Places(keys, queries, batch, shared.queries))

    def scores(self, block: AttentionBlock, q: Array, k: Array, places: Any) -> Array:
        """The sum of the three terms: [batch, head, query, key]"""
        terms = 1 + self.to_position + self.to_content
        q_h, k_h = block.query_heads(q), block.key_heads(k)
        stand = block.group.positions(places.positions, places.batch.positions)
        x = scores(q_h, k_h, terms=terms)
        if places.keys is not None:
            by_query = bucket_scores(q_h, block.split(places.keys), terms=terms)
            x = add_by_query(x, by_query, *stand, buckets=self.buckets, farthest=self.farthest)
        if places.queries is not None:
            by_key = bucket_scores(k_h, block.split(places.queries), terms=terms)
            x = add_by_key(x, by_key, *stand, buckets=self.buckets, farthest=self.farthest)
        return x


@dataclass(frozen=True, eq=False)
class Convolution(Module):
    """LayerNorm(x + act(w ∗ y + b)): to each token, something of those beside it"""

    weight: Array = parameter("H H W")
    bias: Array = parameter("H")
    norm: LayerNorm = part(features="H")
    activation: str = setting("conv_act")

    def forward(self, x: Array, y: Array, first: Integers, rows: Integers | None) -> Array:
        """x [query, hidden], y [token, hidden] -> [query, hidden]; x is made of these `rows` of y (None: all)."""
        around = convolve(y, self.weight, self.bias, first, activation=self.activation)
        return self.norm(add(x, around if rows is None else pick(around, rows)))


@dataclass(frozen=True, eq=False)
class EncoderLayer(encoder.EncoderLayer):
    """BERT's, and in some models a convolution of its input after the first layer"""

    attention: SelfAttention = part()
    convolution: Convolution | None = part(when="convolutions")

    def forward(self, x: Array, context: Array, batch: Packed, shared: Any = None) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]"""
        x = super().forward(x, context, batch, shared)
        return x if self.convolution is None else self.convolution(x, context, batch.first, shared.rows)


@dataclass(frozen=True, eq=False)
class RelativeNorm(LayerNorm):
    """The same norm for an x that stays as it is"""

    def forward(self, x: Array) -> Array:
        return new_norm(x, self.weight, self.bias, eps=self.eps)


@dataclass(frozen=True, eq=False)
class Encoder(encoder.Encoder):
    """L encoder layers, one after the other, and what they share: an embedding of every relative position"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    relative: Array = parameter("K H")
    relative_norm: RelativeNorm | None = part(when="has_relative_norm", features="H")
    buckets: int = setting("position_buckets")
    farthest: int = setting("farthest")

    def prepared(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Any]:
        """The batch with these rows (None: all) as queries, and what attention needs to know of positions."""
        near = near_buckets(self.relative, batch.reach, self.buckets, self.farthest)
        embeddings = near if self.relative_norm is None else self.relative_norm(near)
        batch, queries = aligned(batch, rows)
        return batch, Relative(embeddings, queries, rows)


@dataclass(frozen=True, eq=False)
class MaskedLM(heads.MaskedLM):
    """BERT's, at the width of the embeddings"""

    transform: Linear = part(outputs="E", inputs="H")
    norm: LayerNorm = part(features="E")
    decoder: Array = parameter("V E", tied="embeddings.token")


@dataclass(frozen=True, eq=False)
class Classifier(heads.FirstTokenClassifier):
    """act(X[CLS] Wᵀ + b) W_cᵀ + b_c"""

    activation: str = setting("pooler_hidden_act")


@dataclass(frozen=True, eq=False)
class MultipleChoice(Classifier):
    """The same with one logit: how well this choice fits"""

    output: Linear = part(outputs="1", inputs="H")


@dataclass(frozen=True, eq=False)
class Deberta(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part()
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: QuestionAnswering | None = part()
    multiple_choice: MultipleChoice | None = part()
