"""The type of GLiNER2.5's folders: GLiNER2's, where config.json has the architecture "boundary".

folder/folder_types.py finds it by the name `TYPE`. What is dear to import is imported when a folder is opened.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bertcli.folder.files import Folder
from bertcli.wings.gliner.boundary.settings import read_boundary
from bertcli.wings.gliner.schema.folder_type import SchemaFolder, architecture_of
from bertcli.wings.gliner.schema.settings import BOUNDARY

if TYPE_CHECKING:
    from bertcli.models.registry import Family


class BoundaryFolder(SchemaFolder):
    """A folder of GLiNER2.5, with the weights of a backbone and of its heads."""

    title = "GLiNER2.5"

    def is_of(self, folder: Folder, module_types: Sequence[str]) -> bool:
        return architecture_of(folder) == BOUNDARY

    def read(self, folder: Folder) -> Any:
        return read_boundary(folder)

    def family_and_spans(self) -> "tuple[Callable[[Family], Family], str]":
        from bertcli.wings.gliner.boundary.family import HEAD, with_boundaries

        return with_boundaries, HEAD


TYPE = BoundaryFolder()
