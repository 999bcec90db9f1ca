"""The words of the operation table: what each step is called, by its place in the tree. Only words, no sizes.

A place is a module's class, its field that was used last, and an op; a Linear or LayerNorm is identified by the module
of which it is a field. Groups and names are those common in the literature.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bertcli.engine.kernels import ACTIVATIONS
from bertcli.network.module import Module

Place = tuple[type[Module] | None, str, str]  # class, field, op


class Words(NamedTuple):
    """The names of a step, its operands (data before parameters) and its result."""

    group: str
    operation: str
    inputs: tuple[str, ...]
    output: str


def words_for(places: Iterable[Place], arguments: Mapping[str, Any]) -> Words | None:
    """The words of the first place that has any, with the activation's name inserted.

    A module's class that has none of its own is called what the class it derives from is called.
    """
    for kind, field, op in places:
        kinds = [""] if kind is None else [_name(one.__module__, one.__qualname__) for one in kind.__mro__]
        words = next((WORDS[one, field, op] for one in kinds if (one, field, op) in WORDS), None)
        if words is not None:
            activation = arguments.get("activation")
            title = "identity" if activation is None else ACTIVATIONS[activation].title
            return words._replace(operation=words.operation.format(act=title))
    return None


# By a class's page: groups, and below each: class.field op | operation | operands -> result
TABLES = {
    "encoder": """
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
""",
    "heads": """
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
  FirstTokenClassifier.dense linear  | a) linear + {act} | First vector, W -> Transform
  FirstTokenClassifier.output linear | b) linear         | Transform, W_c -> Label logits
  Classifier.output linear   | linear                 | Pooled output, W_c -> Label logits
Token classifier
  TokenClassifier.output linear   | linear            | Encoder output, W_c -> Label logits
Question answering
  QuestionAnswering.output linear | linear            | Encoder output, W_qa -> Start and end logits
Multiple choice
  MultipleChoice.output linear    | linear            | Pooled output, W_m -> Choice logit
""",
    "sentence": """
Dense
  Dense.weight linear | linear + {act} | Pooled vector, W -> Sentence vector
""",
    "textbook": """
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
""",
    "roberta": """
Embeddings
  Embeddings.segment add_row          | b) the one segment's embedding | Token embeddings, E_type -> Embedding sum
  Embeddings.position embed_counted   | c) position embedding | Token ids, Sentence starts, E_pos -> Position embeddings
  Embeddings.position add             | d) sum                 | Position embeddings, Embedding sum -> Embedding sum 2
""",
    "distilbert": """
Embeddings
  Embeddings.token embed              | a) token embedding     | Token ids, E_tok -> Token embeddings
  Embeddings.position embed           | b) position embedding  | Positions, E_pos -> Position embeddings
  Embeddings.position add             | c) sum                 | Position embeddings, Token embeddings -> Embedding sum
  Embeddings.norm norm                | d) layer normalization | Embedding sum -> Embedding output
Multiple choice
  MultipleChoice.dense linear         | a) linear + {act}      | First vector, W -> Transform
  MultipleChoice.output linear        | b) linear              | Transform, W_m -> Choice logit
""",
    "mpnet": """
Embeddings
  Embeddings.position embed_counted   | b) position embedding | Token ids, Sentence starts, E_pos -> Position embeddings
Relative positions
   take                               | rows                   | Positions, Rows -> Positions of rows asked for
  Encoder.relative relative_bias      | bias of distances      | Query positions, Key positions, T -> Bias
1 Multi-head attention
  SelfAttention.value add_bias        | b) bias of distances   | Attention scores, Bias -> Attention scores
""",
    "electra": """
Embeddings
  Embeddings.projection linear        | g) projection          | Embedding output, W_e -> Encoder input
Replaced tokens
  ReplacedTokens.dense linear         | a) linear + {act}      | Encoder output, W -> Transform
  ReplacedTokens.output linear        | b) linear              | Transform, W_r -> Replaced-token logit
Multiple choice
  MultipleChoice.dense linear         | a) linear + {act}      | First vector, W -> Transform
  MultipleChoice.output linear        | b) linear              | Transform, W_m -> Choice logit
""",
    "modernbert": """
Embeddings
  Embeddings.token embed                  | token embedding       | Token ids, E_tok -> Token embeddings
  Embeddings.norm new_norm                | layer normalization   | Token embeddings -> Embedding output
Rows asked for
  Encoder.layers pick                     | rows                  | Encoder input, Rows -> Rows asked for
1 Multi-head attention
  EncoderLayer.attention_norm new_norm    | layer normalization   | Encoder input -> Norm 1 output
  SelfAttention.query linear              | linear Q              | Norm 1 output, W_Q -> Query (Q)
  SelfAttention.query rotate              | rotary positions      | Query (Q), Positions -> Rotated query
  SelfAttention.key linear                | linear K              | Norm 1 output, W_K -> Key (K)
  SelfAttention.key rotate                | rotary positions      | Key (K), Positions -> Rotated key
  SelfAttention.value linear              | linear V              | Norm 1 output, W_V -> Value (V)
  SelfAttention.value scores              | scaled dot product    | Rotated query, Rotated keyᵀ -> Attention scores
  SelfAttention.value within | local attention | Attention scores, Query positions, Key positions -> Local scores
  SelfAttention.value softmax             | softmax               | Attention scores -> Attention weights
  SelfAttention.value mix                 | weighted sum          | Attention weights, Value (V) -> Heads output
  SelfAttention.output linear             | concat and project    | Heads output, W_O -> Attention output
2 Add
  EncoderLayer.attention add              | residual              | Encoder input, Attention output -> Sub-layer sum
3 Gated feed-forward
  EncoderLayer.feed_forward_norm new_norm | layer normalization   | Sub-layer sum -> Norm 2 output
  FeedForward.gate linear                 | linear                | Norm 2 output, W_g -> Gate
  FeedForward.intermediate linear         | linear 1 + {act}      | Norm 2 output, W_1 -> Intermediate
  FeedForward.intermediate multiply       | gate                  | Gate, Intermediate -> Gated intermediate
  FeedForward.output linear               | linear 2              | Gated intermediate, W_2 -> FFN output
4 Add
  EncoderLayer.feed_forward add           | residual              | Sub-layer sum, FFN output -> Encoder layer output
Encoder output
  Encoder.norm new_norm                   | layer normalization   | Encoder layer output -> Encoder output
Head
  mean_tokens                             | mean of the tokens    | Encoder output, Sentence starts -> Mean vector
  Transform.dense linear                  | linear + {act}        | Encoder output, W -> Transform
  Transform.norm new_norm                 | layer normalization   | Transform -> Transform norm
Masked language model
  MaskedLM.decoder linear                 | decode                | Transform norm, Decoder -> Vocabulary logits
Classifier
  Classifier.output linear                | linear                | Transform norm, W_c -> Label logits
Token classifier
  TokenClassifier.output linear           | linear                | Transform norm, W_c -> Label logits
Question answering
  QuestionAnswering.output linear         | linear                | Transform norm, W_qa -> Start and end logits
Multiple choice
  MultipleChoice.output linear            | linear                | Transform norm, W_m -> Choice logit
""",
    "deberta": """
Embeddings
  Embeddings.token embed              | token embedding        | Token ids, E_tok -> Token embeddings
  Embeddings.position embed           | position embedding     | Positions, E_pos -> Position embeddings
  Embeddings.position add             | sum                    | Position embeddings, Token embeddings -> Embedding sum
  Embeddings.segment embed            | segment embedding      | Segment ids, E_type -> Segment embeddings
  Embeddings.segment add              | sum                    | Segment embeddings, Embedding sum -> Embedding sum
  Embeddings.projection linear        | projection             | Embedding sum, W_e -> Projected embeddings
  Embeddings.norm norm                | layer normalization    | Embeddings -> Embedding output
Relative positions
   take                               | rows                   | Positions, Rows -> Positions of rows asked for
  Encoder.relative_norm new_norm      | layer normalization    | Relative embeddings -> Relative positions (R)
1 Disentangled attention
  SelfAttention.position_key linear   | a) linear K            | Relative positions (R), W_PK -> Position key (PK)
  SelfAttention.position_query linear | a) linear Q            | Relative positions (R), W_PQ -> Position query (PQ)
  SelfAttention.query linear          | a) linear Q            | Encoder input or R, W_Q -> Query (Q) or PQ
  SelfAttention.key linear            | a) linear K            | Encoder input or R, W_K -> Key (K) or PK
  SelfAttention.value linear          | a) linear V            | Encoder input, W_V -> Value (V)
  SelfAttention.value scores          | b) content to content  | Query (Q), Kᵀ -> Attention scores
  SelfAttention.value bucket_scores   | c) with positions      | Query (Q) or key (K), PKᵀ or PQᵀ -> Position scores
  SelfAttention.value add_by_query | d) content to position| Scores, Position scores, Query positions, Key positions -> Scores
  SelfAttention.value add_by_key | d) position to content | Scores, Position scores, Query positions, Key positions -> Scores
  SelfAttention.value softmax         | e) softmax             | Attention scores -> Attention weights
  SelfAttention.value mix             | f) weighted sum        | Attention weights, Value (V) -> Heads output
  SelfAttention.output linear         | g) concat and project  | Heads output, W_O -> Attention output
Convolution
  Convolution.bias convolve           | a) convolution + {act} | Encoder input, W_∗ -> Convolution
  Convolution.weight convolve         | a) convolution + {act} | Encoder input, W_∗ -> Convolution
  Convolution.bias pick               | b) rows                | Convolution, Rows -> Rows asked for
  Convolution.weight pick             | b) rows                | Convolution, Rows -> Rows asked for
  Convolution.bias add                | c) residual            | Encoder layer output, Convolution -> Convolution sum
  Convolution.weight add              | c) residual            | Encoder layer output, Convolution -> Convolution sum
  Convolution.norm norm               | d) layer normalization | Convolution sum -> Encoder layer output
Multiple choice
  MultipleChoice.dense linear         | a) linear + {act}      | First vector, W -> Transform
  MultipleChoice.output linear        | b) linear              | Transform, W_m -> Choice logit
""",  # noqa: E501
    "albert": """
Sentence order
  SentenceOrder.output linear         | linear                 | Pooled output, W_sop -> Sentence-order logits
""",
}


def _name(module: str, kind: str) -> str:
    """`encoder.Embeddings`: a class by its page and its name, so that no page is imported for its words."""
    return f"{module.rpartition('.')[2]}.{kind}"


def _read(table: str, page: str) -> Iterator[tuple[tuple[str, str, str], Words]]:
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
        yield (
            (_name(page, owner) if owner else "", field, op),
            Words(group, operation, tuple(inputs.split(", ")), output),
        )


WORDS = {place: words for page, table in TABLES.items() for place, words in _read(table, page)}
