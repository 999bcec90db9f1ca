"""The type of GLiNER's folders: gliner_config.json marks it, and what it lacks is that of its backbone.

folder/folder_types.py finds it by the name `TYPE`. What is dear to import is imported when a folder is opened.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from bertcli.folder.files import Folder
from bertcli.folder.folder_types import Backbone, FolderType
from bertcli.wings.gliner.spans.settings import GLINER_FILE, GlinerSettings, read_gliner

if TYPE_CHECKING:
    from bertcli.weights.network_files import NetworkFiles


class GlinerFolder(FolderType):
    """A folder of GLiNER, with the weights of a backbone and of the head that scores spans."""

    title = "GLiNER"
    files = (GLINER_FILE,)
    has_backbone = True

    def needed_files(self, names: Collection[str]) -> list[str]:
        return []

    def read(self, folder: Folder) -> GlinerSettings:
        return read_gliner(folder)

    def backbone(self, folder: Folder, settings: GlinerSettings) -> Backbone:
        has_config = settings.encoder_config is not None or folder.has("config.json")
        return Backbone(settings.model_name, has_config)

    def own_tokens(self, settings: GlinerSettings) -> tuple[str, ...]:
        return settings.own_tokens

    def description(self, settings: GlinerSettings) -> str:
        return f"entities of any type, on {settings.model_name}"

    def open(self, network: Folder, settings: GlinerSettings) -> "NetworkFiles":
        from bertcli.wings.gliner.spans.weights import open_gliner

        return open_gliner(network, settings)


TYPE = GlinerFolder()
