"""The type of GLiNER2's folders: config.json has the type "extractor", and that of the backbone lies beside it.

folder/folder_types.py finds it by the name `TYPE`. What is dear to import is imported when a folder is opened.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.folder.folder_types import FolderType
from bertcli.wings.gliner.schema.settings import (
    BOUNDARY,
    ENCODER_FILE,
    MODEL_TYPE,
    OWN_TOKENS,
    SchemaSettings,
    read_settings,
)

if TYPE_CHECKING:
    from bertcli.weights.network_files import NetworkFiles


def architecture_of(folder: Folder) -> str | None:
    """The architecture of a folder of GLiNER2, "span" unless config.json says another; None for any other folder."""
    try:
        config = folder.optional("config.json")
    except BertcliError:  # whoever needs the file says what is wrong with it
        return None
    if config.get("model_type") != MODEL_TYPE:
        return None
    return str(config.get("architecture") or "span").strip().lower()


class SchemaFolder(FolderType):
    """A folder of GLiNER2, with the weights of a backbone and of its heads."""

    title = "GLiNER2"
    files = (ENCODER_FILE,)

    def is_of(self, folder: Folder, module_types: Sequence[str]) -> bool:
        return architecture_of(folder) not in (None, BOUNDARY)

    def needed_files(self, names: Collection[str]) -> list[str]:
        return [*super().needed_files(names), ENCODER_FILE]

    def read(self, folder: Folder) -> SchemaSettings:
        return read_settings(folder)

    def own_tokens(self, settings: SchemaSettings) -> tuple[str, ...]:
        return OWN_TOKENS

    def description(self, settings: SchemaSettings) -> str:
        return f"entities and labels of any type, on {settings.model_name}"

    def open(self, network: Folder, settings: SchemaSettings) -> "NetworkFiles":
        from bertcli.wings.gliner.schema.weights import open_schema

        return open_schema(network, settings)


TYPE = SchemaFolder()
