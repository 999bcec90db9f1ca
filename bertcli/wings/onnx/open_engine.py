"""Choose the engine: NumPy or ONNX Runtime as `engine` (--engine) names it, for "auto" the faster one.

`LoadedModel` calls `open_engine` when it is made. With "auto" and no winner the choice is made for each batch, by
`Speeds.prefers_onnx` in speeds.py. exporter.py makes the graph, session.py runs it and keeps it in the cache.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from bertcli._version import __version__
from bertcli.errors import BertcliError
from bertcli.network.heads import Network
from bertcli.network.module import parameters
from bertcli.wings.onnx import file as onnx_file
from bertcli.wings.onnx.exporter import HIDDEN, OPSET, exporter_of
from bertcli.wings.onnx.session import Session, key_of, open_cached, provider_of, require, runtime
from bertcli.wings.onnx.speeds import Speeds, measured_calls, measured_speeds, tokens_of_a_call

LAYOUT = "packed, 3"  # part of the key of kept graphs: change it with what is in them
ChosenEngine = Literal["numpy", "onnx", "auto"]


def open_session(
    network: Network, folder: Path, settings: object, precision: str, device: str, kept: Sequence[str] = ()
) -> Session:
    """Open a session that computes the hidden states of a network's last layer; its graph is kept in the cache.

    folder: the model's, which names the graph's folder in the cache. settings: the network's configuration, part of
    the graph's key. kept: paths of layers that stay in float32 where the precision is int8. Errors: BertcliError if
    ONNX Runtime is not installed, or cannot use this device.
    """
    require("onnx", "onnxruntime")
    provider_of(device)
    weights = {
        weight.path: weight.array for weight in parameters(network) if weight.path.split(".")[0] not in network.heads
    }
    # In the key only where there are any, so that a graph without them has one key, whoever asks for it.
    float_layers = [tuple(kept)] if kept else []
    key = key_of(weights, settings, __version__, runtime().__version__, OPSET, LAYOUT, *float_layers)
    model = key_of({}, str(folder), precision)
    return open_cached(model, key, lambda file: _make(network, precision, file, kept), device)


class OpenedEngine(NamedTuple):
    """The result of `open_engine`: the engine, ONNX Runtime's session if it is used, speeds, a line for the user."""

    name: ChosenEngine
    session: Session | None
    speeds: Speeds | None = None
    note: str = ""


def open_engine(
    name: Literal["onnx", "auto"],
    network: Network,
    folder: Path,
    settings: object,
    *,
    precision: str = "float32",
    device: str = "cpu",
    vocabulary: int,
    most_tokens: int,
    speeds: Speeds | None = None,
    kept: Sequence[str] = (),
) -> OpenedEngine:
    """Open ONNX Runtime's session for a network; for "auto", measure both engines and choose the faster one.

    The answer to "auto" is "auto" if the faster engine depends on the batch, and NumPy, with the reason in the line, if
    ONNX Runtime cannot be used. folder, settings, precision, device, kept: as in `open_session`. speeds: another
    process's measurements, used instead of new ones. Errors: those of `open_session`, for "onnx".
    """
    try:
        session = open_session(network, folder, settings, precision, device, kept)
    except BertcliError as error:
        if name == "onnx":
            raise
        return OpenedEngine("numpy", None, note=f"engine auto: NumPy computes. {error}")
    if name == "onnx":
        session.overhead = measured_calls(session, vocabulary, most_tokens)
        return OpenedEngine("onnx", session, speeds)
    if speeds is None:
        speeds = measured_speeds(session, network, vocabulary, most_tokens)
    session.overhead = tokens_of_a_call(speeds.onnx)
    chosen: ChosenEngine = speeds.winner or "auto"
    choices = {
        "numpy": "NumPy computes",
        "onnx": "ONNX Runtime computes",
        "auto": "the faster one computes each batch",
    }
    note = f"engine auto: {choices[chosen]} ({speeds})."
    return OpenedEngine(chosen, None if chosen == "numpy" else session, speeds, note)


def _make(network: Network, precision: str, file: Path, kept: Sequence[str] = ()) -> None:
    """Write the graph with its weights in a second file, which ONNX Runtime maps into memory."""
    exporter = exporter_of(network, opset=OPSET, packed=True)
    outputs = exporter.watch(lambda batch: {HIDDEN: network(batch)})
    export = onnx_file.Export(exporter.graph, outputs, {})
    onnx_file.write_parts(export, file, two_files=True)
    if precision == "int8":
        onnx_file.quantize(file, kept)
