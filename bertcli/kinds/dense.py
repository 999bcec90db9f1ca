"""A dense encoder: a vector for a text, pooled from its tokens as the folder says. Any folder that is no other kind."""

from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, check_layers, settings


class DenseEncoder(Kind):
    """A vector for a text; with a folder that specifies no pooling, only if it is asked for."""

    def purpose(self, *, one_label: bool) -> str:
        own = "sentence vectors" if self.pooling else ""
        if self.routes.has_query_network:
            own += ", with a network of their own for queries"
        return super().purpose(one_label=one_label) or own

    def uses(self) -> tuple[str, ...]:
        return ("encode", "tokens") if self.pooling else ()


def read(layout: Layout, modules: Modules) -> DenseEncoder:
    """Read the settings of a dense encoder."""
    check_layers(layout)
    return DenseEncoder(**settings(layout, modules))
