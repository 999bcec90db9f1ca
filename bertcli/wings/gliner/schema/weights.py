"""Open the weights of a GLiNER2 folder: those of a backbone and of the heads.

settings.py reads the settings. family.py makes the family: which parameter has which tensor.
"""

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.weights.network_files import NetworkFiles
from bertcli.wings.gliner.on_backbone import open_on_backbone
from bertcli.wings.gliner.schema.family import SPANS, with_schema
from bertcli.wings.gliner.schema.settings import ENCODER_FILE, SchemaSettings


def open_schema(folder: Folder, settings: SchemaSettings) -> NetworkFiles:
    """Make the configuration of a GLiNER2 folder, and open its tensors. Errors as in `open_on_backbone`."""
    files = open_on_backbone(folder, settings.encoder, folder.file(ENCODER_FILE), with_schema, settings)
    if not any(name.startswith(SPANS) for name in files.stored):
        raise BertcliError(f"{folder.path} is a GLiNER2 model without tensors of spans ({SPANS}*): use another model.")
    return files
