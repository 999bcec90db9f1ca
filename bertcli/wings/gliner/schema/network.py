"""The heads of GLiNER2 (Zaratiana et al. 2025): the scores of spans for types of entities, and those of candidates.

A text stands behind a task and its types, each behind a mark: `( [P] entities ( [E] person [E] city ) ) [SEP_TEXT] …`.
The library also fills structures of several fields: then a type has a query for each instance of the structure, from
the steps of a GRU. Entities have that of the first instance. A head of its own says how many instances there are: if
there are 0, there are no entities.
"""

from functools import partial

from bertcli.engine.packing import batch_of_shapes
from bertcli.network.encoder import EncoderLayer, FeedForward, LayerNorm, Linear, SelfAttention
from bertcli.network.module import Module, fixed, parameter, part
from bertcli.network.ops import add, gather, linear
from bertcli.tracing.dispatch import Array
from bertcli.wings.gliner.schema.ops import gru, linear_beside
from bertcli.wings.gliner.schema.rows import SchemaRows
from bertcli.wings.gliner.spans.network import WordSpans


class Perceptron(Module):
    """W_2 relu(W_1 x + b_1) + b_2"""

    inner: Linear = part(outputs="O", inputs="G")
    output: Linear = part(outputs="outputs", inputs="O")


class InstanceCount(Perceptron):
    """The logits of how many instances there are, 0 to 19, from the mark of the task"""

    def forward(self, hidden: Array, rows: SchemaRows) -> Array:
        """Hidden states [token, hidden] -> logits [sentence, 20]"""
        return self.output(self.inner(gather(hidden, rows.tasks), activation="relu"))


class CandidateScores(Perceptron):
    """The logit of each candidate, from its mark"""

    def forward(self, hidden: Array, rows: SchemaRows) -> Array:
        """Hidden states [token, hidden] -> logits [candidate, 1]"""
        return self.output(self.inner(gather(hidden, rows.spans.labels), activation="relu"))


class Gru(Module):
    """One step of a GRU: h = (1 - z) n + z h, gates r, z, n"""

    input: Array = parameter("Z G")
    recurrent: Array = parameter("Z G")
    input_bias: Array = parameter("Z")
    recurrent_bias: Array = parameter("Z")

    def forward(self, x: Array, h: Array) -> Array:
        """Input [1, width], states [type, width] -> [type, width]"""
        gates = linear(x, self.input, self.input_bias)
        return gru(gates, linear(h, self.recurrent, self.recurrent_bias), h)


class Beside(Module):
    """act([x, y] Wᵀ + b)"""

    weight: Array = parameter("outputs inputs")
    bias: Array = parameter("outputs")

    def forward(self, x: Array, y: Array) -> Array:
        """[type, one], [type, other] -> [type, out]"""
        return linear_beside(x, y, self.weight, self.bias, activation="relu")


class Projector(Module):
    """W_2 relu([x, y] W_1ᵀ + b_1) + b_2 (count_lstm)"""

    inner: Beside = part(outputs="Y", inputs="O")
    output: Linear = part(outputs="G", inputs="Y")

    def forward(self, x: Array, y: Array) -> Array:
        """[type, width], [type, width] -> [type, width]"""
        return self.output(self.inner(x, y))


class TypeAttention(SelfAttention[None]):
    """BERT's, among the types of a sentence"""

    heads: int = fixed(4)


class TypeFeedForward(FeedForward):
    """BERT's, with relu"""

    activation: str = fixed("relu")


class TypeNorm(LayerNorm):
    """BERT's, with the eps of torch"""

    eps: float = fixed(1e-5)


class TypeLayer(EncoderLayer[None]):
    """BERT's, of torch.nn.TransformerEncoderLayer"""

    attention: TypeAttention = part()
    attention_norm: TypeNorm = part(features="H")
    feed_forward: TypeFeedForward = part()
    feed_forward_norm: TypeNorm = part(features="H")


class TypeLayers(Module):
    """Two narrow layers in which the types of a sentence read each other (count_lstm_v2)"""

    input: Linear = part(outputs="128", inputs="G")
    first: TypeLayer = part(H="128", F="256")
    second: TypeLayer = part(H="128", F="256")
    beside: Beside = part(outputs="G", inputs="J")
    inner: Linear = part(outputs="G", inputs="G")
    output: Linear = part(outputs="G", inputs="G")

    def forward(self, x: Array, sentences: int) -> Array:
        """[type, width] -> [type, width], the types of a sentence after those of the one before"""
        batch = batch_of_shapes(sentences, len(x) // sentences)
        narrow = self.input(x)
        for layer in (self.first, self.second):
            narrow = layer(narrow, narrow, batch, None)
        return self.output(self.inner(self.beside(narrow, x), activation="relu"))


class TypeQuery(Module):
    """The query of a type of entities: a step of a GRU from the state of its mark, and what follows it"""

    instances: Array = parameter("20 G")
    gru: Gru = part()
    projector: Projector | None = part(when="has_projector")
    layers: TypeLayers | None = part(when="has_layers")

    def forward(self, types: Array, sentences: int) -> Array:
        """[type, width] -> [type, width]"""
        state = self.gru(self.instances[:1], types)
        if self.layers is not None:
            return self.layers(add(types, state), sentences)
        assert self.projector is not None
        return self.projector(state, types)


class EntityScores(WordSpans):
    """s · qᵀ, s = W_o relu(W_s relu(start(w_i)) + W_e relu(end(w_j)) + b) + b_o of words w, q = query(mark)"""

    query: TypeQuery = part()

    def forward(self, hidden: Array, rows: SchemaRows) -> Array:
        """Hidden states [token, hidden] -> logits [span, type]"""
        return self.scores(hidden, rows.spans, partial(self.query, sentences=len(rows.tasks)))


STEP_NAMES = """
Instances
  InstanceCount gather                        | mark of the task            | Task
  InstanceCount.inner linear                  | linear 1 + {act}            | Count inner      | W_1
  InstanceCount.output linear                 | linear 2                    | Count logits     | W_2
Types
  EntityScores.from_end gather                | marks                       | Types
  Gru linear                                  | input of the first instance | GRU input        | p_1, W
  Gru linear of Types                         | product with the state      | GRU state        | U
  Gru gru                                     | GRU                         | First instance
  TypeQuery add                               | residual                    | Type states
  Beside linear_beside                        | linear of both + {act}      | Joined           | W
  Projector.output linear                     | linear                      | Queries          | W
  TypeLayers.input linear                     | linear                      | Narrow states    | W
  TypeLayers.inner linear                     | linear 1 + {act}            | Query inner      | W_1
  TypeLayers.output linear                    | linear 2                    | Queries          | W_2
Spans
  EntityScores gather                         | first pieces                | Words
  EntityScores.from_start linear              | linear of first word        | First word       | W_s
  EntityScores.from_end linear                | linear of last word         | Last word        | W_e
  EntityScores add_pairs                      | sum + {act}                 | Pairs
  EntityScores.output linear                  | linear                      | Span vectors     | W_o
  EntityScores label_scores                   | spans · queries             | Span logits
Candidates
  CandidateScores gather                      | marks                       | Candidates
  CandidateScores.inner linear                | linear 1 + {act}            | Candidate inner  | W_1
  CandidateScores.output linear               | linear 2                    | Candidate logits | W_2
"""
