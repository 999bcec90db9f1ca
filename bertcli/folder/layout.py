"""The modules of a sentence-transformers folder: which there are, where, and in which order.

`modules.json` lists them; each has a folder with a config.json. A listed module is applied or refused, never skipped,
and a class that a file names is looked up here, never imported.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.errors import BertcliError, shown
from bertcli.folder.files import is_plain, unusable
from bertcli.folder.model_folder import Folder
from bertcli.folder.weight_files import SINGLE_FILE, weights_file

MODULES_FILE, ROUTER_FILE = "modules.json", "router_config.json"
MODEL_FILE = "config_sentence_transformers.json"
NETWORKS = ("Transformer", "MLMTransformer", "StaticEmbedding")
MASK = "MultiVectorMask"  # which of a late-interaction model's vectors are scored
MODULES = (*NETWORKS, "Pooling", "SpladePooling", "Dense", "LayerNorm", "Normalize", "LogitScore", MASK)
IN_FOLDERS = ("Pooling", "SpladePooling", "Dense", "LayerNorm", "LogitScore", MASK)
ORDER = re.compile(
    "Transformer( Pooling( Dense| LayerNorm)*)?( Normalize)*|(MLM)?Transformer SpladePooling|Transformer LogitScore"
    "|StaticEmbedding( Dense)*( Normalize)*|Transformer( Dense)*( Normalize)* MultiVectorMask( Normalize)*"
)
SENTENCE, SCORES = "sentence_embedding", "scores"  # what modules give; those of a cross-encoder
PYLATE, STANFORD = "pylate.models.Dense.Dense", "HF_ColBERT"
PROJECTION = "linear.weight"  # of Stanford's models, beside the network's tensors


class Module(NamedTuple):
    kind: str
    path: str


class Place(NamedTuple):
    """Where a network, its configuration and its tokenizer are; `static` if it is nothing but a table of vectors."""

    folder: Folder
    static: bool = False


def network_place(folder: Folder) -> Place:
    """Where a model's network is: beside modules.json, or in the folder that its first module names."""
    entries = entries_in(folder)
    if not entries or _kind(entries[0]) not in NETWORKS:  # whatever else is listed, `read_sentence_config` refuses
        return Place(folder)
    module = _module(entries[0], folder.file(MODULES_FILE))
    return Place(folder.within(module.path), module.kind == "StaticEmbedding")


def modules_known(folder: Folder) -> bool:
    """Whether it is known that a model has a modules.json, or that it has none.

    transformers does not fetch modules.json. A snapshot in the Hub's cache that lacks it may still have one on the Hub,
    unless the client left the mark that it asked in vain.
    """
    path = folder.path
    mark = path.parents[1] / ".no_exist" / path.name / MODULES_FILE
    return path.parent.name != "snapshots" or folder.has(MODULES_FILE) or mark.is_file()


def missing_files(folder: Folder) -> list[str]:
    """Files of the modules listed in modules.json that the folder lacks, as paths within it."""
    names = []
    for module in read_modules(folder):
        if module.kind in IN_FOLDERS:
            names.append(f"{module.path}/config.json")
        if module.kind in ("Dense", "LayerNorm") and weights_file(folder.within(module.path)) is None:
            names.append(f"{module.path}/{SINGLE_FILE}")
    return [name for name in names if not folder.file(name).is_file()]


def entries_in(folder: Folder) -> list[Any]:
    """What modules.json lists; without it, nothing, or what config.json says if it is model2vec's."""
    if not folder.has(MODULES_FILE):
        config = folder.optional("config.json")
        if config.get("model_type") != "model2vec":
            return []
        types = ["StaticEmbedding", "Normalize"] if config.flag("normalize", False) else ["StaticEmbedding"]
        return [{"type": f"sentence_transformers.models.{name}", "path": ""} for name in types]
    modules = folder.value(MODULES_FILE)
    if not isinstance(modules, list):
        raise BertcliError(
            f"{folder.file(MODULES_FILE)} holds not a list of modules but {shown(modules)}: fetch the model again."
        )
    return _of_documents(folder, modules) if is_routed(folder) else modules


def is_routed(folder: Folder) -> bool:
    """Whether a model is a Router, which has one network for queries and another for documents."""
    return folder.has(MODULES_FILE) and folder.has(ROUTER_FILE)


def _of_documents(folder: Folder, modules: list[Any]) -> list[Any]:
    """The modules of a Router's route for documents, and those that follow it."""
    config = folder.object(ROUTER_FILE)
    types, structure = config.get("types"), config.get("structure")
    route = structure.get("document") if isinstance(structure, dict) else None
    if not modules or _kind(modules[0]) != "Router" or not isinstance(types, dict) or not isinstance(route, list):
        raise unusable(config.file, "has no route for documents")
    return [{"type": types.get(name), "path": name} for name in route if isinstance(name, str)] + modules[1:]


def kinds_of(folder: Folder) -> list[str]:
    """The names of the modules' classes."""
    return [_kind(entry) for entry in entries_in(folder)]


def of_pylate(config: Mapping[str, Any]) -> bool:
    """Whether a model was saved by PyLate, by its config_sentence_transformers.json."""
    return config.get("model_type") == "ColBERT" or "query_prefix" in config


def is_late(folder: Folder) -> bool:
    """Whether a model is one of late interaction."""
    kinds = kinds_of(folder)
    stanford = not kinds and STANFORD in str(folder.optional("config.json").get("architectures"))
    return stanford or MASK in kinds or of_pylate(folder.optional(MODEL_FILE))


def read_modules(folder: Folder) -> list[Module]:
    """The modules, in one of the orders of ORDER; empty where none are listed."""
    file, entries = folder.file(MODULES_FILE), entries_in(folder)
    modules = [_module(entry, file) for entry in entries]
    kinds = [module.kind for module in modules]
    masked = MASK in kinds or not of_pylate(folder.optional(MODEL_FILE))
    order = " ".join(kinds if masked else [*kinds, MASK])
    if not ORDER.fullmatch(order) and (kinds or folder.has(MODULES_FILE)):
        wanted = "one Transformer, one Pooling, then Dense and Normalize, or one and SpladePooling or LogitScore"
        raise unusable(file, f"lists the modules {', '.join(kinds)}; bertcli supports {wanted}, in this order")
    return modules


def _module(entry: Any, file: Path) -> Module:
    kind, path = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(path, str):
        raise BertcliError(f"{file} has an entry without type or path, {shown(entry)}: fetch the model again.")
    name = _kind(entry)
    if name not in MODULES:
        raise unusable(file, f"lists the module {shown(kind)}, which bertcli does not support")
    if path == "." and name in NETWORKS:
        path = ""
    if not is_plain(path):
        raise BertcliError(
            f"{file} has a module in {shown(path)}, which is not a folder next to it: do not use this model."
        )
    if not path and name in IN_FOLDERS:
        raise BertcliError(f"{file} has a {name} without a folder: fetch the model again.")
    return Module(name, path)


def _kind(entry: Any) -> str:
    """The name of a module's class; empty for a class that is not of sentence-transformers."""
    kind = entry.get("type") if isinstance(entry, dict) else None
    package, _, name = kind.rpartition(".") if isinstance(kind, str) else ("", "", "")
    return name if package.startswith("sentence_transformers.") or kind == PYLATE else ""
