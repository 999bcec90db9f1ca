"""`SeveralOutputs`: a text's dense vector, the weights of its tokens, and a vector for each of them (bge-m3).

`sparse_linear.pt` gives each token a weight, `colbert_linear.pt` a vector for late interaction. Of an id that occurs
several times the largest weight counts; special tokens are left out:

    w_v = max_t relu(h_t · w + b),   t of the id v

Source of their meaning: FlagEmbedding, which saves them with torch.save; they are read as other tensors are, and
nothing in them runs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from bertcli.engine.packing import Packed
from bertcli.errors import BertcliError, check_finite
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.kinds.kind import Kind, Steps
from bertcli.kinds.late_interaction import LateInteraction, RoleSettings
from bertcli.kinds.max_sim import MaxSim
from bertcli.kinds.modules import Modules, check_layers, settings
from bertcli.kinds.relevance import RelevanceScore
from bertcli.kinds.several_outputs.folder_type import LATE_FILE, SPARSE_FILE, TYPE
from bertcli.kinds.sparse_vectors import SparseProduct, SparseVector, SparseWeights, SpladeWeights
from bertcli.network.after_pooling import Dense, LayerNorm
from bertcli.network.heads import Network
from bertcli.tokens import Tokenizer
from bertcli.tracing.dispatch import Array
from bertcli.weights.tensors import open_file, unwrapped

OF_FLAG_EMBEDDING = "cls, as FlagEmbedding pools models that have such layers beside them"
# Of queries and documents alike: the first token has the dense vector.
EVERY_OTHER_TOKEN = RoleSettings(left_out=1)
LATE = LateInteraction(
    EVERY_OTHER_TOKEN,
    EVERY_OTHER_TOKEN,
    mean=True,
    note="the score is the mean, over the query's tokens, of the largest product, as in bge-m3",
)


@dataclass(frozen=True, kw_only=True)
class SeveralOutputs(Kind):
    """A dense vector, and beside it weights and vectors of tokens, by layers of which one may be missing."""

    weights_layer: Dense | None
    vectors_layer: Dense | None

    def purpose(self, *, one_label: bool) -> str:
        sparse = ["sparse vectors"] if self.weights_layer is not None else []
        late = ["late interaction"] if self.vectors_layer is not None else []
        *outputs, last = ["sentence vectors", *sparse, *late]
        return f"{', '.join(outputs)} and {last} (bge-m3)"

    def uses(self) -> tuple[str, ...]:
        dense = ("encode", "tokens") if self.pooling else ()
        sparse = ("encode-sparse",) if self.weights_layer is not None else ()
        late = ("late",) if self.vectors_layer is not None else ()
        return (*dense, *sparse, *late)

    @property
    def layers(self) -> Mapping[str, Dense | LayerNorm]:
        of_outputs = {"sparse_linear": self.weights_layer, "colbert_linear": self.vectors_layer}
        return {**super().layers, **{path: layer for path, layer in of_outputs.items() if layer is not None}}

    @property
    def sparse_weights(self) -> SparseWeights:
        return SpladeWeights() if self.weights_layer is None else TokenWeights(self.weights_layer)

    @property
    def relevance(self) -> RelevanceScore:
        return SparseProduct(self.sparse_compared == "cosine") if self.vectors_layer is None else MaxSim(LATE)

    def matched_tokens(self, *, names_result: bool) -> MaxSim | None:
        return None if self.vectors_layer is None or names_result else MaxSim(LATE)

    def token_steps(self, prompt_name: str | None) -> Steps:
        if self.vectors_layer is None:
            return super().token_steps(prompt_name)
        reason = "none, as requested: a vector for every token but the first"
        return Steps((), (self.vectors_layer,), True, reason, LATE.document)


@dataclass(frozen=True)
class TokenWeights(SparseWeights):
    """The weight that `layer` gives each token."""

    layer: Dense

    @property
    def summary(self) -> str:
        return f"the largest weight of each token, from {SPARSE_FILE}"

    def of(self, hidden: Array, packed: Packed, network: Network, tokenizer: Tokenizer) -> Iterator[SparseVector]:
        weights = self.layer(hidden)
        check_finite(weights)
        # The mask token, as in FlagEmbedding, may have a weight.
        left_out = [id for id in map(tokenizer.special_id, ("cls", "sep", "pad", "unk")) if id is not None]
        for first, last in pairwise(packed.offsets.tolist()):
            ids, places = np.unique(packed.ids[first:last], return_inverse=True)
            largest_of = np.zeros(len(ids), np.float32)
            np.maximum.at(largest_of, places, weights[first:last, 0])
            kept = (largest_of > 0) & ~np.isin(ids, left_out)
            yield SparseVector(ids[kept].astype(np.int32), largest_of[kept])


def read(layout: Layout, modules: Modules) -> SeveralOutputs | None:
    """Read the layers that exist beside the network; None for a folder without them.

    Without modules.json it pools as FlagEmbedding does, which saved it. Errors: BertcliError naming the file, if it is
    damaged, or a tensor in it has another shape than is needed.
    """
    if not TYPE.is_of(layout.folder, layout.module_types):
        return None
    check_layers(layout)
    of_modules = settings(layout, modules)
    if not layout.module_types:
        of_modules |= {"pooling": ("cls",), "normalize": True, "reason": OF_FLAG_EMBEDDING}
    width = layout.transformer.object("config.json").positive("hidden_size")
    weights_layer = vectors_layer = None
    if layout.folder.has(SPARSE_FILE):
        weights_layer = _layer(layout.folder, SPARSE_FILE, width, 1, "relu")
    if layout.folder.has(LATE_FILE):
        vectors_layer = _layer(layout.folder, LATE_FILE, width, None, "identity")
    return SeveralOutputs(**of_modules, weights_layer=weights_layer, vectors_layer=vectors_layer)


def _layer(folder: Folder, name: str, inputs: int | None, outputs: int | None, activation: str) -> Dense:
    """Read the layer in a file. inputs: the network's hidden size; outputs: None for any number."""
    tensors = unwrapped(open_file(folder.reading(name)))
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
