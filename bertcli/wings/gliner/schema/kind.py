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
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.opened import Opened
from bertcli.wings.gliner.schema.folder_type import TYPE
from bertcli.wings.gliner.schema.settings import HEADS, SchemaSettings


@dataclass(frozen=True, kw_only=True)
class Schema(Kind):
    """Entities and labels of types that a request names."""

    schema: SchemaSettings

    def purpose(self, *, one_label: bool) -> str:
        return "entities and labels of any type (GLiNER2)"

    def uses(self) -> tuple[str, ...]:
        return "tag", "entities", "zero-shot"

    @property
    def commands_of_heads(self) -> Mapping[str, str]:
        return {"spans": "tag --labels", "candidate_scores": "classify --candidates"}

    def refusal_without_labels(self, name: str) -> str | None:
        return (
            f"{name} is a GLiNER2 model, which finds entities of any type: name the types that you want, as in "
            'labels=["person", "city"] (--labels "person, city").'
        )

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

    def refusal_in_a_graph(self, head: str) -> str | None:
        if head not in HEADS:
            return None
        return (
            "The scores of spans and of candidates depend on the positions of words and marks, which are no input of a "
            "graph: leave out --head to export the encoder."
        )

    @property
    def note_of_encoder_graph(self) -> str:
        return (
            "this is the encoder of a GLiNER2 model, which is what --engine onnx runs; words, spans and the scores of "
            "labels are computed after it, and no graph of bertcli has them."
        )


def lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Put the facts in a record of `info` in words: the lines of its table. kinds/read.py calls it by its name."""
    facts = record.get("schema")
    if facts is not None:
        most = number_of(facts["max_words"], "word")
        yield "Entities", f"of types that you name (--labels), of up to {most}"
        yield "Labels", "that you name (classify --candidates)"


def read(layout: Layout, modules: Modules) -> Schema | None:
    """Read the settings of a GLiNER2 model; None for any other model."""
    if layout.folder_type is not TYPE:
        return None
    check_layers(layout)
    return Schema(**settings(layout, modules), schema=layout.type_settings)
