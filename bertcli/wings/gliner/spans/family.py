"""The family of a GLiNER model: one of models/ with the head that scores spans (network.py).

Source of names and meaning: GLiNER 0.2.29.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from bertcli.models.registry import Family
from bertcli.network.module import part, setting
from bertcli.tracing.dispatch import untraced
from bertcli.wings.gliner.on_backbone import HeadsOnBackbone, OnBackbone, with_heads
from bertcli.wings.gliner.spans.network import SpanScores
from bertcli.wings.gliner.spans.rows import SpanRows, rows_of_pass
from bertcli.wings.gliner.spans.settings import GlinerSettings

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


class Gliner(HeadsOnBackbone):
    """The head of GLiNER."""

    spans: SpanScores | None = part()
    label_mark: int = setting("label_mark")
    max_width: int = setting("max_width")
    own_heads = frozenset({"spans"})

    def rows_of_pass(self, head: str, batch: Any) -> SpanRows:
        return rows_of_pass(untraced(batch.ids), untraced(batch.offsets), self.label_mark, self.max_width)


class GlinerConfig(OnBackbone):
    """The settings of gliner_config.json beside the backbone's."""

    @property
    def settings(self) -> GlinerSettings:
        settings: GlinerSettings = self.own
        return settings

    def sizes_of_heads(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """G, the width of words, spans and labels; J, a direction of the LSTM, Z, its gates (4·J); and Y, the width
        inside a projection (4·G).
        """
        width = self.settings.hidden_size
        return {"G": width, "J": width // 2, "Z": 2 * width, "Y": 4 * width}

    @property
    def projects_words(self) -> bool:
        """True if words have another width than the backbone."""
        return self.sizes["H"] != self.sizes["G"]

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
        return self.vocab_size - 2 if index is None else index


@cache
def with_spans(member: Family) -> Family:
    """Make the family whose models have the head of spans on a backbone of this family."""
    return with_heads(member, Gliner, GlinerConfig, PREFIX, NAMES)
