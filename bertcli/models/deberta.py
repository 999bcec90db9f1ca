"""DeBERTa-v2 and v3 (He et al. 2021): disentangled attention to the content and the relative position of tokens.

A score has three terms: content to content, content to position, and position to content. Version 1: deberta_v1.py.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.engine.positions import near_buckets
from bertcli.errors import BertcliError, quoted
from bertcli.models.bert import EMBEDDINGS, FINE_TUNED, LAYER, MLM
from bertcli.models.config import Config, activation, choice, count, eps, layers, sized, texts
from bertcli.models.registry import Family
from bertcli.network import encoder, heads
from bertcli.network.encoder import LayerNorm, Linear, aligned
from bertcli.network.heads import MaskedLM, Network, TokenClassifier
from bertcli.network.module import Module, parameter, part, parts, setting
from bertcli.network.ops import add, embed, gather, scores
from bertcli.network.position_ops import add_by_key, add_by_query, bucket_scores, convolve
from bertcli.network.prenorm import NormKeepingInput
from bertcli.tracing.dispatch import Array, Integers


class Embeddings(Module):
    """X = LayerNorm(P(E_tok[ids] + E_pos[positions] + E_type[segments])): version 3 has the first term only"""

    token: Array = parameter("V E")
    position: Array | None = parameter("P E", when="position_biased_input")
    segment: Array | None = parameter("T E", when="has_segments")
    projection: Linear | None = part(when="has_projection", bias=False, outputs="H", inputs="E")
    norm: LayerNorm = part(features="H")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = embed(self.token, batch.ids)
        if self.position is not None:
            x = add(embed(self.position, batch.positions), x)
        if self.segment is not None:
            x = add(embed(self.segment, batch.segments), x)
        return self.norm(x if self.projection is None else self.projection(x))


class Relative(NamedTuple):
    """The inputs that all layers share for relative positions: their embeddings, as keys and as queries"""

    embeddings: Array  # [bucket, hidden], of the buckets that the batch's distances have
    query_positions: Integers
    positions: Integers  # of all tokens
    rows: Integers | None  # which the queries are
    keys: Array | None = None  # [bucket, hidden]
    queries: Array | None = None  # [bucket, hidden]


class SelfAttention(encoder.SelfAttention[Relative]):
    """BERT's, with scores (Q_i·K_j + Q_i·PK_b + K_j·PQ_b) / sqrt(3D), where b is the bucket of i - j"""

    position_key: Linear | None = part(when="has_position_key", outputs="H", inputs="H")
    position_query: Linear | None = part(when="has_position_query", outputs="H", inputs="H")
    to_position: bool = setting("content_to_position")
    to_content: bool = setting("position_to_content")
    buckets: int = setting("position_buckets")
    farthest: int = setting("farthest")

    def forward(self, x: Array, context: Array, batch: Packed, shared: Relative) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden].

        Relative positions are projected as tokens are where they have no projections of their own.
        """
        keys = (self.position_key or self.key)(shared.embeddings) if self.to_position else None
        queries = (self.position_query or self.query)(shared.embeddings) if self.to_content else None
        return super().forward(x, context, batch, shared._replace(keys=keys, queries=queries))

    def scores(self, block: AttentionBlock, q: Array, k: Array, relative: Relative) -> Array:
        """The sum of the three terms: [batch, head, query, key]"""
        terms = 1 + self.to_position + self.to_content
        q_h, k_h = block.query_heads(q), block.key_heads(k)
        positions_of_block = block.group.positions(relative.query_positions, relative.positions)
        x = scores(q_h, k_h, terms=terms)
        if relative.keys is not None:
            by_query = bucket_scores(q_h, block.split(relative.keys), terms=terms)
            x = add_by_query(x, by_query, *positions_of_block, buckets=self.buckets, farthest=self.farthest)
        if relative.queries is not None:
            by_key = bucket_scores(k_h, block.split(relative.queries), terms=terms)
            x = add_by_key(x, by_key, *positions_of_block, buckets=self.buckets, farthest=self.farthest)
        return x


class Convolution(Module):
    """LayerNorm(x + act(w ∗ y + b)): to each token, something of those beside it"""

    weight: Array = parameter("H H W")
    bias: Array = parameter("H")
    norm: LayerNorm = part(features="H")
    activation: str = setting("conv_act")

    def forward(self, x: Array, y: Array, batch: Packed, rows: Integers | None) -> Array:
        """x [query, hidden], y [token, hidden] -> [query, hidden]; x is made of these `rows` of y (None: all)."""
        around = convolve(y, self.weight, self.bias, batch.first, batch.positions, activation=self.activation)
        return self.norm(add(x, around if rows is None else gather(around, rows)))


class EncoderLayer(encoder.EncoderLayer[Relative]):
    """BERT's, and in some models a convolution of its input after the first layer"""

    attention: SelfAttention = part()
    convolution: Convolution | None = part(when="convolutions")

    def forward(self, x: Array, context: Array, batch: Packed, shared: Relative) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]"""
        x = super().forward(x, context, batch, shared)
        return x if self.convolution is None else self.convolution(x, context, batch, shared.rows)


class Encoder(encoder.Layers[Relative]):
    """L encoder layers, one after the other, and what they share: an embedding of every relative position"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    relative: Array = parameter("K H")
    relative_norm: NormKeepingInput | None = part(when="has_relative_norm", features="H")
    buckets: int = setting("position_buckets")
    farthest: int = setting("farthest")

    def layer_inputs(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Relative]:
        """The batch with these rows (None: all) as queries, and what attention needs to know of positions."""
        near = near_buckets(self.relative, batch.max_distance, self.buckets, self.farthest)
        embeddings = near if self.relative_norm is None else self.relative_norm(near)
        batch, queries = aligned(batch, rows)
        return batch, Relative(embeddings, queries, batch.positions, rows)


class Classifier(heads.FirstTokenClassifier):
    """act(X[CLS] Wᵀ + b) W_cᵀ + b_c"""

    activation: str = setting("pooler_hidden_act")


class Deberta(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    mlm: MaskedLM | None = part(features="E")
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")


TERMS = ("c2p", "p2c")


class DebertaConfig(Config):
    """A DeBERTa-v2 configuration with config.json's own keys; the defaults are those of DeBERTa-v2's code."""

    vocab_size: int = count(128100, "V", needed=True)
    hidden_size: int = count(1536, "H", needed=True)
    num_hidden_layers: int = layers(24)
    num_attention_heads: int = count(24, "A", needed=True)
    intermediate_size: int = count(6144, "F", needed=True)
    layer_norm_eps: float = eps(1e-7)
    type_vocab_size: int = count(0, "T", least=0)
    embedding_size: int | None = count(None)  # None: hidden_size
    position_biased_input: bool = True
    relative_attention: bool = False
    max_relative_positions: int = count(-1, least=-1)
    position_buckets: int = count(-1, least=-1)
    norm_rel_ebd: str = choice("none", "layer_norm")
    share_att_key: bool = False
    pos_att_type: tuple[str, ...] = ()
    conv_kernel_size: int = count(0, "W", least=0)
    conv_groups: int = choice(1)
    conv_act: str = activation("tanh")
    pooler_hidden_act: str = activation(heads=("classifier", "multiple_choice"))
    pooler_hidden_size: int | None = None
    attention_head_size: int | None = None
    model_type: str = "deberta-v2"

    title: ClassVar[str] = "DeBERTa"

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """With pos_att_type, "p2c|c2p" in older files, as a tuple."""
        terms = data.get("pos_att_type")
        listed = terms.lower().split("|") if isinstance(terms, str) else texts(data, "pos_att_type")
        return {**data, "pos_att_type": tuple(term.strip() for term in listed if term.strip())}

    def check(self) -> None:
        for key, value in (
            ("relative_attention", True),
            ("pooler_hidden_size", self.hidden_size),
            ("attention_head_size", self.sizes["D"]),
        ):
            if getattr(self, key) not in (value, None):
                raise BertcliError(f"{key} is {quoted(getattr(self, key))}; bertcli runs DeBERTa with {quoted(value)}.")
        for term in self.pos_att_type:
            if term not in TERMS:
                raise BertcliError(f"pos_att_type has {quoted(term)}; known are {', '.join(TERMS)}.")
        if self.conv_kernel_size > 0 and self.conv_kernel_size % 2 == 0:
            raise BertcliError(f"conv_kernel_size is {self.conv_kernel_size}; bertcli runs odd sizes.")
        if self.position_buckets == 1 or self.position_buckets // 2 >= self.farthest - 1:
            raise BertcliError(
                f"position_buckets is {self.position_buckets}; with {self.farthest} relative positions it must be 2 to "
                f"{2 * self.farthest - 3}, or -1 for none."
            )

    @cached_property
    def sizes(self) -> dict[str, int]:
        relative = 2 * (self.position_buckets if self.position_buckets > 0 else self.farthest)
        return super().sizes | {"E": self.embedding_size or self.hidden_size, "K": relative}

    @property
    def has_segments(self) -> bool:
        return self.type_vocab_size > 0

    @property
    def has_relative_norm(self) -> bool:
        """True if a norm follows the embeddings of relative positions."""
        return self.norm_rel_ebd == "layer_norm"

    @property
    def farthest(self) -> int:
        """The number of relative positions in each direction."""
        return self.max_relative_positions if self.max_relative_positions > 0 else self.max_position_embeddings

    @property
    def content_to_position(self) -> bool:
        """True if scores have the term content to position (c2p)."""
        return "c2p" in self.pos_att_type

    @property
    def position_to_content(self) -> bool:
        """True if scores have the term position to content (p2c)."""
        return "p2c" in self.pos_att_type

    @property
    def has_position_key(self) -> bool:
        """True if relative positions have their own projection to keys."""
        return self.content_to_position and not self.share_att_key

    @property
    def has_position_query(self) -> bool:
        """True if relative positions have their own projection to queries."""
        return self.position_to_content and not self.share_att_key

    @property
    def convolutions(self) -> tuple[bool, ...]:
        """True for each layer that a convolution follows."""
        return tuple(self.conv_kernel_size > 0 and n == 0 for n in range(self.num_hidden_layers))


PUBLISHED: dict[str, Any] = {
    "position_biased_input": False, "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "pos_att_type": ("p2c", "c2p"),
}  # fmt: skip
# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed              | token embedding        | Token embeddings     | E_tok
  Embeddings.position embed           | position embedding     | Position embeddings  | E_pos
  Embeddings.position add             | sum                    | Embedding sum
  Embeddings.segment embed            | segment embedding      | Segment embeddings   | E_type
  Embeddings.segment add              | sum                    | Embedding sum
  Embeddings.projection linear        | projection             | Projected embeddings | W_e
  Embeddings.norm norm                | layer normalization    | Embedding output
Relative positions
  Encoder.relative_norm new_norm      | layer normalization    | Relative positions (R) | Relative embeddings
1 Disentangled attention
  SelfAttention.position_key linear   | a) linear K            | Position key (PK)    | W_PK
  SelfAttention.position_query linear | a) linear Q            | Position query (PQ)  | W_PQ
  SelfAttention.position_key linear of relative   | a) linear K | Position key (PK)   | Relative positions (R), W_PK
  SelfAttention.position_query linear of relative | a) linear Q | Position query (PQ) | Relative positions (R), W_PQ
  SelfAttention.query linear          | a) linear Q            | Query (Q)            | W_Q
  SelfAttention.key linear            | a) linear K            | Key (K)              | W_K
  SelfAttention.query linear of Relative positions (R) | a) linear Q | Position query (PQ) | W_Q
  SelfAttention.key linear of Relative positions (R)   | a) linear K | Position key (PK)   | W_K
  SelfAttention.query linear of relative | a) linear Q         | Position query (PQ)  | Relative positions (R), W_Q
  SelfAttention.key linear of relative   | a) linear K         | Position key (PK)    | Relative positions (R), W_K
  SelfAttention.value linear          | a) linear V            | Value (V)            | W_V
  SelfAttention.value scores          | b) content to content  | Attention scores
  SelfAttention.value bucket_scores   | c) with positions      | Position scores
  SelfAttention.value add_by_query    | d) content to position | Scores
  SelfAttention.value add_by_key      | d) position to content | Scores
  SelfAttention.value softmax         | e) softmax             | Attention weights
  SelfAttention.value attend          | f) weighted sum        | Heads output
  SelfAttention.output linear         | g) concat and project  | Attention output     | W_O
Convolution
  Convolution.weight convolve         | a) convolution + {act} | Convolution          | W_∗
  Convolution.weight gather           | b) rows                | Convolution of rows
  Convolution.weight add              | c) residual            | Convolution sum
  Convolution.norm norm               | d) layer normalization | Encoder layer output
"""

NAMES = """
embeddings.projection.*                          embeddings.embed_proj.*
encoder.layers.#.attention.{query,key,value}.*   encoder.layer.#.attention.self.{query,key,value}_proj.*
encoder.layers.#.attention.position_key.*        encoder.layer.#.attention.self.pos_key_proj.*
encoder.layers.#.attention.position_query.*      encoder.layer.#.attention.self.pos_query_proj.*
encoder.layers.#.convolution.norm.*              encoder.conv.LayerNorm.*
encoder.layers.#.convolution.*                   encoder.conv.conv.*
encoder.relative                                 encoder.rel_embeddings.weight
encoder.relative_norm.*                          encoder.LayerNorm.*
{classifier,multiple_choice}.dense.*             pooler.dense.*
"""
FAMILY = Family(
    types={"deberta-v2": "DebertaV2"},
    config=DebertaConfig,
    zero_masked_embeddings=True,
    network=Deberta,
    prefixes=("deberta.",),
    names=(NAMES, EMBEDDINGS, LAYER, MLM, FINE_TUNED),
    without_lora=("encoder.rel_embeddings.weight",),
    ignored_prefixes=("lm_predictions.", "mask_predictions."),  # of the published base models
    hints={
        "mlm": "DeBERTa fills masks with cls.predictions.*; files with lm_predictions.* instead were trained for "
        "something else, so use another model."
    },
    variants={
        "deberta-v3-xsmall": sized(12, 384, **PUBLISHED),
        "deberta-v3-small": sized(6, 768, **PUBLISHED),
        "deberta-v3-base": sized(12, 768, **PUBLISHED),
        "deberta-v3-large": sized(24, 1024, **PUBLISHED),
        "deberta-v2-xlarge": {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": 64, **PUBLISHED},
    },
)
