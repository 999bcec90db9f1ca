"""Open the weights of a static model: a table of token vectors, as sentence-transformers or model2vec stores it."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder
from bertcli.models.registry import family
from bertcli.weights.network_files import NetworkFiles
from bertcli.weights.tensors import StoredTensor, open_tensors

TABLE, MODEL2VEC = "embedding.weight", "embeddings"  # the table's name in sentence-transformers, and in model2vec
WHOLE = "I8"  # the type of numbers that quantize_to="int8" of model2vec writes


def open_table(folder: Folder) -> NetworkFiles:
    """Open the table [token, width] in a folder, and make the configuration of its shape.

    model2vec may store fewer rows, with the row (`mapping`) and a factor (`weights`) for each token: then the table is
    expanded, as sentence-transformers does. Rows of int8 are numbers as they are, without a scale.
    Errors: BertcliError naming file and tensor.
    """
    stored = open_tensors(folder)
    name = next((name for name in (TABLE, MODEL2VEC) if name in stored), None)
    if name is None:
        raise BertcliError(
            f"{folder.path} has no table of vectors, a tensor {TABLE} or {MODEL2VEC}: use another model."
        )
    table = stored[name]
    if len(table.shape) != 2:
        raise BertcliError(
            f"{table.file} has tensor {name} of shape {table.shape}, which is no table of vectors: use another model."
        )
    if table.dtype == WHOLE or (name == MODEL2VEC and {"mapping", "weights"} & stored.keys()):
        stored = {name: table._replace(dtype="F32", array=_folded(table, stored), stored_as=table.dtype)}
    rows, width = stored[name].shape
    model_family = family("model2vec")
    config = model_family.config.parse({"vocab_size": rows, "hidden_size": width})
    return NetworkFiles(config, model_family, stored)


def _folded(table: StoredTensor, stored: Mapping[str, StoredTensor]) -> NDArray[np.float32]:
    """Expand model2vec's table: embeddings[mapping] · weights."""
    values = table.array.astype(np.float32) if table.dtype == WHOLE else table.float32()
    if "mapping" in stored:
        rows = stored["mapping"].array
        if rows.dtype.kind not in "iu" or rows.ndim != 1 or not np.isin(rows, np.arange(len(values))).all():
            raise BertcliError(f"{table.file} has a mapping of tokens to rows that do not exist: use another model.")
        values = values[rows]
    if "weights" in stored:
        factors = stored["weights"].float32()
        if factors.shape != (len(values),):
            raise BertcliError(
                f"{table.file} has weights of shape {quoted(factors.shape)} for {len(values)} tokens: use "
                "another model."
            )
        values = values * factors[:, None]
    values.setflags(write=False)
    return values
