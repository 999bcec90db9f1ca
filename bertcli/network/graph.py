"""A network and ONNX: its graph, found by watching it, and ONNX Runtime with that graph."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import bertcli
from bertcli.engine.onnx import file as onnx_file
from bertcli.engine.onnx.cache import key_of, open_cached
from bertcli.engine.onnx.exporter import Exporter
from bertcli.engine.onnx.graph import Graph
from bertcli.engine.onnx.session import Session, check_device, require, runtime
from bertcli.network.module import Module, Parameter, parameters, twins
from bertcli.network.network import Network

logger = logging.getLogger("bertcli")

OPSET = 20  # the first with Gelu
HIDDEN = "last_hidden_state"


def exporter_of(network: Network, after: Sequence[Module] = (), *, opset: int, half: bool) -> Exporter:
    """A watcher that makes a graph of this network's passes, and of Dense layers that come `after` its pooling."""
    trees: dict[str, Module] = {"": network, **{f"dense.{number}": layer for number, layer in enumerate(after)}}
    places = [place for path, tree in trees.items() for place in twins(tree, path)]
    known = {path: one.array for path, one, _ in places if isinstance(one, Parameter)}
    return Exporter(Graph(known, opset, half=half), places)


def open_session(network: Network, folder: Path, settings: object, precision: str, device: str) -> Session:
    """ONNX Runtime with a graph in the cache that gives the hidden states of a network's last layer.

    `folder` has the weights; `settings` is what the network was built from besides them. Errors: BertcliError if ONNX
    Runtime is not installed, or cannot use this device.
    """
    require("onnx", "onnxruntime")
    check_device(device)
    known = {one.path: one.array for one in parameters(network) if one.path.split(".")[0] not in network.heads}
    key = key_of(known, settings, bertcli.__version__, runtime().__version__, OPSET)
    model = key_of({}, str(folder), precision)
    if precision == "int8":
        logger.info(onnx_file.MEASURED)
    return open_cached(model, key, lambda file: _make(network, precision, file), device)


def _make(network: Network, precision: str, file: Path) -> None:
    """Write the graph, its weights apart, so that they are mapped into memory."""
    exporter = exporter_of(network, opset=OPSET, half=False)
    outputs = exporter.watch(lambda batch: {HIDDEN: network(batch)})
    made = onnx_file.Export(exporter.graph, outputs, {})
    onnx_file.write_parts(made, file, apart=True)
    if precision == "int8":
        onnx_file.quantize(file)
