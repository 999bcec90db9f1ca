"""Open a session of ONNX Runtime for a network; engine.py makes the engine of a model of it.

exporter.py makes the graph, session.py runs it and keeps it in the cache.
"""

from pathlib import Path

from bertcli._version import __version__
from bertcli.models.config import Config
from bertcli.network.heads import Network
from bertcli.network.module import parameters
from bertcli.weights.digest import key_of
from bertcli.wings.onnx import file as onnx_file
from bertcli.wings.onnx.exporter import HIDDEN, OPSET, exporter_of
from bertcli.wings.onnx.pass_times import measured_calls
from bertcli.wings.onnx.session import Session, open_cached, provider_of, require, runtime

LAYOUT = "packed, 3"  # part of the key of kept graphs: change it with what is in them


def open_session(
    network: Network,
    folder: Path,
    config: Config,
    *,
    precision: str = "float32",
    device: str = "cpu",
) -> Session:
    """Open a session that computes the hidden states of a network's last layer; its graph is kept in the cache.

    folder: the model's, which names the graph's folder in the cache. config: the network's, part of the graph's key.
    Errors: BertcliError if ONNX Runtime is not installed, or cannot use this device.
    """
    require("onnx", "onnxruntime")
    provider_of(device)
    weights = {
        weight.path: weight.array for weight in parameters(network) if weight.path.split(".")[0] not in network.heads
    }
    key = key_of(weights, config, __version__, runtime().__version__, OPSET, LAYOUT)
    model = key_of({}, str(folder), precision)
    session = open_cached(model, key, lambda file: _make(network, precision, file), device)
    session.overhead = measured_calls(session, config.vocab_size, config.max_tokens)
    return session


def _make(network: Network, precision: str, file: Path) -> None:
    """Write the graph with its weights in a second file, which ONNX Runtime maps into memory."""
    exporter = exporter_of(network, opset=OPSET, packed=True)
    outputs = exporter.watch(lambda batch: {HIDDEN: network(batch)})
    export = onnx_file.Export(exporter.graph, outputs, {})
    onnx_file.write_parts(export, file, two_files=True)
    if precision == "int8":
        onnx_file.quantize(file)
