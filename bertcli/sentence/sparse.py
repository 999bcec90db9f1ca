"""Read the settings of sparse vectors (SPLADE): a weight for each entry of the vocabulary.

tasks/compute/encode_sparse.py computes them. Not here: bge-m3's sparse output (token_layers.py), and weights of queries
without a pass of the network (query_tables.py).
"""

from typing import NamedTuple

from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout


class SparsePooling(NamedTuple):
    """SPLADE: a text's weight of each vocabulary entry is the `max` or the `sum` over its tokens' logits.

    The logits first go through ln(1 + relu(x)) (`relu`), or through that and once more ln(1 + x) (`log1p_relu`).
    """

    strategy: str = "max"
    activation: str = "relu"
    max_active: int | None = None  # keep only this number of the largest weights; None: all


def read_sparse(module: Folder, layout: Layout) -> SparsePooling:
    """Read a SpladePooling module's config.json, and the model's limit of weights."""
    config = module.object("config.json")
    return SparsePooling(
        config.one_of("pooling_strategy", ("max", "sum")),
        config.one_of("activation_function", ("relu", "log1p_relu")),
        layout.settings.positive("max_active_dims"),
    )
