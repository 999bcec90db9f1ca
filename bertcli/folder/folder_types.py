"""Types of folders that another library has: each is marked by a file of its own, and may need a backbone's folder.

A kind brings its type: a `TYPE` in the file folder_type.py of its folder in bertcli/kinds/. Downloads, the tokenizer
and loading ask it here, and know none by name.
"""

from typing import Any, NamedTuple

from bertcli.extensions.of_kinds import kind_modules
from bertcli.folder.files import Folder


class Backbone(NamedTuple):
    """The model that a network stands on: its name, and whether the folder itself has its configuration."""

    name: str
    has_config: bool


class FolderType:
    """A type of folder. Its settings are what `read` returns, which the other methods are given.

    marker   the file by which a folder is of this type
    title    the name of the library's models
    """

    marker: str
    title: str

    def is_of(self, folder: Folder) -> bool:
        """True for a folder of this type."""
        return folder.has(self.marker)

    def read(self, folder: Folder) -> Any:
        """Read the settings. Errors: BertcliError for a setting that bertcli does not run."""
        raise NotImplementedError

    def backbone(self, folder: Folder, settings: Any) -> Backbone:
        """The model that the network stands on."""
        raise NotImplementedError

    def own_tokens(self, settings: Any) -> tuple[str, ...]:
        """The tokens that the library adds to the backbone's tokenizer, in the order of their ids."""
        raise NotImplementedError

    def description(self, settings: Any) -> str:
        """What a list of models says of the folder."""
        raise NotImplementedError

    def open(self, folder: Folder, settings: Any) -> Any:
        """Open the weights: the NetworkFiles of weights/network_files.py. Errors: BertcliError."""
        raise NotImplementedError


def folder_types() -> tuple[FolderType, ...]:
    """The types that there are."""
    return tuple(module.TYPE for module in kind_modules("folder_type"))


def markers() -> frozenset[str]:
    """The files that mark a type of folder."""
    return frozenset(folder_type.marker for folder_type in folder_types())


def type_of_folder(folder: Folder) -> FolderType | None:
    """The type of a folder; None for one with config.json or modules of its own."""
    return next((folder_type for folder_type in folder_types() if folder_type.is_of(folder)), None)
