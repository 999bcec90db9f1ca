"""`Spans`: entities of the types that a request names, in any words, as spans of whole words.

tasks/parts/entities.py computes the spans.
"""

from dataclasses import dataclass

from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.spans.folder_type import TYPE
from bertcli.kinds.spans.settings import GlinerSettings


@dataclass(frozen=True, kw_only=True)
class Spans(Kind):
    """Entities of types that a request names."""

    gliner: GlinerSettings

    def purpose(self, *, one_label: bool, contextual: bool) -> str:
        return "entities of any type (GLiNER)"

    def uses(self, *, contextual: bool) -> tuple[str, ...]:
        return "tag", "entities"

    @property
    def takes_labels(self) -> bool:
        return True


def read(layout: Layout, modules: Modules) -> Spans | None:
    """Read the settings of a span model; None for any other model."""
    if layout.folder_type is not TYPE:
        return None
    check_layers(layout)
    return Spans(**settings(layout, modules), gliner=layout.type_settings)
