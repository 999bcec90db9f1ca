"""The rows of `params --style keras`: names, types and connections of Keras' BERT, and the module that each row counts.

The tables hold words only: rows.py takes counts from the parameters of the module, shapes from its output, the
number of layers from the tree.
"""

from typing import NamedTuple

from bertcli.analysis.params.flow import IDS, Shape, connections, nearest
from bertcli.analysis.params.rows import BareRow
from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel
from bertcli.network.module import parameters

# A line: name, type, path=owner, and the names of the rows that it is connected to.
#
# A row exists if its path is in the tree; of several rows with one name the first one counts. It counts the parameters
# of its `owner`, without `=` none; `=owner` alone is path and owner. In LAYER names are appended to `Encoder-1` and
# paths to the layer's. `…` is the last row of the table before. Connections to a row that does not exist go on to what
# that row is connected to.
EMBEDDINGS = """
    Input-Token              InputLayer          embeddings.token
    Input-Segment            InputLayer          embeddings.segment
    Embedding-Token          TokenEmbedding      embeddings.norm=embeddings.token  Input-Token
    Embedding-Token          Embedding          =embeddings.token     Input-Token
    Embedding-Segment        Embedding          =embeddings.segment   Input-Segment
    Embedding-Token-Segment  Add                 embeddings.segment   Embedding-Token  Embedding-Segment
    Embedding-Position       PositionEmbedding  =embeddings.position  Embedding-Token-Segment
    Embedding-Dropout        Dropout             embeddings.norm      Embedding-Position
    Embedding-Norm           LayerNormalization =embeddings.norm      Embedding-Dropout
"""
LAYER = """
    -MultiHeadSelfAttention          MultiHeadAttention  .attention.output=.attention  …
    -MultiHeadSelfAttention          MultiHeadAttention =.attention          …
    -MultiHeadSelfAttention-Dropout  Dropout             .attention_norm     -MultiHeadSelfAttention
    -MultiHeadSelfAttention-Add      Add                 .attention          …  -MultiHeadSelfAttention-Dropout
    -MultiHeadSelfAttention-Norm     LayerNormalization  .attention=.attention_norm  -MultiHeadSelfAttention-Add
    -FeedForward                     FeedForward        =.feed_forward       -MultiHeadSelfAttention-Norm
    -FeedForward-Dropout             Dropout             .feed_forward_norm  -FeedForward
    -FeedForward-Add                 Add                 .feed_forward       -MultiHeadSelfAttention-Norm  -FeedForward-Dropout
    -FeedForward-Norm                LayerNormalization  .feed_forward=.feed_forward_norm  -FeedForward-Add
"""  # noqa: E501
HEADS = """
    MLM-Dense     Dense               =mlm.transform  …
    MLM-Norm      LayerNormalization  =mlm.norm       MLM-Dense
    Extract       Extract              pooler         …
    MLM-Sim       EmbeddingSimilarity  mlm.decoder=mlm  MLM-Norm  Embedding-Token
    Input-Masked  InputLayer           mlm.decoder
    NSP-Dense     Dense                pooler.dense=pooler  Extract
    Pooler        Dense                pooler.final=pooler  Extract
    MLM           Masked               mlm.decoder    MLM-Sim  Input-Masked
    MLM           Dense               =mlm            …
    NSP           Dense               =nsp            NSP-Dense
    Classifier    Dense               =classifier     NSP-Dense
"""
# Where the summary's own notation is clearer than the formula derived from the axes.
FORMULAS = {".attention.output=.attention": "A·H·(H/A)·3 + H·3 + H·H + H", "=.feed_forward": "(H·F + F) + (F·H + H)"}


class _KerasRow(NamedTuple):
    """A line of a table above. `needs`: the path that must be in the tree. `holds`: whose parameters the row counts."""

    name: str
    type: str
    needs: str
    holds: str | None
    connected_to: list[str]
    formula: str | None

    @classmethod
    def parse(cls, line: str, title: str, path: str) -> "_KerasRow":
        """Parse a line; `title` and `path` are those of a layer, "" outside of layers."""
        name, type, place, *sources = line.split()
        output, equals, owner = place.partition("=")
        return cls(
            name=title + name,
            type=type,
            needs=path + (output or owner),
            holds=path + owner if equals else None,
            connected_to=[title + source if source.startswith("-") else source for source in sources],
            formula=FORMULAS.get(place),
        )


def keras_rows(model: LoadedModel) -> list[BareRow]:
    """The rows of the Keras summary for a model, in its order; a textbook model has fewer.

    Errors: BertcliError for a model with parameters that the summary, which is BERT's, has no row for.
    """
    encoder = getattr(model.network, "encoder", None)
    if encoder is None:
        raise BertcliError(f"The Keras summary is BERT's, and {model.name} has no encoder: leave out --style keras.")
    array_shapes = {parameter.path: parameter.array.shape for parameter in parameters(model.network)}
    output_shapes = connections(model, ()).shapes
    bare_rows: dict[str, BareRow] = {}
    absent: dict[str, tuple[str, ...]] = {}  # rows that are not there, and what they would be connected to

    layers = ((LAYER, f"Encoder-{i + 1}", f"encoder.layers.{i}") for i in range(len(encoder.layers)))  # Keras: from 1
    for table, title, path in ((EMBEDDINGS, "", ""), *layers, (HEADS, "", "")):
        before = tuple([*bare_rows][-1:])  # the last row above this table
        for line in table.strip().splitlines():
            row = _KerasRow.parse(line, title, path)
            sources: list[str] = []
            for source in row.connected_to:
                if source == "…":
                    sources += before
                else:
                    sources += (source,) if source in bare_rows else absent[source]
            connected_to = tuple(dict.fromkeys(sources))
            if row.needs not in output_shapes and row.needs not in array_shapes:
                absent[row.name] = connected_to
            elif row.name not in bare_rows:
                shape_of = row.holds or row.needs
                shape = IDS if row.type == "InputLayer" else output_shapes[nearest(shape_of, output_shapes)]
                shapes: tuple[Shape, ...] = (shape,)
                if row.type == "TokenEmbedding":
                    # It also outputs its table, with which the MLM head computes similarities.
                    shapes = (shape, array_shapes[shape_of])
                bare_rows[row.name] = BareRow(row.name, row.type, shapes, connected_to, row.holds, row.formula)

    owners = {bare.holds for bare in bare_rows.values() if bare.holds is not None}
    for path in array_shapes:
        if not nearest(path, owners):
            raise BertcliError(
                f"The Keras summary has no row for {path} of {model.name}: it is written for models that are built as "
                "BERT is, so leave out --style keras."
            )
    return list(bare_rows.values())
