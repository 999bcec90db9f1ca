"""BERT without positions (JinaBERT v2, Günther et al. 2023; MosaicBERT, Portes et al. 2023; DNABERT-2): the farther two
tokens are apart, the lower their scores ("ALiBi", Press et al. 2021), and feed-forward layers are gated.

Their config.json says "bert", and names code of its own, which is not run; what it says is here, of three dialects.
There is no longest text but the tokenizer's.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import log2
from typing import Any, ClassVar, Self

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.models.bert import EMBEDDINGS, FINE_TUNED, LAYER, MLM, POOLER, BertConfig
from bertcli.models.config import choice, sized
from bertcli.models.nomic_bert import Embeddings
from bertcli.models.registry import Family
from bertcli.models.static import LONGEST_TEXT
from bertcli.network import encoder, rotary
from bertcli.network.encoder import LayerNorm, Linear
from bertcli.network.heads import Classifier, MaskedLM, Network, Pooler, TokenClassifier
from bertcli.network.module import part, parts, setting
from bertcli.network.ops import add
from bertcli.network.position_ops import add_alibi
from bertcli.network.rotary import Positions
from bertcli.tracing.dispatch import Array


class Projection(Linear):
    """y = x Wᵀ + b; JinaBERT for code has LayerNorm(x Wᵀ + b)"""

    norm: LayerNorm | None = part(when="qk_norm", features="H")

    def forward(self, x: Array, activation: str | None = None) -> Array:
        """[token, hidden] -> [token, hidden]"""
        y = super().forward(x, activation)
        return y if self.norm is None else self.norm(y)


class SelfAttention(encoder.SelfAttention[Positions]):
    """Z = concat_h(softmax(Q_h K_hᵀ / sqrt(D) - slope_h |i - j|) V_h) W_Oᵀ + b_O"""

    query: Projection = part(outputs="H", inputs="H")
    key: Projection = part(outputs="H", inputs="H")
    slopes: tuple[float, ...] = setting("slopes")

    def scores(self, block: AttentionBlock, q: Array, k: Array, positions: Positions) -> Array:
        """BERT's scores, less for tokens that are far apart: [batch, head, query, key]"""
        x = super().scores(block, q, k, positions)
        return add_alibi(x, *block.group.positions(*positions), slopes=self.slopes[block.heads])


class Gated(rotary.Gated):
    """(act(x W_1ᵀ) · x W_gᵀ) W_2ᵀ + b_2"""

    activation: str = setting("gate_activation")


class EncoderLayer(encoder.EncoderLayer[Positions]):
    """BERT's layer; JinaBERT for code adds what attention read once more, and norms the sum, before the feed-forward"""

    attention: SelfAttention = part()
    again_norm: LayerNorm | None = part(when="qk_norm", features="H")
    feed_forward: Gated = part()

    def forward(self, x: Array, context: Array, batch: Packed, shared: Positions) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]"""
        attended = self.attention_norm(add(x, self.attention(x, context, batch, shared)))
        if self.again_norm is not None:
            attended = self.again_norm(add(x, attended))
        return self.feed_forward_norm(add(attended, self.feed_forward(attended)))


class Encoder(rotary.Layers):
    """L encoder layers, one after the other"""

    layers: tuple[EncoderLayer, ...] = parts("L")


class JinaBert(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()

    pooled: ClassVar = frozenset({"classifier"})


class JinaBertConfig(BertConfig):
    """A configuration of JinaBERT or MosaicBERT with config.json's own keys."""

    position_embedding_type: str = choice("alibi")
    feed_forward_type: str = choice("geglu", "reglu")
    emb_pooler: str = choice("mean")
    qk_norm: bool = False  # of JinaBERT for code: seen in the tensors, and before in what auto_map names
    model_type: str = "jina_bert"

    absolute: ClassVar[bool] = False
    title: ClassVar[str] = "JinaBERT or MosaicBERT"

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the defaults of JinaBERT's code; MosaicBERT has no keys for what is the same in all of its models."""
        # JinaBERT's defaults, which do not run: a file without these keys is refused.
        values: dict[str, Any] = {"position_embedding_type": "absolute", "feed_forward_type": "original"}
        values |= {key: value for key, value in data.items() if value is not None}
        is_mosaic = "alibi_starting_size" in data
        if is_mosaic:
            values |= {"position_embedding_type": "alibi", "feed_forward_type": "geglu"}
        # JinaBERT for code is recognized by the name of its code, until the tensors are read (`with_stored`).
        values["qk_norm"] = "qk-post-norm" in str(data.get("auto_map"))
        return values

    def with_stored(self, stored: Mapping[str, Any]) -> Self:
        return replace(self, qk_norm=any(name.endswith("self.layer_norm_q.weight") for name in stored))

    @property
    def gate_activation(self) -> str:
        """The activation of the gated feed-forward layers, whatever that of the other layers."""
        return {"geglu": "gelu", "reglu": "relu"}[self.feed_forward_type]

    @property
    def slopes(self) -> tuple[tuple[float, ...], ...]:
        """ALiBi's slopes for each layer, by head: how much a score falls with each position of distance.

        2^(-8k/n), k = 1, 2 ... n, for n heads; if n is no power of two, those of the power before it, then every second
        of those of the power after it.
        """
        heads = self.num_attention_heads
        power = 1 << int(log2(heads))
        between = [2 ** (-4 * k / power) for k in range(1, 2 * power, 2)]
        slopes = [2 ** (-8 * k / power) for k in range(1, power + 1)] + between[: heads - power]
        return (tuple(slopes),) * self.num_hidden_layers

    @property
    def max_tokens(self) -> int:
        return LONGEST_TEXT


# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
1 Multi-head attention
  Projection.norm norm of Query (Q) | layer normalization      | Query norm
  Projection.norm norm of Key (K)   | layer normalization      | Key norm
  SelfAttention.value add_alibi     | b) less by distance      | Biased scores
2 Add & norm
  EncoderLayer.attention_norm add   | c) residual once more    | Second sum
  EncoderLayer.again_norm norm      | d) layer normalization   | Norm 2 output
"""
# In the files of several repositories of code.
NAMES = """
encoder.layers.#.attention.{query,key,value}.*   encoder.layer.#.attention.self.{query,key,value}.*
                                                 encoder.layer.#.attention.self.Wqkv.*[{0,1,2}/3]
encoder.layers.#.attention.{query,key}.norm.*    encoder.layer.#.attention.self.layer_norm_{q,k}.*
encoder.layers.#.again_norm.*                    encoder.layer.#.layer_norm_1.*
encoder.layers.#.feed_forward.intermediate.*     encoder.layer.#.mlp.gated_layers.*[0/2]
                                                 encoder.layer.#.mlp.up_gated_layer.*[1/2]
encoder.layers.#.feed_forward.gate.*             encoder.layer.#.mlp.gated_layers.*[1/2]
                                                 encoder.layer.#.mlp.up_gated_layer.*[0/2]
encoder.layers.#.feed_forward.output.*           encoder.layer.#.mlp.wo.*   encoder.layer.#.mlp.down_layer.*
encoder.layers.#.feed_forward_norm.*             encoder.layer.#.mlp.layernorm.*   encoder.layer.#.layer_norm_2.*
"""
FAMILY = Family(
    types={"jina_bert": "JinaBert"},
    config=JinaBertConfig,
    network=JinaBert,
    prefixes=("bert.",),
    custom_code=True,
    names=(NAMES, EMBEDDINGS, LAYER, POOLER, MLM, FINE_TUNED),
    variants={
        "jina-embeddings-v2-small-en": sized(4, 512, vocab_size=30528),
        "jina-embeddings-v2-base-en": sized(12, 768, vocab_size=30528),
        "jina-embeddings-v2-base-code": sized(12, 768, vocab_size=61056, qk_norm=True),
        "dnabert-2": sized(12, 768, vocab_size=4096),
    },
)  # fmt: skip
