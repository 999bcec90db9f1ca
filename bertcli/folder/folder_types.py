"""Types of folders: which files one has, how its network and its tokenizer are read, and what else it needs.

A kind brings its type: a `TYPE` in the file folder_type.py of its folder, in bertcli/kinds/ or a wing. Downloads, the
tokenizer and loading ask it here, and know none by name.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from bertcli.extensions.of_kinds import kind_modules
from bertcli.folder.files import Folder
from bertcli.folder.missing_files import has_tokenizer


class Backbone(NamedTuple):
    """The model that a network stands on: its name, and whether the folder itself has its configuration."""

    name: str
    has_config: bool


class FolderType:
    """A type of folder, and what it has. Here: of a folder that transformers or sentence-transformers saved.

    title                  the name of the library's models; empty: that of the network's family
    files                  small files of its own; a folder that has them is of this type
    network_module         the class of its first module in modules.json, if that says the type
    has_config             config.json says how large the network is; else its tensors do
    has_backbone           whatever it lacks is that of another model: `backbone` names it
    tokenizer_json_alone   no other file says how texts become tokens, and nothing is put around them
    modules                the classes of the modules that its library applies, where modules.json lists others
    """

    title: str = ""
    files: tuple[str, ...] = ()
    network_module: str | None = None
    has_config: bool = True
    has_backbone: bool = False
    tokenizer_json_alone: bool = False
    modules: tuple[str, ...] = ()

    def is_of(self, folder: Folder, module_types: Sequence[str]) -> bool:
        """True for a folder of this type. module_types: the names of the classes in its modules.json."""
        return any(map(folder.has, self.files)) or self.network_module in module_types[:1]

    def needed_files(self, names: Collection[str]) -> list[str]:
        """The small files without which a folder is not complete. names: those that lie beside the network."""
        return ["config.json"] if has_tokenizer(names) else ["config.json", "tokenizer.json"]

    def read(self, folder: Folder) -> Any:
        """Read its settings, which the methods below are given.

        Errors: BertcliError for a setting that bertcli does not run.
        """
        return None

    def backbone(self, folder: Folder, settings: Any) -> Backbone:
        """The model that the network stands on."""
        raise NotImplementedError

    def adapters(self, folder: Folder) -> Mapping[str, Folder]:
        """The adapters (LoRA) that lie in the folder, each by the task that it is for.

        Errors: BertcliError for a list of tasks that names no folders.
        """
        return {}

    def longest_text(self, folder: Folder) -> int | None:
        """The number of tokens at which its library cuts a text, whatever the tokenizer's files say; None: as they say.

        Asked where tokenizer_json_alone.
        """
        return None

    def drops_unknown(self, folder: Folder) -> bool:
        """True if its library leaves out pieces that the vocabulary lacks. Asked where tokenizer_json_alone."""
        return False

    def own_tokens(self, settings: Any) -> tuple[str, ...]:
        """The tokens that the library adds to the backbone's tokenizer, in the order of their ids."""
        return ()

    def description(self, settings: Any) -> str:
        """The words of a list of models for the folder; empty: the classes that it names."""
        return ""

    def open(self, network: Folder, settings: Any) -> Any:
        """Open the weights: the NetworkFiles of weights/network_files.py. None: they are beside a config.json.

        Errors: BertcliError.
        """
        return None


PLAIN = FolderType()


def folder_types() -> tuple[FolderType, ...]:
    """The types that kinds bring."""
    return tuple(module.TYPE for module in kind_modules("folder_type"))


def files_of_types() -> list[str]:
    """The files that folders of these types have of their own: downloads fetch them."""
    return sorted({name for folder_type in folder_types() for name in folder_type.files})


def files_that_name_backbones() -> frozenset[str]:
    """The files of those types whose models stand on another: by them a folder needs no config.json of its own."""
    return frozenset(name for folder_type in folder_types() if folder_type.has_backbone for name in folder_type.files)


def adapters_in(folder: Folder) -> Mapping[str, Folder]:
    """The adapters that lie in a model's folder, each by its task; none in most folders."""
    of_types = (folder_type.adapters(folder) for folder_type in folder_types())
    return next(filter(None, of_types), {})


def adapter_for(prompt_name: str | None, adapters: Mapping[str, Folder]) -> Folder | None:
    """The adapter of the task in a prompt's name, such as "retrieval" in "retrieval.query"; None without one."""
    task = "" if prompt_name is None else prompt_name.partition(".")[0]
    return adapters.get(task)


def type_of_folder(folder: Folder, module_types: Sequence[str]) -> FolderType:
    """The type of a folder with modules of these classes."""
    return next((folder_type for folder_type in folder_types() if folder_type.is_of(folder, module_types)), PLAIN)
