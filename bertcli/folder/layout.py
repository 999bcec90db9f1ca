"""`Layout`: what lies where in a model's folder, and what its small files say, read once when the folder is opened.

Loading, tokenizer, sentence settings and late interaction take it and do not ask the folder again for what is here.
What a file means is read beside this one: modules.py, prompts.py, transformer.py, late_interaction.py, gliner.py,
adapter.py, router.py. Not here: tensors (weights/), the tokenizer's files (tokens/), and the config.json of a single
module (kinds/).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from bertcli.errors import BertcliError
from bertcli.folder.adapter import (
    TASKS_FOLDER,
    AdapterSettings,
    read_adapter,
    task_adapters,
    task_of_prompt,
)
from bertcli.folder.files import SINGLE_FILE, Folder, JsonSettings, weights_file
from bertcli.folder.gliner import GlinerSettings, read_gliner
from bertcli.folder.late_interaction import LateInteraction, is_pylate, read_late, read_stanford
from bertcli.folder.missing_files import has_tokenizer
from bertcli.folder.modules import (
    IN_FOLDERS,
    MASK,
    MODULES_FILE,
    NETWORKS,
    ModuleEntry,
    check_order,
    module_of,
    read_entries,
    read_router,
    type_of,
)
from bertcli.folder.prompts import MODEL_FILE, Prompts, read_prompts
from bertcli.folder.transformer import Transformer, read_limits

STANFORD = "HF_ColBERT"  # the class of Stanford's late-interaction models in config.json
SPARSE_FILE, LATE_FILE = "sparse_linear.pt", "colbert_linear.pt"  # of bge-m3, beside its network
PROJECTION = "linear.weight"  # of Stanford's models, beside the network's tensors

T = TypeVar("T")


class RefusedSetting(NamedTuple):
    """The message of a refusal that waits until somebody needs what was refused."""

    message: str


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """A model's folder, understood. Made by `Layout.of`.

    folder             the model's folder, with its adapter's and its base's
    base               the layout of the base, for a folder that holds an adapter; else None
    transformer_path   the folder of the network within `folder`; empty if it lies beside modules.json
    tokenizer          the folder of the tokenizer's files: the adapter's if it has them, else the network's, else the
                       base's
    has_tokenizer      false for a model that can be counted and traced, but reads no text
    is_static          the network is only a table of vectors (StaticEmbedding, model2vec)
    is_known           false for a snapshot in the Hub's cache that may lack its modules.json
    router             router_config.json of a sentence-transformers Router, of which only the route for documents is
                       used here; None for any other model
    task_adapters      the tasks of jina-embeddings-v5, whose own code pools the last token and normalizes; else none
    module_types       the names of the modules' classes, empty for a class that bertcli does not know
    token_layers       the files of bge-m3 for more outputs of a pass, of SPARSE_FILE and LATE_FILE

    Files for encoding may be damaged, or ask for what bertcli does not do; `params` counts such a model all the same.
    What is read of them is a property, which raises the refusal when it is needed.
    """

    folder: Folder
    base: "Layout | None"
    transformer_path: str
    tokenizer: Folder
    has_tokenizer: bool
    is_static: bool
    is_known: bool
    router: JsonSettings | None
    task_adapters: tuple[str, ...]
    module_types: tuple[str, ...]
    token_layers: tuple[str, ...]
    _settings: JsonSettings | RefusedSetting
    _modules: tuple[ModuleEntry, ...] | RefusedSetting
    _prompts: Prompts | RefusedSetting
    _limits: Transformer | RefusedSetting
    _late: LateInteraction | RefusedSetting | None
    _gliner: GlinerSettings | RefusedSetting | None
    _adapter: AdapterSettings | RefusedSetting | None

    @classmethod
    def of(cls, folder: Folder) -> "Layout":
        """Read a folder. Errors: BertcliError for a damaged modules.json, a Router without a route for documents."""
        base = None if folder.base is None else cls.of(folder.base)
        adapter = folder.adapter
        tasks, router = task_adapters(folder), read_router(folder)
        entries = read_entries(folder, router, tasks)
        types = tuple(map(type_of, entries))
        path, is_static = "", False
        # Any other first module is refused by `modules` when an encoding needs them; `params` does not.
        if types and types[0] in NETWORKS:
            network = module_of(entries[0], folder.file(MODULES_FILE))
            path, is_static = network.path, network.type == "StaticEmbedding"
        transformer = folder.within(path)
        tokenizer = transformer if is_static else _with_tokenizer(folder, transformer)

        settings = _read(lambda: folder.optional(MODEL_FILE))
        modules = _read(lambda: _checked(folder, entries, _needed(settings)))
        layout = cls(
            folder=folder,
            base=base,
            transformer_path=path,
            tokenizer=tokenizer,
            has_tokenizer=has_tokenizer(tokenizer.names),
            is_static=is_static,
            is_known=_is_known(folder),
            router=router,
            task_adapters=tasks,
            module_types=types,
            token_layers=tuple(filter(folder.has, (SPARSE_FILE, LATE_FILE))),
            _settings=settings,
            _modules=modules,
            _prompts=_read(lambda: read_prompts(_needed(settings), tasks)),
            _limits=_read(lambda: Transformer() if is_static or not types else read_limits(transformer)),
            _late=None,
            _gliner=_read(lambda: read_gliner(folder)),
            _adapter=None if adapter is None else _read(lambda: read_adapter(adapter)),
        )
        return replace(layout, _late=_read(lambda: _late_of(layout)))

    def resolved(self) -> "Layout":
        """Return a copy with absolute paths."""
        base = self.base and self.base.resolved()
        return replace(self, folder=self.folder.resolved(), tokenizer=self.tokenizer.resolved(), base=base)

    @property
    def transformer(self) -> Folder:
        """The folder of the network and its config.json; for an adapter, see `base`."""
        return self.folder.within(self.transformer_path)

    def for_prompt(self, name: str | None) -> Folder | None:
        """Return the folder with the adapter of the task that a prompt's name chooses; None if it is this one."""
        task = task_of_prompt(name, self.task_adapters)
        if task is None:
            return None
        chosen, here = Folder(self.folder.path / TASKS_FOLDER / task), self.folder.adapter
        if here is not None and here.path.resolve() == chosen.path.resolve():
            return None
        return Folder(self.folder.path, adapter=chosen)

    @property
    def settings(self) -> JsonSettings:
        """The settings in config_sentence_transformers.json; empty without that file."""
        return _needed(self._settings)

    @property
    def modules(self) -> tuple[ModuleEntry, ...]:
        """The modules, in an order that is supported; none if modules.json is absent.

        Errors: BertcliError for a module or an order that is not supported.
        """
        return _needed(self._modules)

    @property
    def prompts(self) -> Prompts:
        """The prompts by name, and the default prompt; of a model with task adapters by "task.name", too."""
        return _needed(self._prompts)

    @property
    def query_prompt(self) -> str:
        """The prompt of a cross-encoder, before the first text of a pair; empty for any other model."""
        return self.prompts.default if self.settings.get("model_type") == "CrossEncoder" else ""

    @property
    def limits(self) -> Transformer:
        """Settings of the Transformer module; the defaults for a static model, and without modules.json."""
        return _needed(self._limits)

    @property
    def late(self) -> LateInteraction | None:
        """The settings of a late-interaction model (ColBERT) in any of three layouts; None for any other model."""
        return _needed(self._late)

    @property
    def gliner(self) -> GlinerSettings | None:
        """The settings of a GLiNER model, which finds entities of any type; None for any other model.

        Errors: BertcliError for a setting that bertcli does not run.
        """
        return _needed(self._gliner)

    @property
    def adapter(self) -> AdapterSettings | None:
        """The settings of the adapter that is applied to the network; None without one.

        Errors: BertcliError for a setting that changes results and is not applied.
        """
        return _needed(self._adapter)

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


def _read(read: Callable[[], T]) -> T | RefusedSetting:
    """Read a setting, or keep the refusal in its place."""
    try:
        return read()
    except BertcliError as error:
        return RefusedSetting(str(error))


def _needed(value: T | RefusedSetting) -> T:
    """Return what was read, or raise the refusal."""
    if isinstance(value, RefusedSetting):
        raise BertcliError(value.message)
    return value


def _with_tokenizer(folder: Folder, transformer: Folder) -> Folder:
    """Find the folder that has a tokenizer's files; the network's if none has."""
    for place in (folder.adapter, transformer, folder.base):
        if place is not None and has_tokenizer(place.names):
            return place
    return transformer


def _is_known(folder: Folder) -> bool:
    """False for a snapshot in the Hub's cache that may lack its modules.json, which transformers does not fetch.

    The Hub client marks files that do not exist on the Hub in `.no_exist`: with that mark the answer is True.
    """
    path = folder.path
    if path.parent.name != "snapshots" or folder.has(MODULES_FILE):
        return True
    return (path.parents[1] / ".no_exist" / path.name / MODULES_FILE).is_file()


def _checked(folder: Folder, entries: list[Any], settings: JsonSettings) -> tuple[ModuleEntry, ...]:
    """Check the entries of modules.json, and their order."""
    file = folder.file(MODULES_FILE)
    modules = tuple(module_of(entry, file) for entry in entries)
    if modules or folder.has(MODULES_FILE):
        check_order(modules, file, is_pylate(settings))
    return modules


def _late_of(layout: Layout) -> LateInteraction | None:
    """Read the settings of late interaction in the layout that the model has; None for any other model."""
    folder, types = layout.folder, layout.module_types
    of_stanford = not types and STANFORD in str(folder.optional("config.json").get("architectures"))
    if not (of_stanford or MASK in types or is_pylate(layout.settings)):
        return None
    # A model without modules that PyLate saved has Stanford's class, too.
    if not types and not is_pylate(layout.settings):
        return read_stanford(folder)
    mask = next((folder.within(module.path) for module in layout.modules if module.type == MASK), None)
    return read_late(layout.settings, layout.prompts, layout.transformer, mask)
