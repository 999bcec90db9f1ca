"""The BERT encoder (Devlin et al. 2018): a post-norm transformer, from token ids to hidden states.

Arrays are [token, hidden]: the sentences of a batch lie end to end (`packing.Packed`), so there is no padding and no
mask. Only attention needs to know where sentences begin and end; everything else works on each token separately.
"""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.network.module import Module, parameter, part, parts, setting
from bertcli.network.ops import add, attend, each, embed, empty_like, gather, linear, norm, scores, softmax
from bertcli.tracing.dispatch import Array, Integers

S = TypeVar("S")  # what attention needs beside the batch, made once for all layers: BERT's needs nothing


class Linear(Module):
    """y = x Wᵀ + b"""

    weight: Array = parameter("outputs inputs")
    bias: Array | None = parameter("outputs")

    def forward(self, x: Array, activation: str | None = None) -> Array:
        """[…, in] -> […, out]"""
        return linear(x, self.weight, self.bias, activation=activation)


class LayerNorm(Module):
    """y = (x - mean) / sqrt(variance + eps) · weight + bias, over the hidden axis"""

    weight: Array = parameter("features")
    bias: Array | None = parameter("features")
    eps: float = setting("layer_norm_eps")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return norm(x, self.weight, self.bias, eps=self.eps)


class Embeddings(Module):
    """X = LayerNorm(E_tok[ids] + E_type[segments] + E_pos[positions])"""

    token: Array = parameter("V H")
    segment: Array = parameter("T H")
    position: Array = parameter("P H")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = add(embed(self.token, batch.ids), embed(self.segment, batch.segments))
        return self.norm(add(embed(self.position, batch.positions), x))


class SelfAttention(Module, Generic[S]):
    """Z = concat_h(softmax(Q_h K_hᵀ / sqrt(D)) V_h) W_Oᵀ + b_O"""

    query: Linear = part(outputs="H", inputs="H")
    key: Linear = part(outputs="H", inputs="H")
    value: Linear = part(outputs="H", inputs="H")
    output: Linear = part(outputs="H", inputs="H")
    heads: int = setting("num_attention_heads")

    def forward(self, x: Array, context: Array, batch: Packed, shared: S) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]; `x` is `context`, or some of its rows."""
        q, k, v = self.projected(x, context, shared)
        z = empty_like(q)

        def compute(block: AttentionBlock) -> None:
            weights = softmax(self.scores(block, q, k, shared))  # [batch, head, query, key]
            attend(weights, block.key_heads(v), into=block.query_heads(z))

        each(compute, self.blocks(batch, shared))
        return self.output(z)

    def projected(self, x: Array, context: Array, shared: S) -> tuple[Array, Array, Array]:
        """Q [query, hidden], K and V [key, hidden] as scores and sums read them"""
        return self.query(x), self.key(context), self.value(context)

    def blocks(self, batch: Packed, shared: S) -> list[AttentionBlock]:
        """The queries, each with all keys of its sentence"""
        return batch.blocks(self.heads)

    def scores(self, block: AttentionBlock, q: Array, k: Array, shared: S) -> Array:
        """Q_h K_hᵀ / sqrt(D) of some sentences and heads: [batch, head, query, key]"""
        return scores(block.query_heads(q), block.key_heads(k))


class FeedForward(Module):
    """act(x W_1ᵀ + b_1) W_2ᵀ + b_2"""

    intermediate: Linear = part(outputs="F", inputs="H")
    output: Linear = part(outputs="H", inputs="F")
    activation: str = setting("hidden_act")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return self.output(self.intermediate(x, activation=self.activation))


class EncoderLayer(Module, Generic[S]):
    """X = LayerNorm(X + Attention(X)), then X = LayerNorm(X + FeedForward(X))"""

    attention: SelfAttention[S] = part()
    attention_norm: LayerNorm = part(features="H")
    feed_forward: FeedForward = part()
    feed_forward_norm: LayerNorm = part(features="H")

    def forward(self, x: Array, context: Array, batch: Packed, shared: S) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]; `shared` is what a family's attention adds."""
        x = self.attention_norm(add(x, self.attention(x, context, batch, shared)))
        return self.feed_forward_norm(add(x, self.feed_forward(x)))


class Layers(Module, Generic[S], abstract=True):
    """Layer after layer, as in every family; the last may compute only some rows"""

    layers: tuple[Any, ...]

    def forward(self, x: Array, batch: Packed, rows: Integers | None = None) -> Array:
        """The last layer's output [token, hidden]; with `rows` (ascending) only those are computed: [row, hidden]."""
        *layers, last = self.layers
        all_rows, shared = self.layer_inputs(batch, None)
        for layer in layers:
            x = layer(x, x, all_rows, shared)
        if rows is None:
            x = last(x, x, all_rows, shared)
        else:
            queries = gather(x, rows)
            these_rows, shared = self.layer_inputs(batch, rows)
            x = last(queries, x, these_rows, shared)
        return x

    def states(self, x: Array, batch: Packed) -> Iterator[Array]:
        """The embeddings' output, then each layer's; a layer runs only when its output is asked for."""
        yield x
        batch, shared = self.layer_inputs(batch, None)
        for layer in self.layers:
            x = layer(x, x, batch, shared)
            yield x

    def layer_inputs(self, batch: Packed, rows: Integers | None) -> tuple[Packed, S]:
        """The batch with these rows (None: all) as queries, and what attention needs in every layer: here nothing."""
        return batch if rows is None else batch.narrow(rows), cast(S, None)


class Encoder(Layers[None]):
    """L encoder layers, one after the other"""

    layers: tuple[EncoderLayer[None], ...] = parts("L")


def aligned(batch: Packed, rows: Integers | None) -> tuple[Packed, Integers]:
    """For attention that looks at positions: the batch with these rows as queries, and the positions of the queries.

    Sentences of a group of that batch have their tokens at the same positions.
    """
    queries: Any = batch.positions if rows is None else gather(batch.positions, rows)
    return (batch if rows is None else batch.narrow(rows)).aligned(queries), queries
