"""The head of GLiNER's span models (Zaratiana et al. 2023): scores of every span of words for labels named in the text.

The text begins with the labels, each behind a mark. A span's vector is made of its first and its last word, a label's
of its mark; their product is the score.
"""

from collections.abc import Callable

from bertcli.network.encoder import Linear
from bertcli.network.module import Module, parameter, part
from bertcli.network.ops import gather
from bertcli.tracing.dispatch import Array, Integers, divided
from bertcli.wings.gliner.spans.ops import add_pairs, in_parts, label_scores, lstm
from bertcli.wings.gliner.spans.rows import SpanRows


class Lstm(Module):
    """[h_t from the left, h_t from the right], h = o tanh(c), c_t = f c_{t-1} + i g; gates i, f, g, o"""

    input: Array = parameter("Z G")
    recurrent: Array = parameter("Z J")
    input_bias: Array = parameter("Z")
    recurrent_bias: Array = parameter("Z")
    reverse_input: Array = parameter("Z G")
    reverse_recurrent: Array = parameter("Z J")
    reverse_input_bias: Array = parameter("Z")
    reverse_recurrent_bias: Array = parameter("Z")

    def forward(self, x: Array, offsets: Integers) -> Array:
        """Words [word, width] -> [word, width]"""
        left = self.input, self.recurrent, self.input_bias, self.recurrent_bias
        right = self.reverse_input, self.reverse_recurrent, self.reverse_input_bias, self.reverse_recurrent_bias
        return lstm(x, *left, *right, offsets)


class Projection(Module):
    """W_2 relu(W_1 x + b_1) + b_2"""

    inner: Linear = part(outputs="Y", inputs="G")
    output: Linear = part(outputs="G", inputs="Y")

    def forward(self, x: Array, activation: str | None = None) -> Array:
        """[row, width] -> [row, width]"""
        return self.output(self.inner(x, activation="relu"), activation=activation)


class WordSpans(Module):
    """s · lᵀ, s = W_o relu(W_s relu(start(w_i)) + W_e relu(end(w_j)) + b) + b_o of words w, and vectors l of labels"""

    projection: Linear | None = part(when="projects_words", outputs="G", inputs="H")
    lstm: Lstm | None = part(when="num_rnn_layers")
    start: Projection = part()
    end: Projection = part()
    from_start: Linear = part(bias=False, outputs="Y", inputs="G")
    from_end: Linear = part(outputs="Y", inputs="G")
    output: Linear = part(outputs="G", inputs="Y")

    def scores(self, hidden: Array, rows: SpanRows, vectors: Callable[[Array], Array]) -> Array:
        """Hidden states [token, hidden] -> logits [span, label]; vectors: those of labels, from the marks' states."""
        if self.projection is not None:
            hidden = self.projection(hidden)
        words = gather(hidden, rows.words)
        if self.lstm is not None:
            words = self.lstm(words, rows.offsets)
        # The two halves of one matrix: a product for every word in place of one for every span.
        left = self.from_start(self.start(words, activation="relu"))
        right = self.from_end(self.end(words, activation="relu"))
        labels = vectors(gather(hidden, rows.labels))
        of_sentences = divided(labels, 0, len(rows.offsets) - 1)  # [sentence, label, width]

        def scored(some: slice) -> Array:
            pairs = add_pairs(left, right, rows.starts[some], rows.ends[some], activation="relu")
            return label_scores(self.output(pairs), of_sentences, rows.sentences[some])

        return in_parts(scored, len(rows.starts))


class SpanScores(WordSpans):
    """s · lᵀ, s = W_o relu(W_s relu(start(w_i)) + W_e relu(end(w_j)) + b) + b_o of words w, l = label(mark)"""

    label: Projection = part()

    def forward(self, hidden: Array, rows: SpanRows) -> Array:
        """Hidden states [token, hidden] -> logits [span, label]"""
        return self.scores(hidden, rows, self.label)


STEP_NAMES = """
Words and labels
  SpanScores.projection linear       | projection              | Projected states | W
  SpanScores gather                  | first pieces            | Words
  Lstm.input lstm                    | LSTM in both directions | Words in context | W, U, W_r, U_r
  SpanScores.from_end gather         | marks                   | Labels
  Projection.inner linear of Labels  | label: linear 1 + {act} | Label inner      | W_1
  Projection.output linear of Label inner | label: linear 2    | Label vectors    | W_2
Spans
  Projection.inner linear            | endpoint: linear 1 + {act}   | Endpoint inner   | W_1
  Projection.output linear           | endpoint: linear 2 + {act}   | Endpoint         | W_2
  SpanScores.from_start linear       | linear of first word    | First word       | W_s
  SpanScores.from_end linear         | linear of last word     | Last word        | W_e
  SpanScores add_pairs               | sum + {act}             | Pairs
  SpanScores.output linear           | linear                  | Span vectors     | W_o
  SpanScores label_scores            | spans · labels          | Span logits
"""
