"""Parts of newer families: rotary positions (Su et al. 2021), gated feed-forward layers (Shazeer 2020).

Grouped-query attention: a key head may serve several query heads (Ainslie et al. 2023); there are M / D of them, with D
numbers each. In causal attention a token sees only itself and earlier tokens.
"""

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.engine.positions import Frequencies
from bertcli.engine.sliding_window import local_blocks
from bertcli.network import encoder
from bertcli.network.encoder import Linear, aligned
from bertcli.network.module import part, setting
from bertcli.network.ops import multiply, repeat_heads, scores
from bertcli.network.position_ops import rotate, within
from bertcli.tracing.dispatch import Array, Integers

Positions = tuple[Integers, Integers]  # of queries and of keys


class Attention(encoder.SelfAttention[Positions]):
    """Z = concat_h(softmax(R(Q_h) R(K_h)ᵀ / sqrt(D)) V_h) W_Oᵀ, R the rotation by position"""

    query: Linear = part(outputs="Q", inputs="H")
    key: Linear = part(outputs="M", inputs="H")
    value: Linear = part(outputs="M", inputs="H")
    output: Linear = part(outputs="H", inputs="Q")
    key_heads: int = setting("key_heads")
    inverse_frequencies: Frequencies = setting("inverse_frequencies")  # how fast the pairs of a head turn
    scaling: float = setting("rope_scaling")  # of what was turned
    window_left: int | None = setting("window_left")  # how far back a token sees; None: to the text's beginning
    window_right: int | None = setting("window_right")  # how far on; None: to the end
    terms: float = setting("score_scale")  # scores are divided by sqrt(terms · D)

    def projected(self, x: Array, context: Array, positions: Positions) -> tuple[Array, Array, Array]:
        """R(Q) [query, head·size], R(K) and V [key, head·size], each key head as often as query heads share it"""
        of_queries, of_keys = positions
        frequencies, scaling = self.inverse_frequencies, self.scaling
        q = rotate(self.queries(x), of_queries, heads=self.heads, inverse_frequencies=frequencies, scaling=scaling)
        k = rotate(self.keys(context), of_keys, heads=self.key_heads, inverse_frequencies=frequencies, scaling=scaling)
        v = self.value(context)
        if self.key_heads < self.heads:
            k, v = (repeat_heads(narrow, q, heads=self.key_heads, of=self.heads) for narrow in (k, v))
        return q, k, v

    def queries(self, x: Array) -> Array:
        """[query, hidden] -> [query, head·size], before the rotation"""
        return self.query(x)

    def keys(self, x: Array) -> Array:
        """[key, hidden] -> [key, key head·size], before the rotation"""
        return self.key(x)

    def scores(self, block: AttentionBlock, q: Array, k: Array, positions: Positions) -> Array:
        """Q_h K_hᵀ / sqrt(terms · D), -∞ for keys that a query does not see: [batch, head, query, key]"""
        x = scores(block.query_heads(q), block.key_heads(k), terms=self.terms)
        if self.window_left is None and self.window_right is None:
            return x
        at = block.group.positions(*positions)
        return within(x, *at, window_left=self.window_left, window_right=self.window_right)

    def blocks(self, batch: Packed, positions: Positions) -> list[AttentionBlock]:
        """The queries, each with the keys that it sees, and few others"""
        of_queries, _ = positions
        return local_blocks(batch, self.heads, self.window_left, self.window_right, of_queries)


class Gated(encoder.FeedForward):
    """(act(x W_1ᵀ) · x W_gᵀ) W_2ᵀ"""

    intermediate: Linear = part(outputs="F", inputs="H", bias=False)
    gate: Linear = part(outputs="F", inputs="H", bias=False)
    output: Linear = part(outputs="H", inputs="F")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        return self.output(multiply(self.gate(x), self.intermediate(x, activation=self.activation)))


class Layers(encoder.Layers[Positions]):
    """Layers whose attention looks at positions"""

    def layer_inputs(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Positions]:
        """The batch with these rows (None: all) as queries, and the positions of queries and keys."""
        batch, queries = aligned(batch, rows)
        return batch, (queries, batch.positions)


# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
1 Multi-head attention
  Attention.query linear                  | linear Q            | Query (Q)        | W_Q
  Attention.query rotate                  | rotary positions    | Rotated query
  Attention.key linear                    | linear K            | Key (K)          | W_K
  Attention.key rotate                    | rotary positions    | Rotated key
  Attention.value linear                  | linear V            | Value (V)        | W_V
  Attention.value repeat_heads            | shared heads        | Keys of all heads
  Attention.value repeat_heads of Value (V) | shared heads      | Values of all heads
  Attention.value scores                  | scaled dot product  | Attention scores
  Attention.value within                  | what is seen        | Seen scores
  Attention.value softmax                 | softmax             | Attention weights
  Attention.value attend                  | weighted sum        | Heads output
  Attention.output linear                 | concat and project  | Attention output | W_O
3 Gated feed-forward
  Gated.gate linear                       | linear              | Gate             | W_g
  Gated.intermediate linear               | linear 1 + {act}    | Intermediate     | W_1
  Gated.intermediate multiply             | gate                | Gated intermediate
  Gated.output linear                     | linear 2            | FFN output       | W_2
"""
