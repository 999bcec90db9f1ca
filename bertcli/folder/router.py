"""Routes of a sentence-transformers Router other than the one for documents: networks, and tables of query weights.

modules.py reads the modules of a route that has a network: asymmetric models have such a route for queries.
kinds/query_tables.py reads the tables, which inference-free SPLADE models have.
"""

from collections.abc import Iterable
from typing import Any

from bertcli.errors import quoted
from bertcli.folder.files import SINGLE_FILE, Folder, JsonSettings, is_plain, unusable, weights_file
from bertcli.folder.modules import NETWORKS, type_of

TABLE = "SparseStaticEmbedding"


def read_tables(folder: Folder, router: JsonSettings | None) -> dict[str, Folder]:
    """Map each route that consists of a SparseStaticEmbedding only to its folder; empty without a Router.

    Errors: as of `_checked_routes`.
    """
    if router is None:
        return {}
    types = router.get("types")
    return {
        name: folder.within(paths[0])
        for name, paths in _checked_routes(router).items()
        if len(paths) == 1 and isinstance(types, dict) and _is_table(paths[0], types)
    }


def network_routes(router: JsonSettings | None) -> tuple[str, ...]:
    """The names of the routes that begin with a network of their own; none without a Router.

    Errors: as of `_checked_routes`.
    """
    types = None if router is None else router.get("types")
    if router is None or not isinstance(types, dict):
        return ()
    names = []
    for name, paths in _checked_routes(router).items():
        first = paths[0] if paths and isinstance(paths[0], str) else None
        if type_of({"type": types.get(first)}) in NETWORKS:
            names.append(name)
    return tuple(names)


def _checked_routes(router: JsonSettings) -> dict[str, list[str]]:
    """As `_routes`. Errors: BertcliError for parameters that would choose among routes by more than their names."""
    routes, parameters = _routes(router), router.get("parameters")
    if routes and isinstance(parameters, dict):
        settings = JsonSettings(parameters, router.file)
        if settings.get("route_mappings"):
            raise settings.refused("route_mappings")
        # The route of a text whose role nothing says.
        if settings.get("default_route") not in (None, "document"):
            raise settings.refused("default_route", "; bertcli supports 'document'")
    return routes


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
