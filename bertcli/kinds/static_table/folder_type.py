"""The type of a static model's folder: its first module is a StaticEmbedding, or model2vec reads it without modules.

Of the two libraries sentence-transformers reads a folder with modules.json, and model2vec one without; numbers are as
there. model2vec writes modules.json beside tables of int8, too, which sentence-transformers cannot read.
folder/folder_types.py finds it by the name `TYPE`. What is dear to import is imported when a folder is opened.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from bertcli.folder.files import SINGLE_FILE, Folder, weights_file
from bertcli.folder.folder_types import FolderType
from bertcli.folder.modules import MODULES_FILE

if TYPE_CHECKING:
    from bertcli.weights.network_files import NetworkFiles

LONGEST = 512  # tokens of a text in model2vec, unless config.json has max_length
UNLIMITED = 1_000_000  # its null


class StaticFolder(FolderType):
    """A folder with a table of vectors, and tokenizer.json."""

    title = "static model"
    network_module = "StaticEmbedding"
    has_config = False
    tokenizer_json_alone = True

    def is_of(self, folder: Folder, module_types: Sequence[str]) -> bool:
        return super().is_of(folder, module_types) or _is_of_model2vec(folder)

    def needed_files(self, names: Collection[str]) -> list[str]:
        return ["tokenizer.json"]

    def longest_text(self, folder: Folder) -> int | None:
        if not _is_read_by_model2vec(folder):
            return None
        config = folder.object("config.json")
        if "max_length" not in config:
            return LONGEST
        return config.positive("max_length") or UNLIMITED

    def drops_unknown(self, folder: Folder) -> bool:
        return _is_read_by_model2vec(folder)

    def open(self, network: Folder, settings: None) -> "NetworkFiles":
        from bertcli.kinds.static_table.weights import open_table

        return open_table(network)


TYPE = StaticFolder()


def _is_read_by_model2vec(folder: Folder) -> bool:
    """True for a static model's folder that sentence-transformers does not read."""
    if not folder.has(MODULES_FILE):
        return True
    file = weights_file(folder)
    if file is None or not folder.has("config.json"):
        return False
    from bertcli.kinds.static_table.weights import MODEL2VEC, WHOLE
    from bertcli.weights.tensors import open_tensors

    stored = open_tensors(folder)
    # With weights it multiplies the rows, which then are floats.
    return MODEL2VEC in stored and stored[MODEL2VEC].dtype == WHOLE and "weights" not in stored


def _is_of_model2vec(folder: Folder) -> bool:
    """True for a folder without modules whose config.json is model2vec's: newer ones name no type, and have a table."""
    if folder.has(MODULES_FILE) or not folder.has("config.json"):
        return False
    model_type = folder.object("config.json").get("model_type")
    if model_type is not None:
        return bool(model_type == "model2vec")
    file = weights_file(folder)
    if file is None or file.name != SINGLE_FILE:
        return False
    from bertcli.kinds.static_table.weights import MODEL2VEC
    from bertcli.weights.tensors import open_tensors

    return MODEL2VEC in open_tensors(folder)
