"""What newer families are made of: rotary positions (Su et al. 2021) and gated feed-forward layers (Shazeer 2020).

A key head may serve several query heads (Ainslie et al. 2023): there are M / D of them, with D numbers each. In causal
attention a token sees only itself and those before it.
"""

from collections.abc import Callable

from bertcli.engine.local import local_blocks
from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.engine.positions import Rates
from bertcli.network import encoder
from bertcli.network.encoder import Linear, aligned
from bertcli.network.module import part, setting
from bertcli.network.ops import attend, each, empty_like, multiply, repeat_heads, scores, softmax
from bertcli.network.position_ops import rotate, within
from bertcli.tracing.dispatch import Array, Integers, untraced


class Attention(encoder.SelfAttention[Integers]):
    """Z = concat_h(softmax(R(Q_h) R(K_h)ᵀ / sqrt(D)) V_h) W_Oᵀ, R the rotation by position"""

    query: Linear = part(outputs="Q", inputs="H")
    key: Linear = part(outputs="M", inputs="H")
    value: Linear = part(outputs="M", inputs="H")
    output: Linear = part(outputs="H", inputs="Q")
    key_heads: int = setting("key_heads")
    rates: Rates = setting("rates")  # how fast the pairs of a head turn
    stretched: Callable[[int], Rates] | None = setting("stretched")  # the same of a text of so many tokens
    scaling: float = setting("rope_scaling")  # of what was turned
    behind: int | None = setting("behind")  # how far back a token sees; None: to the text's beginning
    ahead: int | None = setting("ahead")  # how far on; None: to the end
    terms: float = setting("score_terms")  # scores are divided by sqrt(terms · D)

    def forward(self, x: Array, context: Array, batch: Packed, positions: Integers) -> Array:
        """x [query, hidden] at these positions, context [key, hidden] -> [query, hidden]"""
        own_q, own_k = self.own_rates(batch)
        rates, scaling = self.rates, self.scaling
        q = rotate(self.queries(x), positions, heads=self.heads, rates=rates, own=own_q, scaling=scaling)
        k = rotate(self.keys(context), batch.positions, heads=self.key_heads, rates=rates, own=own_k, scaling=scaling)
        v = self.value(context)
        if self.key_heads < self.heads:
            k, v = (repeat_heads(narrow, q, heads=self.key_heads, of=self.heads) for narrow in (k, v))
        z = empty_like(q)

        def compute(block: AttentionBlock) -> None:
            weights = scores(block.query_heads(q), block.key_heads(k), terms=self.terms)  # [batch, head, query, key]
            if self.behind is not None or self.ahead is not None:
                stand = block.group.positions(positions, batch.positions)
                weights = within(weights, *stand, behind=self.behind, ahead=self.ahead)
            attend(softmax(weights), block.key_heads(v), into=block.query_heads(z))

        each(compute, local_blocks(batch, self.heads, self.behind, self.ahead, positions))
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


WORDS = """
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
