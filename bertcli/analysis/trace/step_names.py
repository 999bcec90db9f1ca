"""What a step is called in the table of `trace`: its group, operation, result and weights. No sizes, no costs.

A step is found by its key: a module's class, the field of it that was used last ("" for any), and an op; a Linear or
LayerNorm has the key of the module of which it is a field. Names are those common in the literature. A result has the
name that its step gives it, and later steps list it as an operand by this name; inside a layer, the layer's input is
always "Encoder input", and behind the encoder its output is "Encoder output".
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from bertcli.engine.kernels import ACTIVATIONS
from bertcli.network.module import Module

# A module's class, the field of it that was used last, and an op's name.
StepKey = tuple[type[Module] | None, str, str]

# Names of a pass's inputs, by the fields of a batch.
INPUTS = {
    "ids": "Token ids", "segments": "Segment ids", "positions": "Positions", "offsets": "Sentence starts",
    "rows": "Rows",
}  # fmt: skip
# Inside a layer, the name of the output of the layer before it, or of the embeddings.
LAYER_INPUT = "Encoder input"
# In the prediction heads, the name of the last layer's output.
HEAD_INPUT = "Encoder output"


class StepNames(NamedTuple):
    """The names of a step, of its result, and of the weights it reads."""

    group: str
    operation: str
    output: str
    weights: tuple[str, ...] = ()


def names_for(
    keys: Iterable[StepKey], arguments: Mapping[str, Any], part: str, operands: Sequence[str]
) -> StepNames | None:
    """The names for the first of the keys that has some, with the activation's name inserted; None if none has.

    `part` is the network's field in which the op ran, such as a prediction head. `operands` are the names of what the
    op reads: a key may have other names for an operand of a certain name. A class without names of its own has those
    of its base class.
    """
    names = next(filter(None, (_names_of(key, tuple(operands)) for key in keys)), None)
    if names is None:
        return None
    activation = arguments.get("activation")
    title = "identity" if activation is None else ACTIVATIONS[activation].title
    of_head = HEADS.get(part, {})
    group = of_head.get(names.group, names.group)
    output = of_head.get(names.output, names.output)
    weights = tuple(of_head.get(weight, weight) for weight in names.weights)
    return StepNames(group, names.operation.format(act=title), output, weights)


@lru_cache(maxsize=4096)  # the layers of a model have the same steps
def _names_of(key: StepKey, operands: tuple[str, ...]) -> StepNames | None:
    """The names for one key: of the nearest base class that has some, those for one of the operands first."""
    owner, field, op = key
    classes = [("bertcli.network.module", "")]
    if owner is not None:
        classes = [(base.__module__, base.__qualname__) for base in owner.__mro__]
    for module, name in classes:
        names = _table_of(module)
        for operand in (*operands, ""):
            if (name, field, op, operand) in names:
                return names[name, field, op, operand]
    return None


def transposed(name: str) -> str:
    """The name of a transposed operand: `Kᵀ` for `Key (K)`."""
    return f"{name.rpartition('(')[2].rstrip(')')}ᵀ"


# Prediction heads that share a class with another head: their names in place of that head's.
HEADS = {
    "nsp": {"Classifier": "Next sentence", "W_c": "W_nsp", "Label logits": "Next-sentence logits"},
    "sop": {"Classifier": "Sentence order", "W_c": "W_sop", "Label logits": "Sentence-order logits"},
    "qa": {"Token classifier": "Question answering", "W_c": "W_qa", "Label logits": "Start and end logits"},
    "multiple_choice": {"Classifier": "Multiple choice", "W_c": "W_m", "Label logits": "Choice logit"},
}

# By the module that defines a class: groups, and below each lines of
#     class.field op | operation | result | weights
# `of NAME` behind an op: only for a step one of whose operands has this name. A family's own names, and those of the
# newer files in network/ and of a kind's network, are the constant STEP_NAMES in the file that defines the class.
TABLES = {
    "bertcli.network.module": """
Pooler
   gather                      | a) first token     | [CLS] vector | [CLS] row
Head
   last_tokens                 | last token         | Last vector
   mean_tokens                 | mean of the tokens | Mean vector
   mean_tokens of Label logits | mean of the tokens | Mean logits
""",
    "bertcli.network.encoder": """
Embeddings
  Embeddings.token embed              | a) token embedding     | Token embeddings    | E_tok
  Embeddings.segment embed            | b) segment embedding   | Segment embeddings  | E_type
  Embeddings.segment add              | c) sum                 | Embedding sum
  Embeddings.position embed           | d) position embedding  | Position embeddings | E_pos
  Embeddings.position add             | e) sum                 | Embedding sum 2
  Embeddings.norm norm                | f) layer normalization | Embedding output
1 Multi-head attention
  SelfAttention.query linear          | a) linear Q            | Query (Q)           | W_Q
  SelfAttention.key linear            | a) linear K            | Key (K)             | W_K
  SelfAttention.value linear          | a) linear V            | Value (V)           | W_V
  SelfAttention.value scores          | b) scaled dot product  | Attention scores
  SelfAttention.value softmax         | c) softmax             | Attention weights
  SelfAttention.value attend          | d) weighted sum        | Heads output
  SelfAttention.output linear         | e) concat and project  | Attention output    | W_O
2 Add & norm
  EncoderLayer.attention add          | a) residual            | Sub-layer sum
  EncoderLayer.attention_norm norm    | b) layer normalization | Norm 1 output
3 Feed-forward
  FeedForward.intermediate linear     | a) linear 1 + {act}    | Intermediate        | W_1
  FeedForward.output linear           | b) linear 2            | FFN output          | W_2
4 Add & norm
  EncoderLayer.feed_forward add       | a) residual            | Sub-layer sum 2
  EncoderLayer.feed_forward_norm norm | b) layer normalization | Encoder layer output
Rows asked for
  Layers gather                       | rows                   | Rows asked for
  Layers gather of Positions          | rows                   | Positions of rows
""",
    "bertcli.network.heads": """
Pooler
  Pooler.dense linear                | b) linear + {act}      | Pooled output     | W_p
Masked language model
  MaskedLM.transform linear          | a) linear + {act}      | Transform         | W
  MaskedLM.norm norm                 | b) layer normalization | Transform norm
  MaskedLM.decoder linear            | c) decode              | Vocabulary logits | Decoder
Classifier
  TwoLayerPrediction.dense linear    | a) linear + {act}      | Transform         | W
  TwoLayerPrediction.output linear   | b) linear              | Label logits      | W_c
  Classifier.output linear           | linear                 | Label logits      | W_c
Token classifier
  TokenClassifier.output linear      | linear                 | Label logits      | W_c
""",
    "bertcli.network.after_pooling": """
Dense
  Dense.weight linear   | linear + {act}      | Vector            | W
  LayerNorm.weight norm | layer normalization | Normalized vector
""",
}


@cache
def _table_of(module: str) -> dict[tuple[str, ...], StepNames]:
    """The names for the classes of a module, by class, field, op, and the name of an operand ("" for any)."""
    table = TABLES[module] if module in TABLES else getattr(sys.modules[module], "STEP_NAMES", "")
    return dict(_read(table))


def _read(table: str) -> Iterator[tuple[tuple[str, ...], StepNames]]:
    """Parse a table of names.

    A line is the name of a group, or `Class.field op of operand | operation | output | weights`.
    """
    group = ""
    for line in table.strip().splitlines():
        key, *cells = (cell.strip() for cell in line.split("|"))
        if not cells:
            group = key
            continue
        operation, output, *weights = cells
        step, _, operand = key.partition(" of ")
        path, _, op = step.rpartition(" ")
        owner, _, field = path.partition(".")
        names = tuple(name for cell in weights for name in cell.split(", "))
        yield (owner, field, op, operand), StepNames(group, operation, output, names)
