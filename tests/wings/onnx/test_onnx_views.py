"""Views of a traced value in a graph: each gives the numbers that NumPy gives."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bertcli.tracing.dispatch import divided
from bertcli.tracing.traced import Origins, Traced, named_axes
from bertcli.wings.onnx.exporter import LENGTH, SENTENCES, Exporter
from bertcli.wings.onnx.file import Export, check, write
from bertcli.wings.onnx.graph import IDS, Graph, OnnxValue

HEADS, SIZE = 2, 4
WIDTH = HEADS * SIZE
View = Callable[[Any], Any]


def in_graph(view: View) -> tuple[NDArray[Any], NDArray[Any]]:
    """What a graph and what NumPy gives for a view of packed rows [token, width]."""
    array = np.arange(SENTENCES * LENGTH * WIDTH, dtype=np.float32).reshape(-1, WIDTH)
    exporter = Exporter(Graph({}, 20), ())
    graph = exporter.graph
    numbers = OnnxValue(graph, IDS).cast().unsqueezed(2) + np.arange(WIDTH, dtype=np.float32)
    rows, columns = named_axes(["B", "S", "H"], [SENTENCES, LENGTH, WIDTH])[:2], named_axes(["H"], [WIDTH])
    value = Traced(array, ((*rows[0], *rows[1]), *columns), Origins([numbers.name]))
    export = Export(graph, {"view": exporter.tensor(view(value))}, {})
    check(export)
    file = io.BytesIO()
    write(export, file)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    first = (WIDTH * np.arange(SENTENCES * LENGTH)).reshape(SENTENCES, LENGTH)
    (found,) = session.run(None, {IDS: first})
    return found, view(array)


def heads(x: Any) -> Any:
    return divided(divided(x, 0, SENTENCES), 2, HEADS).transpose(0, 2, 1, 3)


def test_onnx_views_of_heads() -> None:
    found, expected = in_graph(heads)
    np.testing.assert_array_equal(found, expected)


@given(st.permutations(range(4)))
def test_onnx_views_in_any_order(axes: list[int]) -> None:
    found, expected = in_graph(lambda x: heads(x).transpose(*axes))
    np.testing.assert_array_equal(found, expected)


@given(st.integers(0, WIDTH - 1), st.integers(1, WIDTH))
def test_onnx_views_of_some_columns(start: int, count: int) -> None:
    found, expected = in_graph(lambda x: x[:, start : start + count])
    np.testing.assert_array_equal(found, expected.reshape(SENTENCES, LENGTH, -1))


def test_onnx_views_of_one_sentence_and_of_half_a_head() -> None:
    found, expected = in_graph(lambda x: divided(x, 0, SENTENCES)[1])
    np.testing.assert_array_equal(found, expected)
    found, expected = in_graph(lambda x: heads(x)[:, 1:, :, : SIZE // 2])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "view",
    [lambda x: x[1:], lambda x: x[:, ::3], lambda x: x[::-1], lambda x: x[: SENTENCES + 2]],
    ids=["rows", "step", "back", "some"],
)
def test_onnx_views_of_some_tokens_are_refused(view: View) -> None:
    with pytest.raises(RuntimeError, match="no graph can have"):
        in_graph(view)
