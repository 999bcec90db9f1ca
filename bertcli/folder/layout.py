"""The layout of a model's folder: where network and tokenizer lie, and the sentence-transformers modules in order.

A folder is analysed once, when it is opened; weights, tokenizer and sentence settings are loaded from the Layout.
`modules.json` lists the modules; each has a folder with a config.json. A listed module is applied or refused, never
skipped; the class that a file names is looked up in MODULES, never imported.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.folder.adapter import TASKS_FOLDER, task_adapters
from bertcli.folder.files import SINGLE_FILE, Folder, JsonSettings, is_plain, unusable, weights_file
from bertcli.folder.gliner import GlinerSettings, read_gliner
from bertcli.folder.missing_files import has_tokenizer
from bertcli.folder.prompts import Prompts, read_prompts
from bertcli.folder.transformer import TRANSFORMER_FILES, Transformer, read_transformer

MODULES_FILE, ROUTER_FILE = "modules.json", "router_config.json"
MODEL_FILE = "config_sentence_transformers.json"
NETWORKS = ("Transformer", "MLMTransformer", "StaticEmbedding")
MASK = "MultiVectorMask"  # chooses the tokens of a late-interaction model that are scored
MODULES = (*NETWORKS, "Pooling", "SpladePooling", "Dense", "LayerNorm", "Normalize", "LogitScore", MASK)
# Modules with a config.json, and perhaps weights, in a folder of their own.
IN_FOLDERS = ("Pooling", "SpladePooling", "Dense", "LayerNorm", "LogitScore", MASK)
MODULE_ORDER = re.compile(
    "Transformer( Pooling( Dense| LayerNorm)*)?( Normalize)*|(MLM)?Transformer SpladePooling|Transformer LogitScore"
    "|StaticEmbedding( Dense)*( Normalize)*|Transformer( Dense)*( Normalize)* MultiVectorMask( Normalize)*"
)
SENTENCE, SCORES = "sentence_embedding", "scores"  # module outputs: of an embedding model, of a cross-encoder
PYLATE, STANFORD = "pylate.models.Dense.Dense", "HF_ColBERT"
SPARSE_FILE, LATE_FILE = "sparse_linear.pt", "colbert_linear.pt"  # of bge-m3, beside its network
PROJECTION = "linear.weight"  # of Stanford's models, beside the network's tensors


class ModuleEntry(NamedTuple):
    type: str
    path: str


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """Where the parts of a model lie. Made by `Layout.of`; settings in rarer files are read on first use.

    transformer_path   the folder of the network within `folder`; empty if it lies beside modules.json
    is_static          the network is only a table of vectors (StaticEmbedding, model2vec)
    is_routed          the model is a sentence-transformers Router; only its route for documents is used here
    entries            the list in modules.json; for a Router, the modules of that route
    base               the layout of the base model, for a folder that holds an adapter
    """

    folder: Folder
    transformer_path: str
    is_static: bool
    is_routed: bool
    entries: tuple[Any, ...]
    base: "Layout | None"

    @classmethod
    def of(cls, folder: Folder) -> "Layout":
        """Analyse a folder. Errors: BertcliError for a damaged modules.json, a Router without a route for documents."""
        is_routed = folder.has(MODULES_FILE) and folder.has(ROUTER_FILE)
        entries = _entries_in(folder, is_routed)
        base = None if folder.base is None else cls.of(folder.base)
        path, is_static = "", False
        # Any other first module is refused by `modules` when an encoding needs them; `params` does not.
        if entries and _type(entries[0]) in NETWORKS:
            module = _module(entries[0], folder.file(MODULES_FILE))
            path, is_static = module.path, module.type == "StaticEmbedding"
        return cls(folder, path, is_static, is_routed, tuple(entries), base)

    def resolved(self) -> "Layout":
        """Return a copy with absolute paths."""
        return replace(self, folder=self.folder.resolved(), base=self.base and self.base.resolved())

    @cached_property
    def transformer(self) -> Folder:
        """The folder of the network and its config.json; for an adapter, see `base`."""
        return self.folder.within(self.transformer_path)

    @cached_property
    def tokenizer(self) -> Folder:
        """The folder of the tokenizer's files: the adapter's if it has them, else the network's, else the base's."""
        folders = (self.folder.adapter, self.transformer, self.folder.base)
        with_tokenizer = (folder for folder in folders if folder is not None and has_tokenizer(folder.names))
        return self.transformer if self.is_static else next(with_tokenizer, self.transformer)

    @property
    def has_tokenizer(self) -> bool:
        """False for a model that can be counted and traced, but reads no text."""
        return has_tokenizer(self.tokenizer.names)

    @cached_property
    def task_adapters(self) -> tuple[str, ...]:
        """The tasks of jina-embeddings-v5, whose own code pools the last token and normalizes; else none."""
        return task_adapters(self.folder)

    @cached_property
    def module_types(self) -> list[str]:
        """The names of the modules' classes."""
        return [_type(entry) for entry in self.entries]

    @cached_property
    def modules(self) -> list[ModuleEntry]:
        """The modules, in an order that MODULE_ORDER allows; none if modules.json is absent.

        Errors: BertcliError for a module or an order that is not supported.
        """
        file = self.folder.file(MODULES_FILE)
        modules = [_module(entry, file) for entry in self.entries]
        types = [module.type for module in modules]
        masked = MASK in types or not self.is_pylate
        order = " ".join(types if masked else [*types, MASK])
        if not MODULE_ORDER.fullmatch(order) and (types or self.folder.has(MODULES_FILE)):
            supported = "one Transformer, one Pooling, then Dense and Normalize, or one and SpladePooling or LogitScore"
            raise unusable(file, f"lists the modules {', '.join(types)}; bertcli supports {supported}, in this order")
        return modules

    @cached_property
    def settings(self) -> JsonSettings:
        """The settings in config_sentence_transformers.json; empty without that file."""
        return self.folder.optional(MODEL_FILE)

    @cached_property
    def prompts(self) -> Prompts:
        """The prompts by name, and the default prompt."""
        return read_prompts(self.settings)

    @property
    def query_prompt(self) -> str:
        """The prompt of a cross-encoder, before the first text of a pair; empty for any other model."""
        return self.prompts.default if self.settings.get("model_type") == "CrossEncoder" else ""

    @cached_property
    def transformer_file(self) -> str | None:
        """The name of the file beside a network with the Transformer module's settings; None without one."""
        return next(filter(self.transformer.has, TRANSFORMER_FILES), None)

    @cached_property
    def limits(self) -> Transformer:
        """Settings of the Transformer module; the defaults for a static model, and without modules.json."""
        if self.is_static or self.transformer_file is None or not self.entries:
            return Transformer()
        return read_transformer(self.transformer.object(self.transformer_file))

    @cached_property
    def gliner(self) -> GlinerSettings | None:
        """The settings of a GLiNER model, which finds entities of any type; None for any other model.

        Errors: BertcliError for a setting that bertcli does not run.
        """
        return read_gliner(self.folder)

    @property
    def is_pylate(self) -> bool:
        """True if PyLate saved the model."""
        return self.settings.get("model_type") == "ColBERT" or "query_prefix" in self.settings

    @property
    def is_stanford(self) -> bool:
        """True for a late-interaction model without modules, which then has Stanford ColBERT's files."""
        return not self.entries and not self.is_pylate

    @cached_property
    def is_late(self) -> bool:
        """True for a late-interaction model (ColBERT) of any of the three layouts, see late_interaction.py."""
        if not self.module_types and STANFORD in str(self.folder.optional("config.json").get("architectures")):
            return True
        return MASK in self.module_types or self.is_pylate

    @property
    def has_token_layers(self) -> bool:
        """True for bge-m3, whose files beside the network make more outputs of a pass."""
        return self.folder.has(SPARSE_FILE) or self.folder.has(LATE_FILE)

    @property
    def is_known(self) -> bool:
        """False for a snapshot in the Hub's cache that may lack its modules.json, which transformers does not fetch.

        The Hub client marks files that do not exist on the Hub in `.no_exist`: with that mark the answer is True.
        """
        path = self.folder.path
        mark = path.parents[1] / ".no_exist" / path.name / MODULES_FILE
        return path.parent.name != "snapshots" or self.folder.has(MODULES_FILE) or mark.is_file()

    def missing_files(self) -> list[str]:
        """List the files of modules and task adapters that the folder lacks, as paths within it."""
        names = []
        for task in self.task_adapters:
            names += [f"{TASKS_FOLDER}/{task}/{name}" for name in ("adapter_config.json", "adapter_model.safetensors")]
        for module in self.modules:
            if module.type in IN_FOLDERS:
                names.append(f"{module.path}/config.json")
            if module.type in ("Dense", "LayerNorm") and weights_file(self.folder.within(module.path)) is None:
                names.append(f"{module.path}/{SINGLE_FILE}")
        return [name for name in names if not self.folder.file(name).is_file()]


def _entries_in(folder: Folder, is_routed: bool) -> list[Any]:
    """Read the list in modules.json; without that file it is empty, or made from model2vec's config.json."""
    if not folder.has(MODULES_FILE):
        config = folder.optional("config.json")
        if config.get("model_type") != "model2vec":
            return []
        types = ["StaticEmbedding", "Normalize"] if config.flag("normalize", False) else ["StaticEmbedding"]
        return [{"type": f"sentence_transformers.models.{name}", "path": ""} for name in types]
    # modules.json of jina-embeddings-v5 lists a single module, whose class comes with the model.
    if task_adapters(folder):
        return [{"type": f"sentence_transformers.models.{name}", "path": ""} for name in ("Transformer", "Normalize")]
    modules = folder.value(MODULES_FILE)
    if not isinstance(modules, list):
        raise BertcliError(
            f"{folder.file(MODULES_FILE)} is not a list of modules but {quoted(modules)}: fetch the model again."
        )
    return _of_documents(folder, modules) if is_routed else modules


def _of_documents(folder: Folder, modules: list[Any]) -> list[Any]:
    """List the modules of a Router's route for documents, and those that follow the Router."""
    config = folder.object(ROUTER_FILE)
    types, structure = config.get("types"), config.get("structure")
    route = structure.get("document") if isinstance(structure, dict) else None
    if not modules or _type(modules[0]) != "Router" or not isinstance(types, dict) or not isinstance(route, list):
        raise unusable(config.file, "has no route for documents")
    return [{"type": types.get(name), "path": name} for name in route if isinstance(name, str)] + modules[1:]


def _module(entry: Any, file: Path) -> ModuleEntry:
    named, path = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(named, str) or not isinstance(path, str):
        raise BertcliError(f"{file} has an entry without type or path, {quoted(entry)}: fetch the model again.")
    name = _type(entry)
    if name not in MODULES:
        raise unusable(file, f"lists the module {quoted(named)}, which bertcli does not support")
    if path == "." and name in NETWORKS:
        path = ""
    if not is_plain(path):
        raise BertcliError(
            f"{file} has a module in {quoted(path)}, which is not a folder next to it: do not use this model."
        )
    if not path and name in IN_FOLDERS:
        raise BertcliError(f"{file} has a {name} without a folder: fetch the model again.")
    return ModuleEntry(name, path)


def _type(entry: Any) -> str:
    """Return the name of a module's class; empty unless it is sentence-transformers' or PyLate's Dense."""
    named = entry.get("type") if isinstance(entry, dict) else None
    package, _, name = named.rpartition(".") if isinstance(named, str) else ("", "", "")
    return name if package.startswith("sentence_transformers.") or named == PYLATE else ""
