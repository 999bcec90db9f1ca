"""The encoder as tutorials present it: no segments, no embedding norm, no attention biases, no output projection.

Weights are stored [in, out] and stacked by head; LayerNorm has no scale or shift; the feed-forward activation is ReLU.
"""

from typing import ClassVar

from bertcli.engine.packing import Packed
from bertcli.models.bert import BertConfig
from bertcli.models.config import activation, eps
from bertcli.models.registry import Family
from bertcli.network.encoder import Layers
from bertcli.network.heads import Network
from bertcli.network.module import Module, parameter, part, parts
from bertcli.network.ops import (
    add,
    attend,
    concat,
    embed,
    empty_like,
    linear,
    norm,
    project,
    project_heads,
    scores,
    softmax,
)
from bertcli.tracing.dispatch import Array, divided

EPS = 1e-5  # of the plain LayerNorm


class Embeddings(Module):
    """X = E_tok[ids] + E_pos[positions]"""

    token: Array = parameter("V H")
    position: Array = parameter("P H")

    def forward(self, batch: Packed) -> Array:
        """Token ids [token] -> [token, hidden]"""
        return add(embed(self.token, batch.ids), embed(self.position, batch.positions))


class SelfAttention(Module):
    """Z = concat_h(softmax(Q_h K_hᵀ / sqrt(D)) V_h) with Q_h = X W_h^Q, K_h = X W_h^K, V_h = X W_h^V"""

    query: Array = parameter("A H D")
    key: Array = parameter("A H D")
    value: Array = parameter("A H D")

    def forward(self, x: Array, context: Array, batch: Packed) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]"""
        q, k, v = project_heads(x, self.query), project_heads(context, self.key), project_heads(context, self.value)
        z = empty_like(x)
        for sentences, queries, keys in batch.groups:
            q_h = _by_sentence(q, queries, sentences)  # [batch, head, token, size]
            k_h = _by_sentence(k, keys, sentences)
            v_h = _by_sentence(v, keys, sentences)
            concat(attend(softmax(scores(q_h, k_h)), v_h), into=z[queries])
        return z


class FeedForward(Module):
    """max(0, x W_1 + b_1) W_2 + b_2"""

    intermediate: Array = parameter("H F")
    intermediate_bias: Array = parameter("F")
    output: Array = parameter("F H")
    output_bias: Array = parameter("H")

    def forward(self, x: Array) -> Array:
        """[token, hidden] -> [token, hidden]"""
        hidden = project(x, self.intermediate, self.intermediate_bias, activation="relu")
        return project(hidden, self.output, self.output_bias)


class EncoderLayer(Module):
    """X = LayerNorm(X + Attention(X)), then X = LayerNorm(X + FeedForward(X))"""

    attention: SelfAttention = part()
    feed_forward: FeedForward = part()

    def forward(self, x: Array, context: Array, batch: Packed, shared: None) -> Array:
        """x [query, hidden], context [key, hidden] -> [query, hidden]"""
        x = norm(add(x, self.attention(x, context, batch)), eps=EPS)
        return norm(add(x, self.feed_forward(x)), eps=EPS)


class Encoder(Layers[None]):
    """L encoder layers, one after the other"""

    layers: tuple[EncoderLayer, ...] = parts("L")


class Pooler(Module):
    """softmax(tanh(X[0] W_final)), over the entries of the class vector"""

    final: Array = parameter("H H")

    def forward(self, first: Array) -> Array:
        """[CLS] rows [batch, hidden] -> [batch, hidden]"""
        return softmax(project(first, self.final, activation="tanh"))


class MaskedLM(Module):
    """W H_i + b, the logits of ŷ_i = softmax(W H_i + b)"""

    weight: Array = parameter("V H")
    bias: Array = parameter("V")

    def forward(self, x: Array) -> Array:
        """Hidden states [token, hidden] -> logits [token, vocabulary]"""
        return linear(x, self.weight, self.bias)


class Textbook(Network):
    """The whole reduced model"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part()


def _by_sentence(x: Array, rows: slice, sentences: int) -> Array:
    """View of some packed rows [head, token, size] as [batch, head, token, size]."""
    return divided(x[:, rows], 1, sentences).transpose(1, 0, 2, 3)


class TextbookConfig(BertConfig):
    """BERT's keys; a model without segments, whose activation and eps are fixed."""

    hidden_act: str = activation("relu")
    layer_norm_eps: float = eps(1e-5)
    model_type: str = "textbook"

    title: ClassVar[str] = "the textbook model"


# The names of these modules' steps in `trace`; analysis/trace/step_names.py reads them by this constant's name.
STEP_NAMES = """
Embeddings
  Embeddings.token embed            | a) token embedding     | T                 | E_tok
  Embeddings.position embed         | b) position embedding  | P                 | E_pos
  Embeddings.position add           | c) sum                 | X
1 Multi-head attention
  SelfAttention.query project_heads | a) linear Q            | Query (Q)         | W^Q
  SelfAttention.key project_heads   | a) linear K            | Key (K)           | W^K
  SelfAttention.value project_heads | a) linear V            | Value (V)         | W^V
  SelfAttention.value scores        | b) scaled dot product  | Attention scores
  SelfAttention.value softmax       | c) softmax             | Attention weights (A)
  SelfAttention.value attend        | d) weighted sum        | Heads output (Z_h)
  SelfAttention.value concat        | e) concat              | Attention output
2 Add & norm
  EncoderLayer.attention add        | a) residual            | Sub-layer sum
  EncoderLayer.attention norm       | b) layer normalization | Norm 1 output
3 Feed-forward
  FeedForward.intermediate project  | a) linear 1 + {act}    | Z_ffn             | W_1
  FeedForward.output project        | b) linear 2            | Z_out             | W_2
4 Add & norm
  EncoderLayer.feed_forward add     | a) residual            | Sub-layer sum 2
  EncoderLayer.feed_forward norm    | b) layer normalization | Encoder layer output
Pooler
  Pooler.final project              | b) linear + {act}      | Class vector      | W_final
  Pooler.final softmax              | c) softmax             | Class vector, softmax
Masked language model
  MaskedLM.weight linear            | linear                 | Vocabulary logits | W
"""

FAMILY = Family(
    types={"textbook": "Textbook"},
    config=TextbookConfig,
    network=Textbook,
    prefixes=(),
    names=(),
    variants={"textbook": {}},
)
