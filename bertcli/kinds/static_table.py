"""A static model (StaticEmbedding, model2vec): a text's vector is the mean of the rows of a table, one for each token.

weights/static.py opens the table, as a network whose hidden states are its rows.
"""

from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, check_layers, settings


class StaticTable(Kind):
    """A vector for a text, without a pass of a network."""

    def purpose(self, *, one_label: bool, contextual: bool) -> str:
        return "static word vectors"

    def uses(self, *, contextual: bool) -> tuple[str, ...]:
        return ("encode",)


def read(layout: Layout, modules: Modules) -> StaticTable | None:
    """Read the settings of a static model; None for any other model."""
    if not layout.is_static:
        return None
    check_layers(layout)
    return StaticTable(**settings(layout, modules))
