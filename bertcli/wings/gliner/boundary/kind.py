"""`Boundary`: entities of any length and labels of texts, of types and candidates that a request names.

finder.py computes the entities and the scores of candidates.
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
from bertcli.wings.gliner.boundary.folder_type import TYPE
from bertcli.wings.gliner.boundary.settings import HEADS, BoundarySettings


@dataclass(frozen=True, kw_only=True)
class Boundary(Kind):
    """Entities and labels of types that a request names."""

    boundary: BoundarySettings

    def purpose(self, *, one_label: bool) -> str:
        return "entities and labels of any type (GLiNER2.5)"

    def uses(self) -> tuple[str, ...]:
        return "tag", "entities", "zero-shot"

    @property
    def commands_of_heads(self) -> Mapping[str, str]:
        return {"spans": "tag --labels", "candidate_scores": "classify --candidates"}

    def refusal_without_labels(self, name: str) -> str | None:
        return (
            f"{name} is a GLiNER2.5 model, which finds entities of any type: name the types that you want, as in "
            'labels=["person", "city"] (--labels "person, city").'
        )

    def entity_finder(self, model: Opened, options: FinderOptions) -> EntityFinder:
        # Imported late, as below: a model is opened without it.
        from bertcli.wings.gliner.boundary.finder import BoundaryFinder

        return BoundaryFinder(self.boundary, model, options)

    def candidate_scorer(self, model: Opened, options: CandidateOptions) -> CandidateScorer:
        from bertcli.wings.gliner.boundary.finder import BoundaryCandidates

        return BoundaryCandidates.of(self.boundary, model, options)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"boundary": {"pool_size": self.boundary.pool_size, "backbone": self.boundary.model_name}}

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
            "this is the encoder of a GLiNER2.5 model, which is what --engine onnx runs; words, spans and the scores "
            "of labels are computed after it, and no graph of bertcli has them."
        )


def lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Put the facts in a record of `info` in words: the lines of its table. kinds/read.py calls it by its name."""
    facts = record.get("boundary")
    if facts is not None:
        most = number_of(facts["pool_size"], "span")
        yield "Entities", f"of types that you name (--labels), of any length, from {most} of a window"
        yield "Labels", "that you name (classify --candidates)"


def read(layout: Layout, modules: Modules) -> Boundary | None:
    """Read the settings of a GLiNER2.5 model; None for any other model."""
    if layout.folder_type is not TYPE:
        return None
    check_layers(layout)
    return Boundary(**settings(layout, modules), boundary=layout.type_settings)
