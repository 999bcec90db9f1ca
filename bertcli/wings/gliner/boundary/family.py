"""The family of a GLiNER2.5 model: one of models/ with the heads of GLiNER2.5 (network.py).

Source of names and meaning: GLiNER2 2.1.0.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from bertcli.models.registry import Family
from bertcli.wings.gliner.boundary.network import BoundaryHeads
from bertcli.wings.gliner.boundary.pool import PoolLimits
from bertcli.wings.gliner.boundary.settings import BoundarySettings
from bertcli.wings.gliner.on_backbone import OnBackbone, with_heads
from bertcli.wings.gliner.schema.settings import OWN_TOKENS

PREFIX = "encoder."
HEAD = "boundary_head."

NAMES = """
candidate_scores.inner.*                     classifier.0.*
candidate_scores.output.*                    classifier.3.*
absence.output.*                             boundary_head.null_projection.*
boundaries.{begin,finish}                  boundary_head.boundary_encoder.{bos,eos}_state
boundaries.{left,right,joined}.*           boundary_head.boundary_encoder.{left,right,output}_projection.*
boundaries.norm.*                          boundary_head.boundary_encoder.layer_norm.*
boundaries.attention.#.norm.*              boundary_head.boundary_encoder.attention_blocks.#.norm.*
boundaries.attention.#.attention.{query,key,value}.*
    boundary_head.boundary_encoder.attention_blocks.#.qkv_projection.*[{0,1,2}/3]
boundaries.attention.#.attention.output.*
    boundary_head.boundary_encoder.attention_blocks.#.output_projection.*
boundaries.refinement.#.norm.*             boundary_head.boundary_encoder.refinement_blocks.#.norm.*
boundaries.refinement.#.{value,gate}.*
    boundary_head.boundary_encoder.refinement_blocks.#.input_projection.*[{0,1}/2]
boundaries.refinement.#.output.*
    boundary_head.boundary_encoder.refinement_blocks.#.output_projection.*
{begin,end,inside}.state.*
    boundary_head.boundary_query_head.{start_boundary,end_boundary,inside_text}_projection.*
{begin,end,inside}.type.*
    boundary_head.boundary_query_head.{start_query,end_query,inside_query}_projection.*
fit_{start,end}.output.*              boundary_head.shared_pool_builder.{start,end}_projection.*
spans.{start,finish,length,prior}.*
    boundary_head.shared_pool_scorer.{start,end,length,prior}_projection.*
spans.content.value.*
    boundary_head.shared_pool_scorer.content_pooler.value_projection.*
spans.content.norm.*                         boundary_head.shared_pool_scorer.content_pooler.layer_norm.*
spans.content.output.*                       boundary_head.shared_pool_scorer.content_projection.*
spans.norm.*                                 boundary_head.shared_pool_scorer.candidate_norm.*
spans.type.*                                 boundary_head.shared_pool_scorer.query_projection.*
spans.film.*                                 boundary_head.shared_pool_scorer.film.*
spans.{inner,output}.*                       boundary_head.shared_pool_scorer.film_output.{0,3}.*
"""
# Of heads for records, relations and other pools of spans, which nothing here reads.
IGNORED = (
    "boundary_head.boundary_proposer.",
    "boundary_head.candidate_encoder.",
    "boundary_head.count_head.",
    "boundary_head.pair_scorer.",
    "record_decoder.",
    "relation_pair_generator.",
    "relation_scorer.",
)


class Gliner25Config(OnBackbone):
    """The settings of GLiNER2.5 beside the backbone's."""

    @property
    def settings(self) -> BoundarySettings:
        settings: BoundarySettings = self.own
        return settings

    def sizes_of_heads(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """G, the width of a boundary's state, and J of two beside each other (2·G); Y, that inside a refinement; Z, the
        width of a span, y of what a type does to it (2·Z); c of its content; O, that inside the candidates' head (2·H);
        a, r, the numbers of layers of attention and of refinement.
        """
        own, width = self.settings, self.settings.boundary_dim
        inside = max(1, int(width * own.ffn_multiplier))
        return {
            "G": width,
            "J": 2 * width,
            "Y": inside,
            "Z": own.pair_dim,
            "y": 2 * own.pair_dim,
            "c": own.content_dim,
            "O": 2 * sizes["H"],
            "a": own.attention_layers,
            "r": own.refinement_layers,
        }

    @property
    def has_content(self) -> bool:
        return self.settings.has_content

    @property
    def boundary_dim(self) -> int:
        return self.settings.boundary_dim

    @property
    def pair_dim(self) -> int:
        return self.settings.pair_dim

    @property
    def boundary_heads(self) -> int:
        return self.settings.attention_heads

    @property
    def boundary_window(self) -> int | None:
        """How far a boundary sees in both directions; None: to the ends of the text."""
        return self.settings.attention_window or None

    @property
    def pool_limits(self) -> PoolLimits:
        own = self.settings
        return PoolLimits(own.pool_boundary_top_k, own.pool_size, own.min_pool_per_query)

    @property
    def marks(self) -> dict[str, int]:
        """The ids of the tokens that the library has added, if they are the last ones, as they are published."""
        first = self.vocab_size - len(OWN_TOKENS)
        return {token: first + number for number, token in enumerate(OWN_TOKENS)}


@cache
def with_boundaries(member: Family) -> Family:
    """Make the family whose models have the heads of GLiNER2.5 on a backbone of this family."""
    made = with_heads(member, BoundaryHeads, Gliner25Config, PREFIX, NAMES)
    return replace(made, ignored_prefixes=(*made.ignored_prefixes, *IGNORED))
