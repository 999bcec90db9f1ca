"""The words of the operation table: what each step is called, by its place in the tree. Only words, no sizes.

A place is a module's class, its field that was used last, and an op; a Linear or LayerNorm is identified by the module
of which it is a field. Groups and names are those common in the literature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from bertcli import dense, encoder, heads, textbook
from bertcli.kernels import ACTIVATIONS
from bertcli.parts import Module

Place = tuple[type[Module] | None, str, str]  # class, field, op


class Words(NamedTuple):
    """The names of a step, its operands (data before parameters) and its result."""

    group: str
    operation: str
    inputs: tuple[str, ...]
    output: str


def words_for(places: Iterable[Place], arguments: Mapping[str, Any]) -> Words | None:
    """The words of the first place that has any, with the activation's name inserted."""
    for place in places:
        if place in WORDS:
            words = WORDS[place]
            activation = arguments.get("activation")
            title = "identity" if activation is None else ACTIVATIONS[activation].title
            return words._replace(operation=words.operation.format(act=title))
    return None


# Groups, and below each: class.field op | operation | operands -> result
ENCODER = """
Embeddings
  Embeddings.token embed              | a) token embedding     | Token ids, E_tok -> Token embeddings
  Embeddings.segment embed            | b) segment embedding   | Segment ids, E_type -> Segment embeddings
  Embeddings.segment add              | c) sum                 | Token embeddings, Segment embeddings -> Embedding sum
  Embeddings.position embed           | d) position embedding  | Positions, E_pos -> Position embeddings
  Embeddings.position add             | e) sum                 | Position embeddings, Embedding sum -> Embedding sum 2
  Embeddings.norm norm                | f) layer normalization | Embedding sum 2 -> Embedding output
1 Multi-head attention
  SelfAttention.query linear          | a) linear Q            | Encoder input, W_Q -> Query (Q)
  SelfAttention.key linear            | a) linear K            | Encoder input, W_K -> Key (K)
  SelfAttention.value linear          | a) linear V            | Encoder input, W_V -> Value (V)
  SelfAttention.value scores          | b) scaled dot product  | Query (Q), Kᵀ -> Attention scores
  SelfAttention.value softmax         | c) softmax             | Attention scores -> Attention weights
  SelfAttention.value mix             | d) weighted sum        | Attention weights, Value (V) -> Heads output
  SelfAttention.output linear         | e) concat and project  | Heads output, W_O -> Attention output
2 Add & norm
  EncoderLayer.attention add          | a) residual            | Encoder input, Attention output -> Sub-layer sum
  EncoderLayer.attention_norm norm    | b) layer normalization | Sub-layer sum -> Norm 1 output
3 Feed-forward
  FeedForward.intermediate linear     | a) linear 1 + {act}    | Norm 1 output, W_1 -> Intermediate
  FeedForward.output linear           | b) linear 2            | Intermediate, W_2 -> FFN output
4 Add & norm
  EncoderLayer.feed_forward add       | a) residual            | Norm 1 output, FFN output -> Sub-layer sum 2
  EncoderLayer.feed_forward_norm norm | b) layer normalization | Sub-layer sum 2 -> Encoder layer output
Rows asked for
  Encoder.layers pick                 | rows                   | Encoder input, Rows -> Rows asked for
"""

HEADS = """
Pooler
  pick                       | a) first token         | Encoder output, [CLS] row -> [CLS] vector
  Pooler.dense linear        | b) linear + {act}      | [CLS] vector, W_p -> Pooled output
Masked language model
  MaskedLM.transform linear  | a) linear + {act}      | Encoder output, W -> Transform
  MaskedLM.norm norm         | b) layer normalization | Transform -> Transform norm
  MaskedLM.decoder linear    | c) decode              | Transform norm, Decoder -> Vocabulary logits
Next sentence
  NextSentence.output linear | linear                 | Pooled output, W_nsp -> Next-sentence logits
Classifier
  Classifier.output linear   | linear                 | Pooled output, W_c -> Label logits
"""

DENSE = """
Dense
  Dense.weight linear | linear + {act} | Pooled vector, W -> Sentence vector
"""

TEXTBOOK = """
Embeddings
  Embeddings.token embed            | a) token embedding     | Token ids, E_tok -> T
  Embeddings.position embed         | b) position embedding  | Positions, E_pos -> P
  Embeddings.position add           | c) sum                 | P, T -> X
1 Multi-head attention
  SelfAttention.query project_heads | a) linear Q            | Encoder input, W^Q -> Query (Q)
  SelfAttention.key project_heads   | a) linear K            | Encoder input, W^K -> Key (K)
  SelfAttention.value project_heads | a) linear V            | Encoder input, W^V -> Value (V)
  SelfAttention.value scores        | b) scaled dot product  | Query (Q), Kᵀ -> Attention scores
  SelfAttention.value softmax       | c) softmax             | Attention scores -> Attention weights (A)
  SelfAttention.value mix           | d) weighted sum        | Attention weights (A), Value (V) -> Heads output (Z_h)
  SelfAttention.value concat        | e) concat              | Heads output (Z_h) -> Attention output
2 Add & norm
  EncoderLayer.attention add        | a) residual            | Encoder input, Attention output -> Sub-layer sum
  EncoderLayer.attention norm       | b) layer normalization | Sub-layer sum -> Norm 1 output
3 Feed-forward
  FeedForward.intermediate project  | a) linear 1 + {act}    | Norm 1 output, W_1 -> Z_ffn
  FeedForward.output project        | b) linear 2            | Z_ffn, W_2 -> Z_out
4 Add & norm
  EncoderLayer.feed_forward add     | a) residual            | Norm 1 output, Z_out -> Sub-layer sum 2
  EncoderLayer.feed_forward norm    | b) layer normalization | Sub-layer sum 2 -> Encoder layer output
Pooler
  Pooler.final project              | b) linear + {act}      | [CLS] vector, W_final -> Class vector
  Pooler.final softmax              | c) softmax             | Class vector -> Class vector, softmax
Masked language model
  MaskedLM.weight linear            | linear                 | Encoder output, W -> Vocabulary logits
Rows asked for
  Encoder.layers pick               | rows                   | Encoder output, Rows -> Rows asked for
"""


def _read(table: str, home: ModuleType) -> Iterator[tuple[Place, Words]]:
    group = ""
    for line in table.strip().splitlines():
        place, *words = (cell.strip() for cell in line.split("|"))
        if not words:
            group = place
            continue
        where, _, op = place.rpartition(" ")
        owner, _, field = where.partition(".")
        operation, names = words
        inputs, output = names.split(" -> ")
        kind = getattr(home, owner) if owner else None
        yield (kind, field, op), Words(group, operation, tuple(inputs.split(", ")), output)


WORDS = dict([*_read(ENCODER, encoder), *_read(HEADS, heads), *_read(DENSE, dense), *_read(TEXTBOOK, textbook)])
