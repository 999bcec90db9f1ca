"""A graph's file: what onnx reads from it, with weights inside or beside."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import bertcli
from bertcli.wings.onnx import file as onnx_file
from bertcli.wings.onnx.graph import FLOAT, IDS, Dim, Graph
from bertcli.wings.onnx.session import Session

TABLE = (np.arange(15) / 8).astype(np.float32).reshape(5, 3)  # exact in float16
WEIGHT = (np.arange(12) / 8).astype(np.float32).reshape(4, 3)
METADATA = {"source": "small", "labels": '["ü", "b"]'}


def small(*, half: bool = False, tied: bool = False) -> onnx_file.Export:
    graph = Graph({"table": TABLE, "weight": WEIGHT}, 20, "float16" if half else "float32")
    rows = graph.rows("table", IDS)
    made = graph.node("MatMul", rows, graph.matrix("table" if tied else "weight"))
    graph.node("Neg", made)  # which nothing needs
    dims = (Dim(2, "batch"), Dim(3, "sequence")), (Dim(5 if tied else 4),)
    return onnx_file.Export(graph, {"made": made.with_axes(*dims)}, METADATA)


def written(export: onnx_file.Export, folder: Path, *, beside: bool) -> onnx.ModelProto:
    onnx_file.check(export)
    with (folder / "m.onnx").open("wb") as file, (folder / "m.onnx_data").open("wb") as data:
        onnx_file.write(export, file, data if beside else None, "m.onnx_data")
    onnx.checker.check_model(str(folder / "m.onnx"), full_check=True)
    return onnx.load(folder / "m.onnx")


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("half", [False, True])
def test_onnx_file_holds_the_weights(tmp_path: Path, beside: bool, half: bool) -> None:
    model = written(small(half=half), tmp_path, beside=beside)
    found = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    assert {name for name in found if not name.startswith("constant")} == {"table", "weight.T"}
    assert found["table"].dtype == (np.float16 if half else np.float32)
    np.testing.assert_array_equal(found["table"], TABLE)
    np.testing.assert_array_equal(found["weight.T"], WEIGHT.T)
    assert ((tmp_path / "m.onnx_data").stat().st_size > 0) is beside


def test_onnx_file_stores_a_tied_weight_once(tmp_path: Path) -> None:
    model = written(small(tied=True), tmp_path, beside=False)
    assert [one.name for one in model.graph.initializer] == ["table"]
    ids = np.array([[0, 4]])
    (got,) = ReferenceEvaluator(model).run(None, {IDS: ids})
    np.testing.assert_allclose(np.asarray(got), TABLE[ids] @ TABLE.T)


def test_onnx_file_says_what_it_is(tmp_path: Path) -> None:
    model = written(small(), tmp_path, beside=False)
    assert {one.key: one.value for one in model.metadata_props} == METADATA
    assert (model.producer_name, model.producer_version) == ("bertcli", bertcli.__version__)
    assert [(one.domain, one.version) for one in model.opset_import] == [("", 20)]
    assert [one.name for one in model.graph.input] == [IDS]
    assert [one.name for one in model.graph.output] == ["made"]
    shape = model.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in shape] == ["batch", "sequence", 4]
    assert "Neg" not in [node.op_type for node in model.graph.node]


def test_onnx_file_of_weights_can_be_memory_mapped(tmp_path: Path) -> None:
    written(small(), tmp_path, beside=True)
    model = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    places = [{one.key: one.value for one in tensor.external_data} for tensor in model.graph.initializer]
    assert [int(one["offset"]) % onnx_file.ALIGNMENT for one in places] == [0, 0]
    assert {one["location"] for one in places} == {"m.onnx_data"}


def test_onnx_file_with_a_fault_is_not_written() -> None:
    export = small()
    export.graph.nodes.append(export.graph.nodes[-1]._replace(op_type="NoSuchOperator", output="wrong"))
    with pytest.raises(onnx.checker.ValidationError, match="NoSuchOperator"):
        onnx_file.check(export._replace(outputs={"wrong": replace(export.outputs["made"], name="wrong")}))


def test_onnx_file_int8_is_off_by_rounding_alone(tmp_path: Path) -> None:
    """Large positive numbers everywhere: where a processor adds two products in 16 bits, 8 times 8 bits saturate."""
    generator = np.random.default_rng(0)
    weight = generator.uniform(0.8, 1, (5, 64)).astype(np.float32)
    graph = Graph({"weight": weight}, 20)
    made = graph.node("MatMul", graph.node("Cast", IDS, to=FLOAT), graph.matrix("weight"))
    outputs = {"y": made.with_axes((Dim(2, "batch"),), (Dim(5),))}
    onnx_file.write_parts(onnx_file.Export(graph, outputs, {}), tmp_path / "m", two_files=False)
    onnx_file.quantize(tmp_path / "m")
    ids = generator.integers(200, 256, (3, 64))
    (got,) = Session(tmp_path / "m")({IDS: ids}).values()
    steps = ids.max() / 255, weight.max(axis=1) / 64  # of activations, and of each column of the weight
    expected = ids @ weight.T
    bound = 64 * (ids.max() * steps[1] / 2 + weight.max() * steps[0] / 2 + steps[0] * steps[1] / 4)
    assert (np.abs(got - expected) <= bound).all()
    assert (bound < 0.02 * expected).all()
    assert np.abs(got - expected).max() > 1e-3  # it is another precision


@pytest.mark.parametrize("two_files", [False, True])
def test_onnx_file_stored_as_int8_is_off_by_half_a_step(tmp_path: Path, two_files: bool) -> None:
    generator = np.random.default_rng(0)
    table = generator.normal(0, 1, (6, 64)).astype(np.float32) * np.array(
        [[1], [0], [100], [1e-3], [1], [1]], np.float32
    )
    weight = generator.normal(0, 1, (3, 64)).astype(np.float32)
    graph = Graph({"table": table, "weight": weight}, 18, "int8")
    rows = graph.rows("table", IDS)
    outputs = {"rows": rows, "products": graph.node("MatMul", rows, graph.matrix("weight"))}
    dims = (Dim(2, "batch"), Dim(3, "sequence"))
    tensors = {name: made.with_axes(dims, (Dim(64 if name == "rows" else 3),)) for name, made in outputs.items()}
    onnx_file.write_parts(onnx_file.Export(graph, tensors, {}), tmp_path / "m.onnx", two_files=two_files)
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    found = Session(tmp_path / "m.onnx")({IDS: np.arange(6).reshape(2, 3)})
    half = np.abs(table).reshape(6, 2, 32).max(axis=-1).repeat(32, axis=1) / 254
    error = np.abs(found["rows"].reshape(6, 64) - table)
    assert (error <= half * 1.0001).all()
    assert (error > half / 2).any()
    halves = np.abs(weight.T).reshape(-1, 32).max(axis=-1).repeat(32).reshape(64, 3) / 254
    expected, bound = found["rows"].reshape(6, 64) @ weight.T, np.abs(found["rows"].reshape(6, 64)) @ halves
    assert (np.abs(found["products"].reshape(6, 3) - expected) <= bound * 1.0001 + 1e-6).all()
