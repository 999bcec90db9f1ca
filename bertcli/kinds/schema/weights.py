"""Open the weights of a GLiNER2 folder: those of a backbone and of the heads.

settings.py reads the settings. family.py makes the family: which parameter has which tensor.
"""

from dataclasses import fields, replace

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.kinds.schema.family import PREFIX, SPANS, with_schema
from bertcli.kinds.schema.settings import ENCODER_FILE, SchemaSettings
from bertcli.models.config import Config
from bertcli.models.registry import family, parse_config
from bertcli.weights.network_files import NetworkFiles
from bertcli.weights.tensors import open_tensors


def open_schema(folder: Folder, settings: SchemaSettings) -> NetworkFiles:
    """Make the configuration of a GLiNER2 folder, and open its tensors.

    The vocabulary is as large as the stored embeddings: GLiNER2 adds tokens to its backbone's. Errors: BertcliError for
    a setting that is not supported, for a backbone of no family of the house, and for damaged weights.
    """
    stored = open_tensors(folder)
    try:
        backbone = parse_config({"vocab_size": 1, **settings.encoder})
        member = with_schema(family(backbone.model_type))
        tables = [PREFIX + tensor_slice.name for tensor_slice in member.tensor_slices("embeddings.token")]
        embeddings = next((stored[name] for name in tables if name in stored), None)
        if embeddings is not None and embeddings.shape:
            backbone = replace(backbone, vocab_size=max(1, embeddings.shape[0]))
        values = {item.name: getattr(backbone, item.name) for item in fields(backbone)}
        config: Config = member.config(**values | {"schema": settings})
    except BertcliError as error:
        raise BertcliError(f"{folder.file(ENCODER_FILE)}: {error}") from None
    if not any(name.startswith(SPANS) for name in stored):
        raise BertcliError(f"{folder.path} is a GLiNER2 model without tensors of spans ({SPANS}*): use another model.")
    return NetworkFiles(config, member, stored)
