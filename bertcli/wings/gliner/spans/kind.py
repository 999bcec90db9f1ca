"""`Spans`: entities of the types that a request names, in any words, as spans of whole words.

finder.py computes the spans.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bertcli.errors import number_of
from bertcli.folder.layout import Layout
from bertcli.kinds.entities import EntityFinder, FinderOptions
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.opened import Opened
from bertcli.wings.gliner.named_types import NamedTypes
from bertcli.wings.gliner.spans.folder_type import TYPE
from bertcli.wings.gliner.spans.settings import GlinerSettings

# Where a model is needed that does this: one to suggest. extensions/of_kinds.py finds it by its name.
FITTING = {"tag --labels": "-m urchade/gliner_small-v2.1"}


@dataclass(frozen=True, kw_only=True)
class Spans(NamedTypes):
    """Entities of types that a request names."""

    _called = "GLiNER"

    gliner: GlinerSettings

    def entity_finder(self, model: Opened, options: FinderOptions) -> EntityFinder:
        # Imported late: a model is opened without it.
        from bertcli.wings.gliner.spans.finder import SpanFinder

        return SpanFinder(self.gliner, model, options)

    @property
    def facts(self) -> Mapping[str, Any]:
        settings = self.gliner
        return {
            "spans": {
                "max_words": settings.max_width,
                "window_words": settings.max_len,
                "width": settings.hidden_size,
                "backbone": settings.model_name,
            }
        }


def lines(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Put the facts in a record of `info` in words: the lines of its table. kinds/read.py calls it by its name."""
    facts = record.get("spans")
    if facts is not None:
        most, window = number_of(facts["max_words"], "word"), number_of(facts["window_words"], "word")
        yield (
            "Entities",
            f"of types that you name (--labels), of up to {most}; no text is cut, {window} are read at a time",
        )


def read(layout: Layout, modules: Modules) -> Spans | None:
    """Read the settings of a span model; None for any other model."""
    if layout.folder_type is not TYPE:
        return None
    check_layers(layout)
    return Spans(**settings(layout, modules), gliner=layout.type_settings)
