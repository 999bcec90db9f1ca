"""The files of a network as they are stored: its configuration, its family, its tensors by their names in the file.

`open_plain` opens a folder with config.json and weights. A folder of another type is opened by the kind that brings the
type (folder/folder_types.py); loading.py chooses, and builds the network.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder, weights_file
from bertcli.folder.missing_files import ADVICE, lacks_weights
from bertcli.models.config import Config
from bertcli.models.registry import Family, family, parse_config
from bertcli.weights.tensors import StoredTensor, open_tensors


class NetworkFiles(NamedTuple):
    """A network's configuration, its family, and its tensors as stored; `custom_code`: it was published with code."""

    config: Config
    family: Family
    stored: Mapping[str, StoredTensor]
    custom_code: bool = False


def open_plain(folder: Folder) -> NetworkFiles:
    """Read config.json and open the tensors beside it. Errors: BertcliError for what is missing, or not supported."""
    path = folder.path
    names = [file.relative_to(path).as_posix() for file in (*path.glob("*"), *path.glob("onnx/*"))]
    if "config.json" not in names:
        others = sorted(path.glob("*/config.json"), key=os.path.getmtime)  # a training run's checkpoints, newest last
        advice = f"give {others[-1].parent}, which has one" if others else ADVICE
        raise lacks_weights(str(path), names, "no config.json", advice)
    settings = folder.object("config.json")
    config = parse_config(settings, settings.file)
    model_family = family(config.model_type)
    if not model_family.names:
        raise BertcliError(
            f"{path} is of the type {quoted(settings.get('model_type'))} ({config.title}), which is counted and "
            "traced but has no checkpoints: use another model."
        )
    if weights_file(folder) is None:
        raise lacks_weights(str(path), names)
    return NetworkFiles(config, model_family, open_tensors(folder), bool(settings.get("auto_map")))
