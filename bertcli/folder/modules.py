"""The modules of a sentence-transformers folder: the list in modules.json, and the orders that bertcli supports.

A listed module is applied or refused, never skipped; the class that a file names is looked up in MODULES, or among
those that plugins read, never imported. What a module's own config.json says is not here: kinds/ reads it.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.extensions import reads_kind
from bertcli.folder.files import Folder, JsonSettings, is_plain, unusable

MODULES_FILE, ROUTER_FILE = "modules.json", "router_config.json"
NETWORKS = ("Transformer", "MLMTransformer", "StaticEmbedding")
MASK = "MultiVectorMask"  # chooses the tokens of a late-interaction model that are scored
MODULES = (*NETWORKS, "Pooling", "SpladePooling", "Dense", "LayerNorm", "Normalize", "LogitScore", MASK)
# Modules with a config.json, and perhaps weights, in a folder of their own.
IN_FOLDERS = ("Pooling", "SpladePooling", "Dense", "LayerNorm", "LogitScore", MASK)
MODULE_ORDER = re.compile(
    "Transformer( Pooling( Dense| LayerNorm)*)?( Normalize)*|(MLM)?Transformer SpladePooling|Transformer LogitScore"
    "|StaticEmbedding( Dense)*( Normalize)*|Transformer( Dense)*( Normalize)* MultiVectorMask( Normalize)*"
)
SUPPORTED = "one Transformer, one Pooling, then Dense and Normalize, or one and SpladePooling or LogitScore"
SENTENCE, SCORES = "sentence_embedding", "scores"  # module outputs: of an embedding model, of a cross-encoder
PYLATE = "pylate.models.Dense.Dense"
# Of Stanford's late-interaction models, which have no modules: the class in config.json, and the layer's tensor.
STANFORD, PROJECTION = "HF_ColBERT", "linear.weight"


class ModuleEntry(NamedTuple):
    """A module: the name of its class, and its folder within the model's; empty if that is the model's.

    Of a class that a plugin's kind reads, type is the name with the package.
    """

    type: str
    path: str

    @property
    def is_brought(self) -> bool:
        """True if a plugin's kind reads it."""
        return "." in self.type


def read_router(folder: Folder) -> JsonSettings | None:
    """Read router_config.json of a sentence-transformers Router; None for any other model."""
    is_router = folder.has(MODULES_FILE) and folder.has(ROUTER_FILE)
    return folder.object(ROUTER_FILE) if is_router else None


def read_entries(folder: Folder) -> list[Any]:
    """Read the list in modules.json, whose entries `module_of` checks; empty without that file.

    For a Router these are the modules of the folder's route.
    """
    if not folder.has(MODULES_FILE):
        return []
    entries = folder.value(MODULES_FILE)
    if not isinstance(entries, list):
        raise BertcliError(
            f"{folder.file(MODULES_FILE)} is not a list of modules but {quoted(entries)}: correct it, or use another "
            "model."
        )
    router = read_router(folder)
    return entries if router is None else _of_route(router, entries, folder.route or "document")


def _of_route(router: JsonSettings, entries: list[Any], name: str) -> list[Any]:
    """List the modules of a Router's route, and those that follow the Router."""
    types, structure = router.get("types"), router.get("structure")
    route = structure.get(name) if isinstance(structure, dict) else None
    if not entries or type_of(entries[0]) != "Router" or not isinstance(types, dict) or not isinstance(route, list):
        raise unusable(router.file, "has no route for documents")
    routed = [{"type": types.get(path), "path": path} for path in route if isinstance(path, str)]
    return routed + entries[1:]


def type_of(entry: Any) -> str:
    """Return the name of a module's class; empty unless it is sentence-transformers' or PyLate's Dense."""
    named = entry.get("type") if isinstance(entry, dict) else None
    package, _, name = named.rpartition(".") if isinstance(named, str) else ("", "", "")
    return name if package.startswith("sentence_transformers.") or named == PYLATE else ""


def module_of(entry: Any, file: Path) -> ModuleEntry:
    """Check an entry of modules.json. Errors: BertcliError for a module that bertcli does not run, or a bad path."""
    named, path = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(named, str) or not isinstance(path, str):
        raise BertcliError(
            f"{file} has an entry without type or path, {quoted(entry)}: correct it, or use another model."
        )
    name = type_of(entry)
    if name not in MODULES and reads_kind(named) is not None:
        name = named
    elif name not in MODULES:
        raise unusable(file, f"lists the module {quoted(named)}, which bertcli does not support")
    if path == "." and name in NETWORKS:
        path = ""
    if not is_plain(path):
        raise BertcliError(
            f"{file} has a module in {quoted(path)}, which is not a folder next to it: do not use this model."
        )
    module = ModuleEntry(name, path)
    if not path and (name in IN_FOLDERS or module.is_brought):
        raise BertcliError(f"{file} has a {name} without a folder: correct it, or use another model.")
    return module


def is_pylate(settings: JsonSettings) -> bool:
    """True if PyLate saved the model, by its config_sentence_transformers.json."""
    return settings.get("model_type") == "ColBERT" or "query_prefix" in settings


def check_order(modules: Sequence[ModuleEntry], file: Path, is_pylate: bool) -> None:
    """Refuse modules in an order that bertcli does not support."""
    types = [module.type for module in modules if not module.is_brought]
    # PyLate computes the mask itself and does not list it.
    masked = types if MASK in types or not is_pylate else [*types, MASK]
    if not MODULE_ORDER.fullmatch(" ".join(masked)):
        raise unusable(file, f"lists the modules {', '.join(types)}; bertcli supports {SUPPORTED}, in this order")
