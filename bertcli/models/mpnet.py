"""MPNet (Song et al. 2020): RoBERTa whose attention also looks at how far apart two tokens are."""

from typing import ClassVar

from bertcli.engine.packing import AttentionBlock, Packed
from bertcli.models import distilbert
from bertcli.models.bert import EMBEDDINGS, LAYER, POOLER
from bertcli.models.config import choice, count
from bertcli.models.registry import Family
from bertcli.models.roberta import FINE_TUNED, LM_HEAD, MaskedLM, RobertaConfig
from bertcli.network import encoder
from bertcli.network.encoder import aligned
from bertcli.network.heads import Classifier, FirstTokenClassifier, Network, Pooler, TokenClassifier
from bertcli.network.module import fixed, parameter, part, parts
from bertcli.network.ops import add, embed
from bertcli.network.position_ops import add_bias, embed_counted, relative_bias
from bertcli.tracing.dispatch import Array, Integers

FARTHEST = 128  # distances from here on share the last bucket of a direction, whatever config.json says


class Embeddings(distilbert.Embeddings):
    """X = LayerNorm(E_tok[ids] + E_pos[positions]), with RoBERTa's positions"""

    padding: int = fixed(1)

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        x = embed(self.token, batch.ids)
        return self.norm(add(embed_counted(self.position, batch.ids, batch.offsets, padding=self.padding), x))


Biases = list[Array]  # of each group of sentences [head, query, key]


class SelfAttention(encoder.SelfAttention[Biases]):
    """Z = concat_h(softmax(Q_h K_hᵀ / sqrt(D) + bias_h) V_h) W_Oᵀ + b_O"""

    def scores(self, block: AttentionBlock, q: Array, k: Array, biases: Biases) -> Array:
        """BERT's scores, and for each group of sentences a bias [head, query, key]"""
        return add_bias(
            super().scores(block, q, k, biases), biases[block.number][block.heads, block.queries, block.keys]
        )


class EncoderLayer(encoder.EncoderLayer[Biases]):
    """X = LayerNorm(X + Attention(X)), then X = LayerNorm(X + FeedForward(X))"""

    attention: SelfAttention = part()


class Encoder(encoder.Layers[Biases]):
    """L encoder layers, one after the other; all add the same bias to their scores"""

    layers: tuple[EncoderLayer, ...] = parts("L")
    relative: Array = parameter("32 A")

    def layer_inputs(self, batch: Packed, rows: Integers | None) -> tuple[Packed, Biases]:
        """The batch, and for each group of its sentences the bias of every query and key."""
        batch, queries = aligned(batch, rows)
        positions = [group.positions(queries, batch.positions) for group in batch.groups]
        return batch, [relative_bias(self.relative, *pair, farthest=FARTHEST) for pair in positions]


class MPNet(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: FirstTokenClassifier | None = part()
    token_classifier: TokenClassifier | None = part()
    qa: TokenClassifier | None = part(C="2")  # that an answer starts here, and that it ends
    multiple_choice: Classifier | None = part(C="1")  # how well a choice fits

    pooled: ClassVar = frozenset({"multiple_choice"})


class MPNetConfig(RobertaConfig):
    """An MPNet configuration with config.json's own keys; the defaults are those of MPNet's code."""

    vocab_size: int = count(30527, "V", needed=True)
    relative_attention_num_buckets: int = choice(32)  # transformers takes 32 whatever it says, but for the table
    model_type: str = "mpnet"

    title: ClassVar[str] = "MPNet"

    @property
    def has_segments(self) -> bool:
        return False

    @property
    def max_tokens(self) -> int:
        return self.max_position_embeddings - 2  # positions begin at 2, whatever pad_token_id says


# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.position embed_counted | b) position embedding | Position embeddings | E_pos
Relative positions
  Encoder.relative relative_bias    | bias of distances     | Bias                | T
1 Multi-head attention
  SelfAttention.value add_bias      | b) bias of distances  | Attention scores
"""

NAMES = """
encoder.relative                                        encoder.relative_attention_bias.weight
encoder.layers.#.attention.{query,key,value,output}.*   encoder.layer.#.attention.attn.{q,k,v,o}.*
encoder.layers.#.attention_norm.*                       encoder.layer.#.attention.LayerNorm.*
"""
FAMILY = Family(
    types={"mpnet": "MPNet"},
    config=MPNetConfig,
    network=MPNet,
    prefixes=("mpnet.",),
    names=(NAMES, EMBEDDINGS, LAYER, POOLER, LM_HEAD, FINE_TUNED),
    variants={"mpnet-base": {"layer_norm_eps": 1e-5, "max_position_embeddings": 514}},
)
