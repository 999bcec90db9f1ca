"""Every op has an ONNX rule, which takes what the op takes."""

import inspect
from typing import Any

import numpy as np
import pytest
from helpers.ops import OF_KINDS, OPS

from bertcli.engine import kernels
from bertcli.tracing.dispatch import Op
from bertcli.tracing.traced import Origins, Traced, named_axes
from bertcli.wings.onnx import rules
from bertcli.wings.onnx.exporter import LENGTH, SENTENCES, Exporter
from bertcli.wings.onnx.graph import Graph, OnnxValue


@pytest.mark.parametrize("op", [one for one in OPS.values() if one.name not in OF_KINDS], ids=lambda op: op.name)
def test_onnx_rules_take_what_their_op_takes(op: Op[Any]) -> None:
    taken = list(inspect.signature(getattr(rules, op.name)).parameters.values())
    wanted = [one for name, one in inspect.signature(op.compute).parameters.items() if name != "into"]
    assert [(one.name, one.default) for one in taken] == [(one.name, one.default) for one in wanted]


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("name", sorted(kernels.ACTIVATIONS))
def test_onnx_rules_know_every_activation(name: str, opset: int) -> None:
    graph = Graph({}, opset)
    assert rules.activated(OnnxValue(graph, "x"), name).name == graph.nodes[-1].output


def test_onnx_rules_refuse_an_activation_they_do_not_know() -> None:
    with pytest.raises(RuntimeError, match="mish"):
        rules.activated(OnnxValue(Graph({}, 20), "x"), "mish")


def test_onnx_rules_refuse_a_view_of_some_tokens() -> None:
    sentences, tokens, hidden = named_axes(["B", "S", "H"], [SENTENCES, LENGTH, 8])
    array = np.zeros((SENTENCES * LENGTH, 8), np.float32)
    value: Any = Traced(array, ((*sentences, *tokens), hidden), Origins(["x"]))
    exporter = Exporter(Graph({}, 20), ())
    assert exporter.tensor(value[:, 1:]).name != "x"
    with pytest.raises(RuntimeError, match="some tokens: no graph can have that"):
        exporter.tensor(value[1:])
