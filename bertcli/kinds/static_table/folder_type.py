"""The type of a static model's folder: its first module is a StaticEmbedding.

folder/modules.py lists that module for a folder of model2vec, too, which has no modules.json.
folder/folder_types.py finds it by the name `TYPE`. What is dear to import is imported when a folder is opened.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from bertcli.folder.files import Folder
from bertcli.folder.folder_types import FolderType

if TYPE_CHECKING:
    from bertcli.weights.network_files import NetworkFiles


class StaticFolder(FolderType):
    """A folder with a table of vectors, and tokenizer.json."""

    title = "static model"
    network_module = "StaticEmbedding"
    has_config = False
    tokenizer_json_alone = True

    def needed_files(self, names: Collection[str]) -> list[str]:
        return ["tokenizer.json"]

    def open(self, network: Folder, settings: None) -> "NetworkFiles":
        from bertcli.kinds.static_table.weights import open_table

        return open_table(network)


TYPE = StaticFolder()
