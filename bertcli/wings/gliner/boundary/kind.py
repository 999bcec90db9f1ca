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
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.opened import Opened
from bertcli.wings.gliner.boundary.folder_type import TYPE
from bertcli.wings.gliner.boundary.settings import HEADS, BoundarySettings
from bertcli.wings.gliner.named_types import NamedTypesAndLabels


@dataclass(frozen=True, kw_only=True)
class Boundary(NamedTypesAndLabels):
    """Entities and labels of types that a request names."""

    _own_heads = HEADS
    _called = "GLiNER2.5"

    boundary: BoundarySettings

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


def lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Put the facts in a record of `info` in words: the lines of its table. kinds/read.py calls it by its name."""
    facts = record.get("boundary")
    if facts is not None:
        most = number_of(facts["pool_size"], "span")
        yield "Entities", f"of types that you name (--labels), of any length, from {most} of a window; no text is cut"
        yield "Labels", "that you name (classify --candidates)"


def read(layout: Layout, modules: Modules) -> Boundary | None:
    """Read the settings of a GLiNER2.5 model; None for any other model."""
    if layout.folder_type is not TYPE:
        return None
    check_layers(layout)
    return Boundary(**settings(layout, modules), boundary=layout.type_settings)
