"""Write a graph as an ONNX file, weight by weight, so that no copy of the weights is in memory.

exporter.py makes the graph. What `bertcli export` puts into it, metadata and files beside it, is in
wings/onnx/export.py.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli._version import __version__
from bertcli.wings.onnx.graph import FLOAT, INT64, Graph, Node, OnnxValue
from bertcli.wings.onnx.session import runtime

if TYPE_CHECKING:
    import onnx

LARGEST_FILE = 2**31 - 1  # bytes that protobuf can read; what is larger has its weights in a second file
DATA = "_data"  # ends the name of that file
ALIGNMENT = 4096  # of a weight in that file, so that it can be memory-mapped
OLDEST_OPSET = 18  # ReduceMax and others have their axes as an input since then
PRODUCER = "bertcli"
LESS_EXACT = (
    "int8 is faster and less exact, some models far more than others: --engine onnx-int8 measures the "
    "cosine with float32's vectors."
)

# Fields of protobuf's messages (onnx.proto3): a length-delimited field has the tag 8 · number + 2.
_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9


class Export(NamedTuple):
    """A graph and its results, by their names in the file, in this order."""

    graph: Graph
    outputs: Mapping[str, OnnxValue]
    metadata: Mapping[str, str]

    @property
    def nodes(self) -> list[Node]:
        """The nodes that the results depend on."""
        return self.graph.needed([tensor.name for tensor in self.outputs.values()])

    @property
    def weights(self) -> dict[str, NDArray[Any]]:
        """The weights that these nodes read."""
        used = {name for node in self.nodes for name in node.inputs}
        return {name: weight for name, weight in self.graph.weights.items() if name in used}

    def type(self, weight: NDArray[Any]) -> np.dtype[Any]:
        """The type that a weight is stored as."""
        return np.dtype("<f2") if self.graph.stored == "float16" else weight.dtype

    def size(self, weight: NDArray[Any]) -> int:
        """Count the bytes of a weight as it is stored."""
        return weight.size * self.type(weight).itemsize


def check(export: Export) -> None:
    """Raise if onnx.checker finds a fault, in nodes, types or shapes. Weights count as inputs of their shape."""
    from onnx import checker, helper

    model = _without_weights(export)
    for name, weight in export.weights.items():
        data_type = helper.np_dtype_to_tensor_dtype(export.type(weight))
        model.graph.input.append(helper.make_tensor_value_info(name, data_type, weight.shape))
    checker.check_model(model, full_check=True)


def write(export: Export, file: BinaryIO, beside: BinaryIO | None = None, location: str = "") -> None:
    """Write the whole model; with `beside` the weights go there, and the model refers to them by `location`."""
    from onnx import TensorProto, helper

    model = _without_weights(export)
    offset = 0
    inside: list[tuple[bytes, NDArray[Any]]] = []  # weights, each after the bytes before its numbers
    for name, weight in export.weights.items():
        data_type = helper.np_dtype_to_tensor_dtype(export.type(weight))
        tensor = TensorProto(name=name, dims=weight.shape, data_type=data_type)
        size = export.size(weight)
        if beside is None:
            head = tensor.SerializeToString() + _tag(_RAW_DATA, size)
            inside.append((_tag(_INITIALIZER, len(head) + size) + head, weight))
            offset += len(inside[-1][0]) + size
            continue
        offset += -offset % ALIGNMENT
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", str(offset)), ("length", str(size))):
            tensor.external_data.add(key=key, value=value)
        model.graph.initializer.append(tensor)
        beside.seek(offset)
        beside.writelines(_bytes(export, weight))
        offset += size
    # Messages are joined by writing one after the other: the weights inside follow the rest of the graph.
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    file.write(model.SerializeToString())
    file.write(_tag(_GRAPH, len(graph) + (offset if beside is None else 0)) + graph)
    for head, weight in inside:
        file.write(head)
        file.writelines(_bytes(export, weight))


def write_parts(export: Export, file: Path, *, two_files: bool) -> None:
    """Write a file; with `two_files` the weights go into a second one, beside it."""
    with file.open("wb") as whole:
        if not two_files:
            write(export, whole)
            return
        with Path(f"{file}{DATA}").open("wb") as weights:
            write(export, whole, weights, f"{file.name}{DATA}")


def quantize(file: Path) -> None:
    """Make the matrices and tables of a file int8, matrices with a scale for each column; the rest stays as it is.

    Activations are rounded to 8 bits as the graph runs, with one scale for a whole batch, which costs most of the
    exactness.
    Weights are rounded to 7 bits (-64 to 64): processors without VNNI add two products in 16 bits, which saturate at
    32,767, and 2 · 255 · 64 is below that. So every processor gives the same sums. With 8 bits, one without VNNI gave
    logits of the bundled classifier that were off by up to 0.23, with 7 bits by 0.05.
    """
    runtime()
    from onnxruntime.quantization import QuantType, quantize_dynamic

    made = file.with_name("quantized.onnx")
    settings = {"per_channel": True, "reduce_range": True, "weight_type": QuantType.QInt8}
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)  # without any, `logging.warning` would set up logging for the whole program
    try:
        quantize_dynamic(file, made, op_types_to_quantize=["MatMul", "Gather"], **settings)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}, there or in {gettempdir()}, as quantizing needs both") from None
    finally:
        root.removeHandler(handler)
    os.replace(made, file)
    Path(f"{file}{DATA}").unlink(missing_ok=True)


def newest_opset() -> int:
    """The newest operator set of the installed onnx."""
    from onnx import defs

    return int(defs.onnx_opset_version())


def size_of_weights(export: Export) -> int:
    """Count the bytes of all weights as they are stored."""
    return sum(map(export.size, export.weights.values()))


def _without_weights(export: Export) -> "onnx.ModelProto":
    from onnx import helper, numpy_helper

    graph, nodes = export.graph, export.nodes
    used = {name for node in nodes for name in node.inputs}
    proto = []
    for node in nodes:
        made = helper.make_node(node.op_type, node.inputs, [node.output], name=node.output, **node.attributes)
        proto.append(made)
    outputs = []
    for name, tensor in export.outputs.items():
        # A node that gives the result the name that the file promises.
        proto.append(helper.make_node("Identity", [tensor.name], [name], name=name))
        shape = [dim.symbol or dim.size for dim in tensor.dims]
        outputs.append(helper.make_tensor_value_info(name, FLOAT, shape))
    inputs = [helper.make_tensor_value_info(name, INT64, dims) for name, dims in graph.inputs.items() if name in used]
    constants = [numpy_helper.from_array(value, name) for name, value in graph.constants.items() if name in used]
    opset = helper.make_opsetid("", graph.opset)
    model = helper.make_model(
        helper.make_graph(proto, PRODUCER, inputs, outputs, constants),
        opset_imports=[opset],
        ir_version=helper.find_min_ir_version_for([opset]),
        producer_name=PRODUCER,
        producer_version=__version__,
    )
    helper.set_model_props(model, dict(export.metadata))
    return model


def _bytes(export: Export, weight: NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of a weight as they are stored, some rows at a time: little-endian, row-major."""
    rows = max(1, (1 << 22) // max(1, weight[:1].size))
    for first in range(0, len(weight), rows):
        yield weight[first : first + rows].astype(export.type(weight), copy=False).tobytes()


def _tag(field: int, length: int) -> bytes:
    """The head of a length-delimited field: its tag and the length, seven bits to a byte, lowest first."""
    head = bytes([8 * field + 2])
    while length > 127:
        head += bytes([length & 127 | 128])
        length >>= 7
    return head + bytes([length])
