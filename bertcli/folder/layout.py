"""`Layout`: what lies where in a model's folder, and what its small files say, read once, when it is first asked for.

Loading, tokenizer and sentence settings take it and do not ask the folder again for what is here. What a file means is
read beside this one: modules.py, prompts.py, transformer.py, adapter.py, router.py; folder_types.py finds what a kind
says of a type of folder. Not here: tensors (weights/), the tokenizer's files (tokens/), the config.json of a single
module and the settings of one kind (kinds/).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bertcli.folder.adapter import CONFIG_FILE
from bertcli.folder.files import ADAPTER_FILES, SINGLE_FILE, Folder, JsonSettings, weights_file
from bertcli.folder.folder_types import FolderType, adapter_for, type_of_folder
from bertcli.folder.missing_files import has_tokenizer
from bertcli.folder.modules import (
    IN_FOLDERS,
    MASK,
    MODULES_FILE,
    NETWORKS,
    ModuleEntry,
    check_order,
    is_pylate,
    module_of,
    read_entries,
    read_router,
    type_of,
)
from bertcli.folder.prompts import MODEL_FILE, Prompts, read_prompts
from bertcli.folder.router import missing_of_tables, network_routes, read_tables
from bertcli.folder.transformer import TransformerSettings, read_transformer_settings


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """A model's folder, understood. Whatever is asked of it is read at the first time, and no sooner.

    Files for encoding may be damaged, or ask for what bertcli does not do; `params` counts such a model all the same.
    """

    folder: Folder

    @cached_property
    def is_known(self) -> bool:
        """False for a snapshot in the Hub's cache that may lack its modules.json, which transformers does not fetch.

        The Hub client marks files that do not exist on the Hub in `.no_exist`: with that mark the answer is True.
        """
        path = self.folder.path
        if path.parent.name != "snapshots" or self.folder.has(MODULES_FILE):
            return True
        return (path.parents[1] / ".no_exist" / path.name / MODULES_FILE).is_file()

    @cached_property
    def adapters(self) -> Mapping[str, Folder]:
        """The adapters that lie in the folder, each by its task; none in most folders."""
        return self.folder_type.adapters(self.folder)

    @cached_property
    def router(self) -> JsonSettings | None:
        """router_config.json of a sentence-transformers Router, of whose routes the folder's is used here."""
        return read_router(self.folder)

    @cached_property
    def query_tables(self) -> dict[str, Folder]:
        """The folder of each route of a Router that is a table of query weights, by the route's name."""
        return read_tables(self.folder, self.router)

    @cached_property
    def network_routes(self) -> tuple[str, ...]:
        """The routes of a Router that have a network of their own, beside the one for documents."""
        return network_routes(self.router)

    @cached_property
    def _listed(self) -> list[Any]:
        """The list in modules.json, unchecked."""
        return read_entries(self.folder)

    @cached_property
    def _entries(self) -> list[Any]:
        """The modules that are applied, as modules.json lists them, unchecked."""
        of_type = self.folder_type.modules if self._listed else ()
        own = [{"type": f"sentence_transformers.models.{name}", "path": ""} for name in of_type]
        return own or self._listed

    @cached_property
    def module_types(self) -> tuple[str, ...]:
        """The names of the modules' classes, empty for a class that bertcli does not know."""
        return tuple(map(type_of, self._entries))

    @cached_property
    def transformer(self) -> Folder:
        """The folder of the module with the network, and of its config.json; this one, if the first module is none."""
        if not self.module_types or self.module_types[0] not in NETWORKS:
            return self.folder
        return self.folder.within(module_of(self._entries[0], self.folder.file(MODULES_FILE)).path)

    @cached_property
    def network(self) -> Folder:
        """The folder with the network's weights: that of the base, where this one has only an adapter of it."""
        base = None if self.folder.adapter is None else self.folder.base
        return self.transformer if base is None else Layout(base).transformer

    @cached_property
    def tokenizer(self) -> Folder:
        """The folder of the tokenizer's files: the adapter's if it has them, else the network's, else the base's."""
        if self.folder_type.tokenizer_json_alone:
            return self.transformer
        for place in (self.folder.adapter, self.transformer, self.folder.base):
            if place is not None and has_tokenizer(place.names):
                return place
        return self.transformer

    @cached_property
    def has_tokenizer(self) -> bool:
        """False for a model that can be counted and traced, but reads no text."""
        return has_tokenizer(self.tokenizer.names)

    def for_prompt(self, name: str | None) -> Folder | None:
        """Return the folder with the route or the adapter that a prompt's name chooses; None if it is this one."""
        if self.network_routes:
            folder = self.folder
            route = name if name in self.network_routes else None
            return (
                None if (route or "") == folder.route else Folder(folder.path, folder.base, folder.adapter, route or "")
            )
        chosen, here = adapter_for(name, self.adapters), self.folder.adapter
        if chosen is None or (here is not None and here.path.resolve() == chosen.path.resolve()):
            return None
        return Folder(self.folder.path, adapter=chosen)

    @cached_property
    def settings(self) -> JsonSettings:
        """The settings in config_sentence_transformers.json; empty without that file."""
        return self.folder.optional(MODEL_FILE)

    @cached_property
    def modules(self) -> tuple[ModuleEntry, ...]:
        """The modules, in an order that is supported; none if modules.json is absent.

        Errors: BertcliError for a module or an order that is not supported.
        """
        return _checked(self.folder, self._entries, self.settings)

    @cached_property
    def prompts(self) -> Prompts:
        """The prompts by name, and the default prompt; of a model with task adapters by "task.name", too.

        Since the name of a prompt chooses a route, each route has a prompt.
        """
        named, default = read_prompts(self.settings, self.adapters, has_modules=self.folder.has(MODULES_FILE))
        return Prompts(dict.fromkeys(self.network_routes, "") | named, default)

    @property
    def query_prompt(self) -> str:
        """The prompt of a cross-encoder, before the first text of a pair; empty for any other model."""
        return self.prompts.default if self.settings.get("model_type") == "CrossEncoder" else ""

    @cached_property
    def transformer_settings(self) -> TransformerSettings:
        """Settings of the Transformer module; the defaults where there is none."""
        if self.folder_type.tokenizer_json_alone or not self.module_types:
            return TransformerSettings()
        return read_transformer_settings(self.transformer)

    @cached_property
    def keeps_tokens(self) -> bool:
        """True if the modules work on the vectors of tokens (late interaction), and not on a pooled one."""
        return MASK in self.module_types or is_pylate(self.settings)

    @cached_property
    def folder_type(self) -> FolderType:
        """The type of the folder, which says what a kind alone has in its folders."""
        return type_of_folder(self.folder, tuple(map(type_of, self._listed)))

    @cached_property
    def type_settings(self) -> Any:
        """The settings in the files of that type. Errors: BertcliError for a setting that bertcli does not run."""
        return self.folder_type.read(self.folder)

    def missing_files(self) -> list[str]:
        """List the files of modules, adapters and query tables that the folder lacks, as paths within it."""
        names = []
        for adapter in self.adapters.values():
            path = adapter.path.relative_to(self.folder.path).as_posix()
            names += [f"{path}/{name}" for name in (CONFIG_FILE, ADAPTER_FILES[0])]
        for module in self.modules:
            if module.type in IN_FOLDERS or module.is_brought:
                names.append(f"{module.path}/config.json")
            has_weights = module.type in ("Dense", "LayerNorm") or module.is_brought
            if has_weights and weights_file(self.folder.within(module.path)) is None:
                names.append(f"{module.path}/{SINGLE_FILE}")
        lost = [name for name in names if not self.folder.file(name).is_file()]
        return [*lost, *missing_of_tables(self.query_tables.values())]


def _checked(folder: Folder, entries: list[Any], settings: JsonSettings) -> tuple[ModuleEntry, ...]:
    """Check the entries of modules.json, and their order."""
    file = folder.file(MODULES_FILE)
    modules = tuple(module_of(entry, file) for entry in entries)
    if modules or folder.has(MODULES_FILE):
        check_order(modules, file, is_pylate(settings))
    return modules
