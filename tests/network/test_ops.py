"""An op has all that belongs to it: its cost, its formula, its ONNX rule; one that lacks any is named."""

import inspect

import numpy as np
import pytest
from helpers.ops import OF_KINDS, OPS

from bertcli.analysis.trace import formulas
from bertcli.tracing.dispatch import op, watching
from bertcli.tracing.traced import Origins, Traced, named_axes
from bertcli.tracing.tracer import argument_names
from bertcli.wings.onnx import rules
from bertcli.wings.onnx.exporter import Exporter
from bertcli.wings.onnx.graph import Graph


@pytest.mark.parametrize("name", OPS)
def test_ops_have_a_formula_and_an_onnx_rule_with_their_arguments(name: str) -> None:
    one = OPS[name]
    assert one.name == name in formulas.rules()
    assert one.over is None or one.over in argument_names(one)
    assert len(one.signature.inputs) <= len(argument_names(one))
    if name in OF_KINDS:  # no graph has the heads of these kinds
        assert not hasattr(rules, name)
        return
    given = [*inspect.signature(getattr(rules, name)).parameters]
    assert given == [argument for argument in argument_names(one) if argument != "into"]


def test_ops_are_all_that_has_a_formula() -> None:
    assert formulas.rules().keys() == OPS.keys()


def test_ops_without_a_formula_or_an_onnx_rule_are_named() -> None:
    with pytest.raises(RuntimeError, match="The op double has no formula"):
        formulas.formula("double", ["x", "y"], "z", {})

    @op("token hidden -> token hidden")
    def double(x: np.ndarray) -> np.ndarray:
        return 2 * x

    exporter, x = Exporter(Graph({}, 20), ()), np.ones((2, 3), np.float32)
    exporter.note(x, Traced(x, named_axes(["B", "H"], x.shape), Origins(["x"])))
    with watching(exporter), pytest.raises(RuntimeError, match="The op double has no ONNX rule"):
        double(x)
