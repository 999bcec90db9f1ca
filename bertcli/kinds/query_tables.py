"""Read the table of query weights on a Router's route (SparseStaticEmbedding): queries need no pass of the network.

A query's weight for a piece of the vocabulary is the piece's number in the table if the piece occurs in the query, else
0. Source of the files' meaning: sentence-transformers 6.
"""

from typing import NamedTuple

import numpy as np

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.folder.router import weights_by_piece
from bertcli.tracing.dispatch import Array
from bertcli.weights.tensors import open_tensors

WEIGHTS = "weight"


class QueryTable(NamedTuple):
    """A table of weights, [vocabulary] or by piece, and its folder, which also has the tokenizer for queries."""

    folder: Folder
    weights: Array | dict[str, float]

    def by_id(self, ids: dict[str, int | None]) -> Array:
        """Return the weights as an array by id. `ids` maps each piece to its id, or to None: then it does not count."""
        if not isinstance(self.weights, dict):
            return self.weights
        weighted = [(id, weight) for piece, weight in self.weights.items() if (id := ids[piece]) is not None]
        weights = np.zeros(1 + max((id for id, _ in weighted), default=-1), np.float32)
        for id, weight in weighted:
            weights[id] = weight
        return weights


def read_table(at: Folder) -> QueryTable:
    """Read the table in a folder. Errors: BertcliError naming the file for one that is damaged."""
    name = weights_by_piece(at)
    if name is not None:
        weights = at.object(name)
        if not all(type(weight) in (int, float) for weight in weights.values()):
            raise BertcliError(f"{at.file(name)} has a weight that is not a number: use another model.")
        return QueryTable(at, {piece: float(weight) for piece, weight in weights.items()})
    tensors = open_tensors(at)
    if WEIGHTS not in tensors or len(tensors[WEIGHTS].shape) != 1:
        raise BertcliError(f"{at.path} has no tensor {WEIGHTS} of one axis: use another model.")
    return QueryTable(at, tensors[WEIGHTS].float32())
