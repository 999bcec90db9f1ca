"""Open the weights of a GLiNER folder: those of a backbone and of the head that scores spans.

settings.py reads the settings. family.py makes the family: which parameter has which tensor.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder
from bertcli.kinds.spans.family import SPANS, with_spans
from bertcli.kinds.spans.settings import GLINER_FILE, GlinerSettings
from bertcli.models.config import Config
from bertcli.models.registry import Family, family, parse_config
from bertcli.weights.network_files import NetworkFiles
from bertcli.weights.tensors import open_tensors


def open_gliner(folder: Folder, settings: GlinerSettings) -> NetworkFiles:
    """Make the configuration of a GLiNER folder, and open its tensors. Errors as in `open_on_backbone`."""
    data, file = _backbone_config(folder, settings)
    files = open_on_backbone(folder, data, file, with_spans, gliner=settings)
    if not any(name.startswith(SPANS) for name in files.stored):
        raise BertcliError(f"{folder.path} has {GLINER_FILE}, but no tensors of spans ({SPANS}*): use another model.")
    return files


def open_on_backbone(
    folder: Folder, data: Mapping[str, Any], file: Path, with_heads: Callable[[Family], Family], **own: Any
) -> NetworkFiles:
    """Make the configuration of a model that stands on a backbone, and open its tensors.

    data         the backbone's config.json, which `file` has
    with_heads   makes the family with the model's own heads
    own          the fields of the configuration that only this family has

    The vocabulary is as large as the stored embeddings: the library adds tokens to its backbone's. Errors: BertcliError
    for a setting that is not supported, for a backbone of no family of the house, and for damaged weights.
    """
    stored = open_tensors(folder)
    try:
        backbone = parse_config({"vocab_size": 1, **data})
        member = with_heads(family(backbone.model_type))
        (prefix,) = member.prefixes
        tables = [prefix + tensor_slice.name for tensor_slice in member.tensor_slices("embeddings.token")]
        embeddings = next((stored[name] for name in tables if name in stored), None)
        if embeddings is not None and embeddings.shape:
            backbone = replace(backbone, vocab_size=max(1, embeddings.shape[0]))
        values = {item.name: getattr(backbone, item.name) for item in fields(backbone)}
        config: Config = member.config(**values | own)
    except BertcliError as error:
        raise BertcliError(f"{file}: {error}") from None
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
