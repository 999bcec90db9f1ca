"""The type of GLiNER2's folders: config.json has the type "extractor", and that of the backbone lies beside it.

folder/folder_types.py finds it by the name `TYPE`. What is dear to import is imported when a folder is opened.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.folder.folder_types import FolderType
from bertcli.wings.gliner.schema.settings import ENCODER_FILE, MODEL_TYPE, OWN_TOKENS, SchemaSettings, read_settings

if TYPE_CHECKING:
    from bertcli.weights.network_files import NetworkFiles


class SchemaFolder(FolderType):
    """A folder of GLiNER2, with the weights of a backbone and of its heads."""

    title = "GLiNER2"
    files = (ENCODER_FILE,)

    def is_of(self, folder: Folder, module_types: Sequence[str]) -> bool:
        try:
            return folder.optional("config.json").get("model_type") == MODEL_TYPE
        except BertcliError:  # whoever needs the file says what is wrong with it
            return False

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
