"""The rows of `params --style keras`: names, types and connections of Keras' BERT, and the module that each row counts.

This table holds words only: summary.py takes counts from the parameters of the module, shapes from its output, the
number of layers from the tree.
"""

from bertcli.analysis.params.summary import IDS, RowPlan, Shape, flow_of, nearest
from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel
from bertcli.network.module import parameters

# Name, type, place, connected to. A row exists if its place is in the tree, and of rows with one name the first that
# does; behind `=` is what it owns the parameters of, by itself the place. A layer's names are appended to `Encoder-1`;
# `…` is the last row of the previous layer, or of the embeddings. What is connected to a row that is not there is
# connected to what that row is connected to.
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


def keras_plans(model: LoadedModel) -> list[RowPlan]:
    """The rows of the Keras summary for a model, in its order; a textbook model has fewer.

    Errors: BertcliError for a model with parameters that the summary, which is BERT's, has no row for.
    """
    encoder = getattr(model.network, "encoder", None)
    if encoder is None:
        raise BertcliError(f"The Keras summary is BERT's, and {model.name} has no encoder: leave out --style keras.")
    tables = {parameter.path: parameter.array.shape for parameter in parameters(model.network)}
    outputs = flow_of(model, ()).shapes
    layers = ((LAYER, f"Encoder-{i + 1}", f"encoder.layers.{i}") for i in range(len(encoder.layers)))  # Keras: from 1
    plans: dict[str, RowPlan] = {}
    absent: dict[str, tuple[str, ...]] = {}  # rows that are not there, and what they would be connected to
    for rows, title, path in ((EMBEDDINGS, "", ""), *layers, (HEADS, "", "")):
        last = tuple([*plans][-1:])
        for name, kind, place, *after in map(str.split, rows.strip().splitlines()):
            output, equals, owner = place.partition("=")
            sources: list[str] = []
            for source in (title + word if word.startswith("-") else word for word in after):
                sources += last if source == "…" else (source,) if source in plans else absent[source]
            name, connected = title + name, tuple(dict.fromkeys(sources))
            if path + (output or owner) not in outputs.keys() | tables.keys():
                absent[name] = connected
            elif name not in plans:
                place_of_shape, holds = path + (owner or output), path + owner if equals else None
                shape = IDS if kind == "InputLayer" else outputs[nearest(place_of_shape, outputs)]
                # a TokenEmbedding also outputs its table, with which the MLM head computes similarities
                shapes: tuple[Shape, ...] = (shape, tables[place_of_shape]) if kind == "TokenEmbedding" else (shape,)
                plans[name] = RowPlan(name, kind, shapes, connected, holds, FORMULAS.get(place))
    owners = {plan.holds for plan in plans.values() if plan.holds is not None}
    for path in tables:
        if not nearest(path, owners):
            raise BertcliError(
                f"The Keras summary has no row for {path} of {model.name}: it is written for models that are built as "
                "BERT is, so leave out --style keras."
            )
    return list(plans.values())
