"""Read the two layers of bge-m3 beside its network, for more outputs of the pass that gives a text's dense vector.

`sparse_linear.pt` gives each token a weight, `colbert_linear.pt` a vector for late interaction. Source of their
meaning: FlagEmbedding, which saves them with torch.save; they are read as other tensors are, and nothing in them runs.
"""

from typing import NamedTuple

import numpy as np

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.folder.late_interaction import LateInteraction, Role
from bertcli.folder.layout import LATE_FILE, SPARSE_FILE, Layout
from bertcli.network.after_pooling import Dense
from bertcli.weights.tensors import open_file

ROLE = Role(left_out=1)  # of queries and documents alike: the first token has the dense vector


class TokenLayers(NamedTuple):
    """The layers that a folder has; one of them may be missing."""

    sparse: Dense | None
    late: Dense | None

    @property
    def interaction(self) -> LateInteraction | None:
        """The settings of queries and documents, if there is a layer for late interaction; else None."""
        return None if self.late is None else LateInteraction(ROLE, ROLE, mean=True)


def read_token_layers(layout: Layout) -> TokenLayers:
    """Read the files that exist; the layout lists at least one.

    Errors: BertcliError naming the file, if it is damaged, or a tensor in it has another shape than is needed.
    """
    width = layout.transformer.object("config.json").positive("hidden_size")
    sparse = late = None
    if SPARSE_FILE in layout.token_layers:
        sparse = _layer(layout.folder, SPARSE_FILE, width, 1, "relu")
    if LATE_FILE in layout.token_layers:
        late = _layer(layout.folder, LATE_FILE, width, None, "identity")
    return TokenLayers(sparse, late)


def _layer(folder: Folder, name: str, inputs: int | None, outputs: int | None, activation: str) -> Dense:
    """Read the layer in a file. inputs: the network's hidden size; outputs: None for any number."""
    tensors = open_file(folder.reading(name))
    file = folder.file(name)
    if {*tensors} != {"weight", "bias"}:
        raise BertcliError(f"{file} does not hold the two tensors weight and bias: use another model.")
    weight, bias = tensors["weight"], tensors["bias"]
    rows = weight.shape[0] if outputs is None and weight.shape else outputs
    if weight.shape != (rows, inputs) or bias.shape != (rows,) or not rows:
        needed = f"({'any' if outputs is None else outputs}, {inputs})"
        raise BertcliError(
            f"{file} has a weight of shape {weight.shape} and a bias of shape {bias.shape}; a layer on this network "
            f"has a weight of shape {needed} and a bias as long as its first side: use another model."
        )
    if "I" in weight.dtype + bias.dtype:
        raise BertcliError(f"{file} holds whole numbers, not weights: use another model.")
    return Dense(np.ascontiguousarray(weight.float32()), bias.float32(), activation)
