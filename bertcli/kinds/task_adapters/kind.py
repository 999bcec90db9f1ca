"""An encoder with an adapter for each task: a vector for a text, pooled as its own code does."""

from bertcli.folder.layout import Layout
from bertcli.kinds.dense import DenseEncoder
from bertcli.kinds.modules import Modules, check_layers, settings


class TaskEncoder(DenseEncoder):
    """A vector for a text, by the adapter that was opened with the network."""


def read(layout: Layout, modules: Modules) -> TaskEncoder | None:
    """Read the settings of such an encoder; None for a folder without adapters of its own."""
    if not layout.adapters:
        return None
    check_layers(layout)
    modules.pooling, modules.reason = ("lasttoken",), "lasttoken, as in jina-embeddings-v5's own code"
    return TaskEncoder(**settings(layout, modules))
