"""Whitened vectors: their numbers have mean 0 and variance 1, and do not correlate, over the texts they were made with.

y = (x - mean) · matrix

Source: Su et al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval".
"""

from bertcli.errors import BertcliError
from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind
from bertcli.kinds.modules import Modules, settings
from bertcli.network.after_pooling import Dense
from bertcli.weights.tensors import open_tensors


class WhitenedVectors(Kind):
    """A vector for a text, whitened."""

    def purpose(self, *, one_label: bool) -> str:
        return "whitened sentence vectors"

    def uses(self) -> tuple[str, ...]:
        return ("encode",)


def read(layout: Layout, modules: Modules) -> WhitenedVectors:
    """Read mean [H] and matrix [H, width] in the folder of the module Whitening; bertcli calls it by its name."""
    folder = modules.folders["bertcli_whitening.Whitening"]
    tensors = open_tensors(folder)
    if {*tensors} != {"mean", "matrix"}:
        raise BertcliError(f"{folder.path} does not hold the two tensors mean and matrix: use another model.")
    mean, matrix = tensors["mean"].float32(), tensors["matrix"].float32()
    whitening = Dense(matrix.T, -mean @ matrix, "identity")
    of_modules = settings(layout, modules)
    own = {"dense": (*of_modules["dense"], whitening), "reason": f"{modules.reason}, whitened"}
    return WhitenedVectors(**of_modules | own)
