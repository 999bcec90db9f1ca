"""A sparse encoder (SPLADE): a weight for each entry of the vocabulary, from the masked-language-model head.

sparse_vectors.py computes them; a Router may have a table for queries (query_tables.py).
"""

from dataclasses import dataclass
from typing import Literal

from bertcli.errors import check_choice
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.sparse_vectors import SparseProduct, SpladeWeights


@dataclass(frozen=True, kw_only=True)
class SparseEncoder(Kind):
    """A sparse vector for a text."""

    weights: SpladeWeights

    def purpose(self, *, one_label: bool) -> str:
        return "sparse vectors (SPLADE)"

    def uses(self) -> tuple[str, ...]:
        return ("encode-sparse",)

    def refusal_of_one_vector(self) -> str:
        return "This checkpoint is made for sparse vectors: add --sparse (model.encode_sparse), or choose a pooling."

    @property
    def compared(self) -> str:
        return "cosine"  # of the single vectors that a pooling gives

    @property
    def relevance(self) -> SparseProduct:
        return SparseProduct(self.sparse_compared == "cosine")

    @property
    def sparse_weights(self) -> SpladeWeights:
        return self.weights

    @property
    def sparse_compared(self) -> str:
        check_choice("similarity", self.similarity, Literal["dot", "cosine"])
        return self.similarity


def read(layout: Layout, modules: Modules) -> SparseEncoder | None:
    """Read the settings of a sparse encoder; None for any other model."""
    folder = modules.folders.get("SpladePooling")
    if folder is None:
        return None
    check_layers(layout)
    of_modules = settings(layout, modules, similarity="dot")
    return SparseEncoder(**of_modules, weights=read_weights(folder, layout))


def read_weights(module: Folder, layout: Layout) -> SpladeWeights:
    """Read a SpladePooling module's config.json, and the model's limit of weights."""
    config = module.object("config.json")
    return SpladeWeights(
        config.one_of("pooling_strategy", ("max", "sum")),
        config.one_of("activation_function", ("relu", "log1p_relu")),
        layout.settings.positive("max_active_dims"),
        is_stated=True,
    )
