"""Open the weights of a GLiNER folder: those of a backbone and of the head that scores spans.

settings.py reads the settings. family.py makes the family: which parameter has which tensor.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder
from bertcli.kinds.spans.family import PREFIX, SPANS, with_spans
from bertcli.kinds.spans.settings import GLINER_FILE, GlinerSettings
from bertcli.models.config import Config
from bertcli.models.registry import family, parse_config
from bertcli.weights.network_files import NetworkFiles
from bertcli.weights.tensors import open_tensors


def open_gliner(folder: Folder, settings: GlinerSettings) -> NetworkFiles:
    """Make the configuration of a GLiNER folder, and open its tensors.

    The vocabulary is as large as the stored embeddings: GLiNER adds tokens to its backbone's. Errors: BertcliError for
    a setting that is not supported, for a backbone of no family of the house, and for damaged weights.
    """
    data, file = _backbone_config(folder, settings)
    stored = open_tensors(folder)
    try:
        backbone = parse_config({"vocab_size": 1, **data})
        member = with_spans(family(backbone.model_type))
        tables = [PREFIX + tensor_slice.name for tensor_slice in member.tensor_slices("embeddings.token")]
        embeddings = next((stored[name] for name in tables if name in stored), None)
        if embeddings is not None and embeddings.shape:
            backbone = replace(backbone, vocab_size=max(1, embeddings.shape[0]))
        config: Config = member.config(**_values(backbone) | {"gliner": settings})
    except BertcliError as error:
        raise BertcliError(f"{file}: {error}") from None
    if not any(name.startswith(SPANS) for name in stored):
        raise BertcliError(f"{folder.path} has {GLINER_FILE}, but no tensors of spans ({SPANS}*): use another model.")
    return NetworkFiles(config, member, stored)


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


def _values(config: Config) -> dict[str, Any]:
    """The fields of a configuration, to make one of another class."""
    return {item.name: getattr(config, item.name) for item in fields(config)}
