"""The family of a GLiNER2 model: one of models/ with the heads of GLiNER2 (network.py).

Source of names and meaning: GLiNER2 2.1.0.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from bertcli.models.registry import Family
from bertcli.network.module import part, setting
from bertcli.tracing.dispatch import untraced
from bertcli.wings.gliner.on_backbone import HeadsOnBackbone, OnBackbone, with_heads
from bertcli.wings.gliner.schema.network import CandidateScores, EntityScores, InstanceCount
from bertcli.wings.gliner.schema.rows import SchemaRows, rows_of_pass
from bertcli.wings.gliner.schema.settings import BEFORE_TEXT, ENTITY, HEADS, LABEL, OWN_TOKENS, TASK, SchemaSettings

PREFIX = "encoder."
SPANS = "span_rep.span_rep_layer."

# The GRU's names are those of torch.nn.GRU, the layers' those of torch.nn.TransformerEncoder.
NAMES = """
instances.inner.*                                 count_pred.0.*
instances.output.*                                count_pred.2.*
candidate_scores.inner.*                            classifier.0.*
candidate_scores.output.*                           classifier.2.*
spans.{start,end}.inner.*                  span_rep.span_rep_layer.project_{start,end}.0.*
spans.{start,end}.output.*                 span_rep.span_rep_layer.project_{start,end}.3.*
spans.{from_start,from_end}.weight         span_rep.span_rep_layer.out_project.0.weight[{0,1}/2 of columns]
spans.from_end.bias                        span_rep.span_rep_layer.out_project.0.bias
spans.output.*                             span_rep.span_rep_layer.out_project.3.*
spans.query.instances                      count_embed.pos_embedding.weight
spans.query.gru.{input,recurrent}          count_embed.gru.weight_{ih,hh}_l0
spans.query.gru.{input,recurrent}_bias     count_embed.gru.bias_{ih,hh}_l0
spans.query.projector.inner.*              count_embed.projector.0.*
spans.query.projector.output.*             count_embed.projector.2.*
spans.query.layers.input.*                 count_embed.transformer.in_projector.*
spans.query.layers.{first,second}.attention.{query,key,value}.*
    count_embed.transformer.transformer.layers.{0,1}.self_attn.in_proj_*[{0,1,2}/3]
spans.query.layers.{first,second}.attention.output.*
    count_embed.transformer.transformer.layers.{0,1}.self_attn.out_proj.*
spans.query.layers.{first,second}.{attention_norm,feed_forward_norm}.*
    count_embed.transformer.transformer.layers.{0,1}.norm{1,2}.*
spans.query.layers.{first,second}.feed_forward.{intermediate,output}.*
    count_embed.transformer.transformer.layers.{0,1}.linear{1,2}.*
spans.query.layers.{beside,inner,output}.* count_embed.transformer.out_projector.{0,2,4}.*
"""


class Gliner2(HeadsOnBackbone):
    """The heads of GLiNER2."""

    instances: InstanceCount | None = part(outputs="20")
    spans: EntityScores | None = part()
    candidate_scores: CandidateScores | None = part(outputs="1")
    marks: dict[str, int] = setting("marks")
    max_width: int = setting("max_width")
    own_heads = frozenset(HEADS)

    def rows_of_pass(self, head: str, batch: Any) -> SchemaRows:
        mark = self.marks[LABEL if head == "candidate_scores" else ENTITY]
        task, separator = self.marks[TASK], self.marks[BEFORE_TEXT]
        return rows_of_pass(untraced(batch.ids), untraced(batch.offsets), task, mark, separator, self.max_width)


class Gliner2Config(OnBackbone):
    """The settings of GLiNER2 beside the backbone's."""

    @property
    def settings(self) -> SchemaSettings:
        settings: SchemaSettings = self.own
        return settings

    def sizes_of_heads(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """G, the width of words, spans and types, which is the backbone's; Y, that inside a projection (4·G); O, that
        inside the other heads (2·G); Z, the GRU's gates (3·G); and J, the output of the two narrow layers beside their
        input (128 + G).
        """
        width = sizes["H"]
        return {"G": width, "Y": 4 * width, "O": 2 * width, "Z": 3 * width, "J": 128 + width}

    @property
    def max_width(self) -> int:
        return self.settings.max_width

    # Of the network that scores spans GLiNER2 has neither.
    projects_words = False
    num_rnn_layers = 0

    @property
    def has_layers(self) -> bool:
        """True if the queries of types read each other, in two layers (count_lstm_v2)."""
        return self.settings.counting_layer == "count_lstm_v2"

    @property
    def has_projector(self) -> bool:
        return not self.has_layers

    @property
    def marks(self) -> dict[str, int]:
        """The ids of the tokens that GLiNER2 has added, if they are the last ones, as they are published."""
        first = self.vocab_size - len(OWN_TOKENS)
        return {token: first + number for number, token in enumerate(OWN_TOKENS)}


@cache
def with_schema(member: Family) -> Family:
    """Make the family whose models have the heads of GLiNER2 on a backbone of this family."""
    return with_heads(member, Gliner2, Gliner2Config, PREFIX, NAMES)
