"""What ONNX Runtime adds to `bertcli doctor`: its version and cache, and with -m the times of both engines."""

import logging
from typing import Any

from bertcli.errors import BertcliError
from bertcli.loaded_model import LoadedModel
from bertcli.wings.onnx.open_session import open_session
from bertcli.wings.onnx.pass_times import rows
from bertcli.wings.onnx.session import available_devices, cache_folder, cache_size, installed, runtime

logger = logging.getLogger("bertcli")


def examine() -> dict[str, Any]:
    """The part of the record of `bertcli doctor` about ONNX Runtime: version, devices, the folder of cached graphs."""
    if not (installed("onnxruntime") and installed("onnx")):
        return {"onnxruntime": "not installed: pip install 'bertcli[onnx]'"}
    return {
        "onnxruntime": runtime().__version__,
        "onnx_devices": available_devices(),
        "onnx_graphs": str(cache_folder()),
        "onnx_graphs_mb": round(cache_size() / 1e6, 1),
    }


def engine_times(model: LoadedModel) -> list[dict[str, Any]]:
    """Measure a model in both engines: a row for each shape; empty, with a note, if ONNX Runtime cannot run it."""
    config = model.config
    if not (config.contextual and config.num_hidden_layers):
        logger.info("%s has no layers: it is a table of vectors, which is not measured.", model.name)
        return []
    assert model.path is not None
    try:
        session = open_session(model.network, model.path, config)
    except BertcliError as error:
        logger.info("NumPy alone can run this model here. %s", error)
        return []
    return rows(session, model.network, config.vocab_size, config.max_tokens)
