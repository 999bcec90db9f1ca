"""The routes of a Router of sentence-transformers that are not for documents: queries without a pass of a network.

`SparseStaticEmbedding` is a table: the weight of a query for a piece of the vocabulary is that piece's number, if it
occurs in the query. Source of the files' meaning: sentence-transformers 6.
"""

from typing import Any, NamedTuple

import numpy as np

from bertcli.checkpoint.folder import Folder
from bertcli.checkpoint.modules import ROUTER_FILE, is_routed
from bertcli.checkpoint.tensors import open_tensors, weights_file
from bertcli.checkpoint.untrusted import JsonSettings, is_plain, unusable
from bertcli.errors import BertcliError, shown
from bertcli.tracing.dispatch import Array

TABLE, WEIGHTS = "SparseStaticEmbedding", "weight"


class QueryTable(NamedTuple):
    """What a table's module holds: `weights` [vocabulary], or by piece; and its folder, which has its tokenizer."""

    folder: Folder
    weights: Array | dict[str, float]

    def by_id(self, ids: dict[str, int | None]) -> Array:
        """The weight of each id, from the ids of pieces; a piece that is in no vocabulary does not count."""
        if not isinstance(self.weights, dict):
            return self.weights
        found = [(id, weight) for piece, weight in self.weights.items() if (id := ids[piece]) is not None]
        weights = np.zeros(1 + max((id for id, _ in found), default=-1), np.float32)
        for id, weight in found:
            weights[id] = weight
        return weights


def routes(folder: Folder) -> dict[str, list[str]]:
    """The paths of the modules on each route that is not for documents; none where there is no Router."""
    if not is_routed(folder):
        return {}
    config = folder.object(ROUTER_FILE)
    structure = config.get("structure")
    if not isinstance(structure, dict) or not all(isinstance(paths, list) for paths in structure.values()):
        raise config.refused("structure")
    return {name: paths for name, paths in structure.items() if name != "document"}


def tables(folder: Folder) -> dict[str, Folder]:
    """The folder of each route that is nothing but a table.

    Errors: BertcliError for route_mappings, which would choose among routes by more than their names.
    """
    others, config = routes(folder), folder.optional(ROUTER_FILE)
    types, parameters = config.get("types"), config.get("parameters")
    parameters = JsonSettings(parameters if isinstance(parameters, dict) else {}, config.file)
    if others and parameters.get("route_mappings"):
        raise parameters.refused("route_mappings")
    return {
        name: folder.within(paths[0])
        for name, paths in others.items()
        if len(paths) == 1 and isinstance(types, dict) and _is_table(paths[0], types)
    }


def _is_table(path: Any, types: dict[str, Any]) -> bool:
    kind = types.get(path) if isinstance(path, str) and path and is_plain(path) else None
    return isinstance(kind, str) and kind.startswith("sentence_transformers.") and kind.endswith(f".{TABLE}")


def missing_tables(folder: Folder) -> list[str]:
    """The files of tables that a folder lacks, as paths within it."""
    names = []
    for at in tables(folder).values():
        lacks_weights = weights_file(at) is None and _listed(at) is None
        needed = ["config.json", *(["model.safetensors"] if lacks_weights else [])]
        names += [f"{at.path.name}/{name}" for name in needed if not at.file(name).is_file()]
    return names


def _listed(at: Folder) -> str | None:
    """The file of weights by piece that a table's config.json names, if it does."""
    config = at.optional("config.json")
    path = config.get("path")
    if path is None:
        return None
    if not isinstance(path, str) or not path.endswith(".json") or not is_plain(path):
        raise unusable(config.file, f"has its weights in {shown(path)}, which is no file next to it")
    return path


def read_table(at: Folder) -> QueryTable:
    """The table in a folder; BertcliError naming the file for one that is damaged."""
    name = _listed(at)
    if name is not None:
        weights = at.object(name)
        if not all(type(weight) in (int, float) for weight in weights.values()):
            raise BertcliError(f"{at.file(name)} has a weight that is not a number: fetch the model again.")
        return QueryTable(at, {piece: float(weight) for piece, weight in weights.items()})
    tensors = open_tensors(at)
    if WEIGHTS not in tensors or len(tensors[WEIGHTS].shape) != 1:
        raise BertcliError(f"{at.path} has no tensor {WEIGHTS} of one axis: fetch the model again.")
    return QueryTable(at, tensors[WEIGHTS].float32())
