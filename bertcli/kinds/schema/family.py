"""The family of a GLiNER2 model: one of models/ with the heads of GLiNER2 (network.py).

It is made when such a model is opened: its network has these heads, its configuration their sizes, and its tensors
have the prefix that the library gives a backbone. Source of names and meaning: GLiNER2 2.1.0.
"""

from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from bertcli.kinds.schema.network import CandidateScores, EntityScores, InstanceCount
from bertcli.kinds.schema.rows import rows_of_pass
from bertcli.kinds.schema.settings import BEFORE_TEXT, ENTITY, HEADS, LABEL, OWN_TOKENS, TASK, SchemaSettings
from bertcli.models.registry import Family
from bertcli.network.module import fixed, optional_parts, part, setting
from bertcli.tracing.dispatch import Array, Integers, untraced

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


@cache
def with_schema(member: Family) -> Family:
    """Make the family whose models have the heads of GLiNER2 beside a backbone of this family."""
    network, config = _network(member.network), _config(member.config)
    return replace(
        member, config=config, network=network, prefixes=(PREFIX,), names=(NAMES, *member.names), variants={}
    )


def _config(base: Any) -> Any:
    """Make the configuration: the backbone's, and the settings of GLiNER2."""

    class SchemaConfig(base):  # type: ignore[misc]  # a class of each family
        schema: Any = None

        @cached_property
        def sizes(self) -> dict[str, int]:
            """With G, the width of words, spans and types, which is the backbone's; Y, that inside a projection (4·G);
            O, that inside the other heads (2·G); Z, the GRU's gates (3·G); and J, the output of the two narrow layers
            beside their input (128 + G).
            """
            width = super().sizes["H"]
            return {**super().sizes, "G": width, "Y": 4 * width, "O": 2 * width, "Z": 3 * width, "J": 128 + width}

        @property
        def settings(self) -> SchemaSettings:
            found: SchemaSettings = self.schema
            return found

        @property
        def max_width(self) -> int:
            return self.settings.max_width

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
            first = int(self.vocab_size) - len(OWN_TOKENS)
            return {token: first + number for number, token in enumerate(OWN_TOKENS)}

    return SchemaConfig


def _network(base: Any) -> Any:
    """Make the network: the backbone's, with the heads of GLiNER2 in place of its own, but for the pooler."""
    others = [head for head in optional_parts(base) if head != "pooler"]
    without = {"__annotations__": dict.fromkeys(others, Any), **{head: fixed(None) for head in others}}
    bare: Any = type(base.__name__, (base,), without)

    class Gliner2(bare):  # type: ignore[misc]  # a class of each family
        instances: InstanceCount | None = part(outputs="20")
        spans: EntityScores | None = part()
        candidate_scores: CandidateScores | None = part(outputs="1")
        marks: dict[str, int] = setting("marks")
        max_width: int = setting("max_width")

        def input_rows(self, head: str, batch: Any) -> Integers | None:
            rows: Integers | None = None if head in HEADS else super().input_rows(head, batch)
            return rows

        def predict(self, head: str, hidden: Array, batch: Any) -> Array:
            """A head's logits; of those of GLiNER2 what a pass without words has: see `rows_of_pass`."""
            if head not in HEADS:
                logits: Array = super().predict(head, hidden, batch)
                return logits
            ids, offsets = untraced(batch.ids), untraced(batch.offsets)
            label = LABEL if head == "candidate_scores" else ENTITY
            rows = rows_of_pass(
                ids, offsets, self.marks[TASK], self.marks[label], self.marks[BEFORE_TEXT], self.max_width
            )
            of_head: Any = getattr(self, head)
            scores: Array = of_head(hidden, rows)
            return scores

    return Gliner2
