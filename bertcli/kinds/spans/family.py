"""The family of a GLiNER model: one of models/ with the head that scores spans (network.py).

It is made when such a model is opened: its network has one more head, its configuration the head's sizes, and its
tensors have the prefix that the library gives a backbone. Source of names and meaning: GLiNER 0.2.29.
"""

from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from bertcli.kinds.spans.network import SpanScores
from bertcli.kinds.spans.rows import rows_of_pass
from bertcli.kinds.spans.settings import GlinerSettings
from bertcli.models.registry import Family
from bertcli.network.module import part, setting
from bertcli.tracing.dispatch import Array, Integers, untraced

PREFIX = "token_rep_layer.bert_layer.model."
SPANS = "span_rep_layer.span_rep_layer."

# The LSTM's names are those of torch.nn.LSTM.
NAMES = """
spans.projection.*                          token_rep_layer.projection.*
spans.lstm.{input,recurrent}                rnn.lstm.weight_{ih,hh}_l0
spans.lstm.{input,recurrent}_bias           rnn.lstm.bias_{ih,hh}_l0
spans.lstm.reverse_{input,recurrent}        rnn.lstm.weight_{ih,hh}_l0_reverse
spans.lstm.reverse_{input,recurrent}_bias   rnn.lstm.bias_{ih,hh}_l0_reverse
spans.{start,end}.inner.*                   span_rep_layer.span_rep_layer.project_{start,end}.0.*
spans.{start,end}.output.*                  span_rep_layer.span_rep_layer.project_{start,end}.3.*
spans.{from_start,from_end}.weight          span_rep_layer.span_rep_layer.out_project.0.weight[{0,1}/2 of columns]
spans.from_end.bias                         span_rep_layer.span_rep_layer.out_project.0.bias
spans.output.*                              span_rep_layer.span_rep_layer.out_project.3.*
spans.label.inner.*                         prompt_rep_layer.0.*
spans.label.output.*                        prompt_rep_layer.3.*
"""


@cache
def with_spans(member: Family) -> Family:
    """Make the family whose models have the head of spans beside a backbone of this family."""
    network, config = _network(member.network), _config(member.config)
    return replace(
        member, config=config, network=network, prefixes=(PREFIX,), names=(*member.names, NAMES), variants={}
    )


def _config(base: Any) -> Any:
    """Make the configuration: the backbone's, and the settings of gliner_config.json."""

    class GlinerConfig(base):  # type: ignore[misc]  # a class of each family
        gliner: Any = None

        @cached_property
        def sizes(self) -> dict[str, int]:
            """With G, the width of words, spans and labels; J, a direction of the LSTM, Z, its gates (4·J); and Y, the
            width inside a projection (4·G).
            """
            width = self.settings.hidden_size
            return {**super().sizes, "G": width, "J": width // 2, "Z": 2 * width, "Y": 4 * width}

        @property
        def settings(self) -> GlinerSettings:
            found: GlinerSettings = self.gliner
            return found

        @property
        def projects_words(self) -> bool:
            """True if words have another width than the backbone."""
            return bool(self.sizes["H"] != self.sizes["G"])

        @property
        def num_rnn_layers(self) -> int:
            return self.settings.num_rnn_layers

        @property
        def max_width(self) -> int:
            return self.settings.max_width

        @property
        def label_mark(self) -> int:
            """The id of the mark before each label; without one in the settings the last but one, as it was added."""
            index = self.settings.class_token_index
            return int(self.vocab_size) - 2 if index is None else index

    return GlinerConfig


def _network(base: Any) -> Any:
    """Make the network: the backbone's, and the head of spans."""

    class Gliner(base):  # type: ignore[misc]  # a class of each family
        spans: SpanScores | None = part()
        label_mark: int = setting("label_mark")
        max_width: int = setting("max_width")

        def input_rows(self, head: str, batch: Any) -> Integers | None:
            rows: Integers | None = None if head == "spans" else super().input_rows(head, batch)
            return rows

        def predict(self, head: str, hidden: Array, batch: Any) -> Array:
            """A head's logits; of spans those of a pass without words: see `rows_of_pass`."""
            if head == "spans":
                ids, offsets = untraced(batch.ids), untraced(batch.offsets)
                head_of_spans: Any = self.spans
                spans: Array = head_of_spans(hidden, rows_of_pass(ids, offsets, self.label_mark, self.max_width))
                return spans
            logits: Array = super().predict(head, hidden, batch)
            return logits

    return Gliner
