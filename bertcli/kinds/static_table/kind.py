"""`StaticTable`: the mean of the rows of a table, one for each token of a text."""

from typing import Any

from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.pooling import DEFAULT_POOLING
from bertcli.kinds.static_table.folder_type import TYPE

REASON = "mean of the rows of a static model's table"


class StaticTable(Kind):
    """A vector for a text, without a pass of a network."""

    def purpose(self, *, one_label: bool) -> str:
        return "static word vectors"

    def uses(self) -> tuple[str, ...]:
        return ("encode",)


def read(layout: Layout, modules: Modules) -> StaticTable | None:
    """Read the settings of a static model; None for any other model."""
    if layout.folder_type is not TYPE:
        return None
    check_layers(layout)
    own: dict[str, Any] = {"pooling": DEFAULT_POOLING, "reason": REASON}
    if not layout.module_types:
        own["normalize"] = layout.folder.object("config.json").flag("normalize", False)
    return StaticTable(**settings(layout, modules) | own)
