"""`Schema`: entities and labels of texts, of types and candidates that a request names.

finder.py computes the entities, candidates.py the scores of candidates.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bertcli.errors import number_of
from bertcli.folder.layout import Layout
from bertcli.kinds.candidate_labels import CandidateOptions, CandidateScorer
from bertcli.kinds.entities import EntityFinder, FinderOptions
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.opened import Opened
from bertcli.wings.gliner.named_types import NamedTypesAndLabels
from bertcli.wings.gliner.schema.folder_type import TYPE
from bertcli.wings.gliner.schema.settings import HEADS, SchemaSettings


@dataclass(frozen=True, kw_only=True)
class Schema(NamedTypesAndLabels):
    """Entities and labels of types that a request names."""

    _own_heads = HEADS
    _called = "GLiNER2"

    schema: SchemaSettings

    def entity_finder(self, model: Opened, options: FinderOptions) -> EntityFinder:
        # Imported late, as below: a model is opened without it.
        from bertcli.wings.gliner.schema.finder import SchemaFinder

        return SchemaFinder(self.schema, model, options)

    def candidate_scorer(self, model: Opened, options: CandidateOptions) -> CandidateScorer:
        from bertcli.wings.gliner.schema.candidates import SchemaCandidates

        return SchemaCandidates.of(self.schema, model, options)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"schema": {"max_words": self.schema.max_width, "backbone": self.schema.model_name}}


def lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Put the facts in a record of `info` in words: the lines of its table. kinds/read.py calls it by its name."""
    facts = record.get("schema")
    if facts is not None:
        most = number_of(facts["max_words"], "word")
        yield "Entities", f"of types that you name (--labels), of up to {most}; no text is cut"
        yield "Labels", "that you name (classify --candidates)"


def read(layout: Layout, modules: Modules) -> Schema | None:
    """Read the settings of a GLiNER2 model; None for any other model."""
    if layout.folder_type is not TYPE:
        return None
    check_layers(layout)
    return Schema(**settings(layout, modules), schema=layout.type_settings)
