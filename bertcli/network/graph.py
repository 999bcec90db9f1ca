"""A network and ONNX: its graph, found by watching it, and the same network with ONNX Runtime behind it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import TypeVar

import bertcli
from bertcli.engine.array import Array, Integers
from bertcli.engine.onnx import file as onnx_file
from bertcli.engine.onnx.cache import key_of, open_cached
from bertcli.engine.onnx.exporter import Exporter
from bertcli.engine.onnx.graph import Graph
from bertcli.engine.onnx.session import check_device, hidden_states, require, runtime
from bertcli.engine.packing import Packed
from bertcli.engine.seam import watched
from bertcli.network.module import Module, Parameter, parameters, twins
from bertcli.network.network import Network

logger = logging.getLogger("bertcli")

OPSET = 20  # the first with Gelu
HIDDEN = "last_hidden_state"
N = TypeVar("N", bound=Network)


def exporter_of(network: Network, after: Sequence[Module] = (), *, opset: int, half: bool) -> Exporter:
    """A watcher that makes a graph of this network's passes, and of Dense layers that come `after` its pooling."""
    trees: dict[str, Module] = {"": network, **{f"dense.{number}": layer for number, layer in enumerate(after)}}
    places = [place for path, tree in trees.items() for place in twins(tree, path)]
    known = {path: one.array for path, one, _ in places if isinstance(one, Parameter)}
    return Exporter(Graph(known, opset, half=half), places)


def on_onnx_runtime(network: N, folder: Path, settings: object, precision: str, device: str) -> N:
    """The same network, but ONNX Runtime computes the hidden states of its last layer, from a graph in the cache.

    Heads, other layers and watched passes stay NumPy's. `folder` has the weights; `settings` is what the network was
    built from besides them. Errors: BertcliError if ONNX Runtime is not installed, or cannot use this device.
    """
    require("onnx", "onnxruntime")
    check_device(device)
    known = {one.path: one.array for one in parameters(network) if one.path.split(".")[0] not in network.heads}
    key = key_of(known, settings, bertcli.__version__, runtime().__version__, OPSET)
    model = key_of({}, str(folder), precision)
    if precision == "int8":
        logger.info(onnx_file.MEASURED)
    session = open_cached(model, key, lambda file: _make(network, precision, file), device)

    def forward(batch: Packed, rows: Integers | None = None) -> Array:
        if watched():
            return network.forward(batch, rows)
        hidden = hidden_states(session, batch)
        return hidden if rows is None else hidden[rows]

    other = copy(network)
    object.__setattr__(other, "forward", forward)  # as a field of this one module, which is frozen
    return other


def _make(network: Network, precision: str, file: Path) -> None:
    """Write the graph, its weights apart, so that they are mapped into memory."""
    exporter = exporter_of(network, opset=OPSET, half=False)
    outputs = exporter.watch(lambda batch: {HIDDEN: network(batch)})
    made = onnx_file.Export(exporter.graph, outputs, {})
    onnx_file.write_parts(made, file, apart=True)
    if precision == "int8":
        onnx_file.quantize(file)
