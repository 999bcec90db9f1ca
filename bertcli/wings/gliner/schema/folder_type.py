"""The type of GLiNER2's folders: config.json has the type "extractor", and that of the backbone lies beside it.

folder/folder_types.py finds it by the name `TYPE`. What is dear to import is imported when a folder is opened.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

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
    from bertcli.models.registry import Family
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

    def open(self, network: Folder, settings: Any) -> "NetworkFiles":
        from bertcli.wings.gliner.on_backbone import open_on_backbone

        family_of, spans = self.family_and_spans()
        return open_on_backbone(network, settings.encoder, network.file(ENCODER_FILE), family_of, spans, settings)

    def family_and_spans(self) -> "tuple[Callable[[Family], Family], str]":
        """What makes the family of a backbone's, and how the names of the tensors of spans begin."""
        from bertcli.wings.gliner.schema.family import SPANS, with_schema

        return with_schema, SPANS


TYPE = SchemaFolder()
