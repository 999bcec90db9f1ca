"""Views of an array, found again in a graph: any of them gives the numbers that NumPy gives."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bertcli.engine.onnx.file import Export, check, write
from bertcli.engine.onnx.graph import FLOAT, IDS, Dim, Graph, Tensor
from bertcli.engine.onnx.values import Values

BATCH, TOKEN, HEADS, SIZE = 2, 3, 2, 4
TOKENS = (Dim(BATCH, "batch"), Dim(TOKEN, "sequence"))
Array = NDArray[Any]


def packed(order: str, width: int = HEADS * SIZE) -> Array:
    """Packed rows [token, width], with rows or columns adjacent in memory."""
    return np.asarray(np.arange(BATCH * TOKEN * width, dtype=np.float32).reshape(-1, width), order=order)  # type: ignore[call-overload, no-any-return]


def run(graph: Graph, outputs: Mapping[str, Tensor], ids: Array) -> dict[str, Array]:
    export = Export(graph, outputs, {})
    check(export)
    file = io.BytesIO()
    write(export, file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    return dict(zip(outputs, session.run(None, {IDS: ids}), strict=True))


def in_graph(array: Array, view: Array) -> Array:
    """What a graph gives for a view of packed rows, whose numbers are its input ids."""
    graph = Graph({}, 20)
    values = Values(graph)
    ids = graph.node("Unsqueeze", graph.node("Cast", IDS, to=FLOAT), graph.integers([2]))
    numbers = graph.node("Add", ids, graph.constant(np.arange(array.shape[1], dtype=np.float32)))
    values.bind(array, Tensor(numbers, (TOKENS, (Dim(array.shape[1]),))))
    found = values.find(view)
    assert found is not None
    first_of_rows = (array.shape[1] * np.arange(BATCH * TOKEN)).reshape(BATCH, TOKEN)
    return run(graph, {"view": found}, first_of_rows)["view"]


def heads(x: Array) -> Array:
    return x.reshape(BATCH, TOKEN, -1, SIZE, copy=False).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("order", ["C", "F"])
def test_onnx_views_of_heads(order: str) -> None:
    array = packed(order)
    np.testing.assert_array_equal(in_graph(array, heads(array)), heads(array))


@pytest.mark.parametrize("order", ["C", "F"])
def test_onnx_views_of_a_third_then_heads(order: str) -> None:
    array = packed(order, 3 * HEADS * SIZE)
    for third in range(3):
        view = heads(array[:, third * HEADS * SIZE : (third + 1) * HEADS * SIZE])
        np.testing.assert_array_equal(in_graph(array, view), view)


@pytest.mark.parametrize("order", ["C", "F"])
def test_onnx_views_of_half_a_head(order: str) -> None:
    array = packed(order)
    for half in (slice(None, SIZE // 2), slice(SIZE // 2, None)):
        np.testing.assert_array_equal(in_graph(array, heads(array)[..., half]), heads(array)[..., half])


@given(st.sampled_from("CF"), st.permutations(range(4)))
def test_onnx_views_in_any_order(order: str, axes: list[int]) -> None:
    array = packed(order)
    view = heads(array).transpose(axes)
    np.testing.assert_array_equal(in_graph(array, view), view)


@given(st.sampled_from("CF"), st.integers(0, 7), st.integers(1, 8))
def test_onnx_views_of_some_columns(order: str, start: int, count: int) -> None:
    array = packed(order)
    for view in (array[:, start : start + count], array[:, start]):
        np.testing.assert_array_equal(in_graph(array, view), view.reshape(BATCH, TOKEN, *view.shape[1:]))


def test_onnx_views_unknown_to_a_graph_are_refused() -> None:
    array = packed("C")
    values = Values(Graph({}, 20))
    values.bind(array, Tensor("x", (TOKENS, (Dim(HEADS * SIZE),))))
    assert values.find(array.copy()) is None
    for view in (array[1:], array[:, ::3], array[::-1]):
        with pytest.raises(RuntimeError, match="no graph can have"):
            values.find(view)


def test_onnx_views_forget_what_was_overwritten() -> None:
    array = packed("F")
    values = Values(Graph({}, 20))
    before, after = (Tensor(name, (TOKENS, (Dim(HEADS * SIZE),))) for name in ("before", "after"))
    values.bind(array, before)
    assert values.find(array) == before
    values.bind(array, after)
    assert values.find(array) == after
