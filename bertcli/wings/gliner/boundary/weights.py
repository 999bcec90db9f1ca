"""Open the weights of a GLiNER2.5 folder: those of a backbone and of the heads.

settings.py reads the settings. family.py makes the family: which parameter has which tensor.
"""

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.weights.network_files import NetworkFiles
from bertcli.wings.gliner.boundary.family import HEAD, with_boundaries
from bertcli.wings.gliner.boundary.settings import BoundarySettings
from bertcli.wings.gliner.on_backbone import open_on_backbone
from bertcli.wings.gliner.schema.settings import ENCODER_FILE


def open_boundary(folder: Folder, settings: BoundarySettings) -> NetworkFiles:
    """Make the configuration of a GLiNER2.5 folder, and open its tensors. Errors as in `open_on_backbone`."""
    files = open_on_backbone(folder, settings.encoder, folder.file(ENCODER_FILE), with_boundaries, settings)
    if not any(name.startswith(HEAD) for name in files.stored):
        raise BertcliError(f"{folder.path} is a GLiNER2.5 model without tensors of spans ({HEAD}*): use another model.")
    return files
