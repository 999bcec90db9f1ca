"""Open the weights of a GLiNER folder: those of a backbone and of the head that scores spans.

settings.py reads the settings. family.py makes the family: which parameter has which tensor.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder
from bertcli.weights.network_files import NetworkFiles
from bertcli.wings.gliner.on_backbone import open_on_backbone
from bertcli.wings.gliner.spans.family import SPANS, with_spans
from bertcli.wings.gliner.spans.settings import GLINER_FILE, GlinerSettings


def open_gliner(folder: Folder, settings: GlinerSettings) -> NetworkFiles:
    """Make the configuration of a GLiNER folder, and open its tensors. Errors as in `open_on_backbone`."""
    data, file = _backbone_config(folder, settings)
    return open_on_backbone(folder, data, file, with_spans, SPANS, settings)


def _backbone_config(folder: Folder, settings: GlinerSettings) -> tuple[Mapping[str, Any], Path]:
    """Return the backbone's configuration, and the file that has it. Errors: BertcliError if there is none."""
    if settings.encoder_config is not None:
        return settings.encoder_config, folder.file(GLINER_FILE)
    if not folder.has("config.json"):
        raise BertcliError(
            f"{folder.file(GLINER_FILE)} lacks encoder_config, the configuration of {quoted(settings.model_name)}: put "
            "the config.json and the tokenizer of that model into the folder."
        )
    return folder.object("config.json"), folder.file("config.json")
