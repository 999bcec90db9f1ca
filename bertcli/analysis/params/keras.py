"""The tree in the terms of the Keras summary: names, types and connections, and each row's place in the tree.

Only words: counts come from the parameters at that place, shapes from its output, the number of layers from the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bertcli.analysis.params.flow import IDS, Input, flow, nearest
from bertcli.analysis.params.rows import RowPlan
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.network.module import parameters
from bertcli.network.textbook import Textbook

# Name, type, place, connected to. A row exists if its place is in the tree; `=` means it owns the parameters there.
# A layer's names are appended to `Encoder-1`; `…` is the last row of the previous layer, or of the embeddings.
EMBEDDINGS = """
    Input-Token              InputLayer          embeddings.token
    Input-Segment            InputLayer          embeddings.segment
    Embedding-Token          TokenEmbedding     =embeddings.token     Input-Token
    Embedding-Segment        Embedding          =embeddings.segment   Input-Segment
    Embedding-Token-Segment  Add                 embeddings.segment   Embedding-Token  Embedding-Segment
    Embedding-Position       PositionEmbedding  =embeddings.position  Embedding-Token-Segment
    Embedding-Dropout        Dropout             embeddings           Embedding-Position
    Embedding-Norm           LayerNormalization =embeddings.norm      Embedding-Dropout
"""
LAYER = """
    -MultiHeadSelfAttention          MultiHeadAttention =.attention          …
    -MultiHeadSelfAttention-Dropout  Dropout             .attention          -MultiHeadSelfAttention
    -MultiHeadSelfAttention-Add      Add                 .attention          …  -MultiHeadSelfAttention-Dropout
    -MultiHeadSelfAttention-Norm     LayerNormalization =.attention_norm     -MultiHeadSelfAttention-Add
    -FeedForward                     FeedForward        =.feed_forward       -MultiHeadSelfAttention-Norm
    -FeedForward-Dropout             Dropout             .feed_forward       -FeedForward
    -FeedForward-Add                 Add                 .feed_forward       -MultiHeadSelfAttention-Norm  -FeedForward-Dropout
    -FeedForward-Norm                LayerNormalization =.feed_forward_norm  -FeedForward-Add
"""  # noqa: E501
HEADS = """
    MLM-Dense     Dense               =mlm.transform  …
    MLM-Norm      LayerNormalization  =mlm.norm       MLM-Dense
    Extract       Extract              pooler         …
    MLM-Sim       EmbeddingSimilarity =mlm            MLM-Norm  Embedding-Token
    Input-Masked  InputLayer           mlm
    NSP-Dense     Dense               =pooler         Extract
    MLM           Masked               mlm            MLM-Sim  Input-Masked
    NSP           Dense               =nsp            NSP-Dense
    Classifier    Dense               =classifier     NSP-Dense
"""
TEXTBOOK_EMBEDDINGS = """
    Input-Token         InputLayer          embeddings
    Embedding-Token     Embedding          =embeddings.token     Input-Token
    Embedding-Position  PositionEmbedding  =embeddings.position  Embedding-Token
"""
TEXTBOOK_LAYER = """
    -MultiHeadSelfAttention       MultiHeadAttention =.attention     …
    -MultiHeadSelfAttention-Add   Add                 .attention     …  -MultiHeadSelfAttention
    -MultiHeadSelfAttention-Norm  LayerNormalization  .attention     -MultiHeadSelfAttention-Add
    -FeedForward                  FeedForward        =.feed_forward  -MultiHeadSelfAttention-Norm
    -FeedForward-Add              Add                 .feed_forward  -MultiHeadSelfAttention-Norm  -FeedForward
    -FeedForward-Norm             LayerNormalization  .feed_forward  -FeedForward-Add
"""
TEXTBOOK_HEADS = """
    Extract  Extract  pooler  …
    Pooler   Dense   =pooler  Extract
    MLM      Dense   =mlm     …
"""
# Where the summary's own notation is clearer than the formula derived from the axes.
FORMULAS = {"-MultiHeadSelfAttention": "A·H·(H/A)·3 + H·3 + H·H + H", "-FeedForward": "(H·F + F) + (F·H + H)"}


def keras_plans(model: Model, given: Input) -> list[RowPlan]:
    """The rows of the Keras summary for a model, in its order; a textbook model has fewer.

    Errors: BertcliError for a model with parameters that the summary, which is BERT's, has no row for.
    """
    encoder = getattr(model.network, "encoder", None)
    if encoder is None:
        raise BertcliError(f"The Keras summary is BERT's, and {model.name} has no encoder: leave out --style keras.")
    layers = len(getattr(encoder, "layers", ()))
    writer = _Writer(model, given)
    if isinstance(model.network, Textbook):
        plans = writer.plans(_read(TEXTBOOK_EMBEDDINGS), _read(TEXTBOOK_LAYER), _read(TEXTBOOK_HEADS), layers)
    else:
        plans = writer.plans(_read(EMBEDDINGS), _read(LAYER, FORMULAS), _read(HEADS), layers)
    places = {plan.holds for plan in plans if plan.holds is not None}
    for path in writer.tables:
        if not nearest(path, places):
            raise BertcliError(
                f"The Keras summary has no row for {path} of {model.name}: it is written for models that are built as "
                "BERT is, so leave out --style keras."
            )
    return plans


class _Words(NamedTuple):
    name: str
    type: str
    place: str
    holds: bool
    after: tuple[str, ...]
    formula: str | None

    def numbered(self, i: int) -> _Words:
        """A layer's row with its layer number: Keras counts layers from 1, the tree from 0."""
        after = tuple(f"Encoder-{i + 1}{name}" if name.startswith("-") else name for name in self.after)
        return self._replace(name=f"Encoder-{i + 1}{self.name}", place=f"encoder.layers.{i}{self.place}", after=after)


def _read(block: str, formulas: Mapping[str, str] | None = None) -> list[_Words]:
    found = []
    for name, kind, place, *after in map(str.split, block.strip().splitlines()):
        holds = place.startswith("=")
        found.append(_Words(name, kind, place.removeprefix("="), holds, tuple(after), (formulas or {}).get(name)))
    return found


class _Writer:
    """Turns words into plans: embeddings, each layer, heads."""

    def __init__(self, model: Model, given: Input) -> None:
        self.outputs = flow(model, ()).shapes
        self.tables = {parameter.path: parameter.array.shape for parameter in parameters(model.network)}
        self.places = self.outputs.keys() | self.tables.keys()
        self.given = given

    def plans(self, embeddings: list[_Words], layer: list[_Words], heads: list[_Words], layers: int) -> list[RowPlan]:
        plans: list[RowPlan] = []
        for block in [embeddings, *([words.numbered(i) for words in layer] for i in range(layers)), heads]:
            before = plans[-1].name if plans else ""
            plans += [self._plan(words, before) for words in block if words.place in self.places]
        return plans

    def _plan(self, words: _Words, before: str) -> RowPlan:
        after = tuple(before if name == "…" else name for name in words.after)
        place = words.place if words.holds else None
        return RowPlan(words.name, words.type, self._shape(words.place, words.type), after, place, words.formula)

    def _shape(self, place: str, kind: str) -> str:
        shapes = [IDS if kind == "InputLayer" else self.outputs[nearest(place, self.outputs)]]
        if kind == "TokenEmbedding":  # it also outputs its table, with which the MLM head computes similarities
            shapes.append(self.tables[place])
        return ", ".join(map(self.given.text, shapes))
