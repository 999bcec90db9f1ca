"""Routes of a sentence-transformers Router other than the one for documents: tables of query weights.

modules.py reads the route for documents; kinds/query_tables.py reads the tables. Inference-free SPLADE models have
such a route for queries.
"""

from collections.abc import Iterable
from typing import Any

from bertcli.errors import quoted
from bertcli.folder.files import SINGLE_FILE, Folder, JsonSettings, is_plain, unusable, weights_file

TABLE = "SparseStaticEmbedding"


def read_tables(folder: Folder, router: JsonSettings | None) -> dict[str, Folder]:
    """Map each route that consists of a SparseStaticEmbedding only to its folder; empty without a Router.

    Errors: BertcliError for route_mappings, which would choose among routes by more than their names.
    """
    if router is None:
        return {}
    routes = _routes(router)
    types, parameters = router.get("types"), router.get("parameters")
    if routes and isinstance(parameters, dict) and parameters.get("route_mappings"):
        raise JsonSettings(parameters, router.file).refused("route_mappings")
    return {
        name: folder.within(paths[0])
        for name, paths in routes.items()
        if len(paths) == 1 and isinstance(types, dict) and _is_table(paths[0], types)
    }


def _routes(router: JsonSettings) -> dict[str, list[str]]:
    """Map each route other than "document" to the paths of its modules."""
    structure = router.get("structure")
    if not isinstance(structure, dict) or not all(isinstance(paths, list) for paths in structure.values()):
        raise router.refused("structure")
    return {name: paths for name, paths in structure.items() if name != "document"}


def _is_table(path: Any, types: dict[str, Any]) -> bool:
    """True if the module at a path is a SparseStaticEmbedding in a folder of its own."""
    class_name = types.get(path) if isinstance(path, str) and path and is_plain(path) else None
    return (
        isinstance(class_name, str)
        and class_name.startswith("sentence_transformers.")
        and class_name.endswith(f".{TABLE}")
    )


def missing_of_tables(tables: Iterable[Folder]) -> list[str]:
    """List the files that the folders of tables lack, as paths within the model's."""
    names = []
    for at in tables:
        by_piece = weights_by_piece(at)
        needed = ["config.json"]
        if by_piece is not None:
            needed.append(by_piece)
        elif weights_file(at) is None:
            needed.append(SINGLE_FILE)
        names += [f"{at.path.name}/{name}" for name in needed if not at.file(name).is_file()]
    return names


def weights_by_piece(at: Folder) -> str | None:
    """Return the JSON file with a weight for each piece that a table's config.json names; None if it names none."""
    config = at.optional("config.json")
    path = config.get("path")
    if path is None:
        return None
    if not isinstance(path, str) or not path.endswith(".json") or not is_plain(path):
        raise unusable(config.file, f"has its weights in {quoted(path)}, which is no file next to it")
    return path
