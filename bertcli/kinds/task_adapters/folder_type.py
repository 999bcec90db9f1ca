"""The type of jina-embeddings-v5's folders: an adapter for each task, in adapters/TASK; config.json lists the tasks.

folder/folder_types.py finds it by the name `TYPE`.
"""

from collections.abc import Mapping, Sequence

from bertcli.folder.files import Folder, is_plain
from bertcli.folder.folder_types import FolderType

MODEL_TYPE, ADAPTERS = "jina_embeddings_v5", "adapters"


class TaskAdapters(FolderType):
    """A folder with adapters. Its modules.json lists a class of its own, which does what two of the usual ones do."""

    modules = ("Transformer", "Normalize")

    def is_of(self, folder: Folder, module_types: Sequence[str]) -> bool:
        return bool(self.adapters(folder))

    def adapters(self, folder: Folder) -> Mapping[str, Folder]:
        path = folder.path / ADAPTERS
        if not path.is_dir() or not folder.has("config.json"):
            return {}
        config = folder.object("config.json")
        names = config.get("task_names")
        if config.get("model_type") != MODEL_TYPE:
            return {}
        if not isinstance(names, list) or not all(isinstance(name, str) and is_plain(name) and name for name in names):
            raise config.refused("task_names", ", not a list of names of folders")
        return {name: Folder(path / name) for name in names}


TYPE = TaskAdapters()
