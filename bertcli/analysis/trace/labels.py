"""The words of the operation table: what each step is called, by its place in the tree. Only words, no sizes.

A place is a module's class, its field that was used last, and an op; a Linear or LayerNorm is identified by the module
of which it is a field. Groups and names are those common in the literature.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from bertcli.engine.kernels import ACTIVATIONS
from bertcli.network.module import Module

StepKey = tuple[type[Module] | None, str, str]  # class, field, op


class Words(NamedTuple):
    """The names of a step, its operands (data before parameters) and its result."""

    group: str
    operation: str
    inputs: tuple[str, ...]
    output: str


def words_for(places: Iterable[StepKey], arguments: Mapping[str, Any], part: str) -> Words | None:
    """The words of the first place that has any, with the activation's name inserted.

    `part` is where in the network they are, such as a head. A module's class that has none of its own is called what
    the class it derives from is called.
    """
    for kind, field, op in places:
        classes = [("module", "")] if kind is None else [(base.__module__, base.__qualname__) for base in kind.__mro__]
        entries = (_words(module).get((name, field, op)) for module, name in classes)
        words = next(filter(None, entries), None)
        if words is not None:
            activation = arguments.get("activation")
            title = "identity" if activation is None else ACTIVATIONS[activation].title
            group, operation, inputs, output = words
            own = HEADS.get(part, {})
            inputs = tuple(own.get(word, word) for word in inputs)
            return Words(own.get(group, group), operation.format(act=title), inputs, own.get(output, output))
    return None


def chosen_words(inputs: Sequence[str], output: str, makers: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Of `Query (Q) or key (K)` what it is here: the alternative that a step has made, and the others' in its place."""
    place = 0
    for alternatives in (word.split(" or ") for word in inputs):
        for number, alternative in enumerate(alternatives[1:], 1):
            symbol = alternative.rpartition("(")[2].rstrip(")")
            place = number if any(maker.endswith(f"({symbol})") for maker in makers) else place
    words = [word.split(" or ")[place if " or " in word else 0] for word in (*inputs, output)]
    return tuple(word[:1].upper() + word[1:] for word in words[:-1]), words[-1]


# Of heads that have the class of another head, the words that differ.
HEADS = {
    "nsp": {"Classifier": "Next sentence", "W_c": "W_nsp", "Label logits": "Next-sentence logits"},
    "sop": {"Classifier": "Sentence order", "W_c": "W_sop", "Label logits": "Sentence-order logits"},
    "qa": {"Token classifier": "Question answering", "W_c": "W_qa", "Label logits": "Start and end logits"},
    "multiple_choice": {"Classifier": "Multiple choice", "W_c": "W_m", "Label logits": "Choice logit"},
}

# By the file of a class: groups, and below each: class.field op | operation | operands -> result. A family's words are
# WORDS in its own file.
TABLES = {
    "module": """
Pooler
   gather                             | a) first token         | Encoder output, [CLS] row -> [CLS] vector
Head
   last_tokens                        | last token             | Encoder output, Sentence starts -> Last vector
   mean_tokens                        | mean of the tokens     | Encoder output, Sentence starts -> Mean vector
""",
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
  SelfAttention.value attend          | d) weighted sum        | Attention weights, Value (V) -> Heads output
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
  Layers.layers gather                | rows                   | Encoder input, Rows -> Rows asked for
""",
    "heads": """
Pooler
  Pooler.dense linear        | b) linear + {act}      | [CLS] vector, W_p -> Pooled output
Masked language model
  MaskedLM.transform linear  | a) linear + {act}      | Encoder output, W -> Transform
  MaskedLM.norm norm         | b) layer normalization | Transform -> Transform norm
  MaskedLM.decoder linear    | c) decode              | Transform norm, Decoder -> Vocabulary logits
Classifier
  FirstTokenClassifier.dense linear  | a) linear + {act} | First vector, W -> Transform
  FirstTokenClassifier.output linear | b) linear         | Transform, W_c -> Label logits
  Classifier.output linear   | linear                 | Pooled output, W_c -> Label logits
Token classifier
  TokenClassifier.output linear   | linear            | Encoder output, W_c -> Label logits
""",
    "sentence": """
Dense
  Dense.weight linear | linear + {act} | Pooled vector, W -> Sentence vector
""",
}


@cache
def _words(module: str) -> dict[tuple[str, str, str], Words]:
    """The words for the classes of a module, by class, field and op."""
    table = TABLES.get(module.rpartition(".")[2])
    return dict(_read(getattr(sys.modules[module], "WORDS", "") if table is None else table))


def _read(table: str) -> Iterator[tuple[tuple[str, str, str], Words]]:
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
        yield (owner, field, op), Words(group, operation, tuple(inputs.split(", ")), output)
