"""The loops: equal to the formulas in float64, on every layout of memory, in place."""

from math import erf, exp, sqrt, tanh

import numpy as np
import pytest
from helpers.near import assert_near
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bertcli.engine import kernels

FORMULAS = {
    "gelu": lambda x: x / 2 * (1 + erf(x / sqrt(2))),
    "gelu_new": lambda x: x / 2 * (1 + tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: max(0.0, x),
    "silu": lambda x: x / (1 + exp(-x)),
    "sigmoid": lambda x: 1 / (1 + exp(-x)),
    "tanh": tanh,
}
SAME = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new", "swish": "silu"}
Array = NDArray[np.float32]


def layouts(x: Array) -> list[Array]:
    """The same numbers side by side in memory along either axis, and with gaps."""
    gaps = np.zeros((x.shape[0] + 3, x.shape[1] + 5), dtype=np.float32)[1:-2, 2:-3]
    gaps[...] = x
    return [x.copy(), np.asfortranarray(x), gaps]


@pytest.mark.parametrize("name", kernels.ACTIVATIONS)
def test_activations_are_their_formulas_on_a_dense_grid(name: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 200_001), np.linspace(-1e-3, 1e-3, 2001)]).astype(np.float32)
    expected = np.array([FORMULAS[SAME.get(name, name)](float(one)) for one in x])
    found = kernels.activate(x.copy(), name)
    # Half a unit in the last place of results near 12 is 5e-7: that much is float32's own.
    np.testing.assert_allclose(found, expected, rtol=1.2e-7, atol=5e-7)


@pytest.mark.parametrize("name", kernels.ACTIVATIONS)
def test_activations_of_extremes(name: str) -> None:
    x = np.array([-3e4, -1e4, -0.0, 0.0, 1e4, 3e4, np.nan], dtype=np.float32)
    found = kernels.activate(x.copy(), name)
    expected = {"tanh": np.tanh(x[:6]), "sigmoid": np.array([0, 0, 0.5, 0.5, 1, 1])}
    assert np.isnan(found[-1])
    np.testing.assert_array_equal(found[:6], expected.get(name, np.maximum(x[:6], 0)))


@pytest.mark.parametrize("name", kernels.ACTIVATIONS)
@pytest.mark.parametrize("tokens", [1, 3, 64, 300])
def test_blocks_and_layouts_change_no_bit(name: str, tokens: int) -> None:
    x = np.random.default_rng(tokens).standard_normal((tokens, 2048), dtype=np.float32) * 3
    bias = np.random.default_rng(1).standard_normal(2048, dtype=np.float32)
    expected = np.stack([kernels.activate(row + bias, name) for row in x])
    for one in layouts(x):
        found = kernels.activate(one, name, bias)
        assert found is one
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("shape", [(0, 8), (8, 0)])
def test_nothing_is_no_trouble(shape: tuple[int, int]) -> None:
    assert kernels.activate(np.empty(shape, dtype=np.float32), "gelu").shape == shape
    if shape[1]:
        assert kernels.layer_norm(np.empty(shape, dtype=np.float32), None, None, 1e-12).shape == shape


@given(st.integers(0, 2**32 - 1), st.integers(1, 70), st.integers(1, 90), st.sampled_from([1.0, 30.0, 1e4]))
def test_softmax_is_its_formula(seed: int, queries: int, keys: int, scale: float) -> None:
    x = np.random.default_rng(seed).standard_normal((queries, keys), dtype=np.float32) * np.float32(scale)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    for one in layouts(x):
        found = kernels.softmax(one)
        assert found is one
        assert_near(found, powers / powers.sum(axis=1, keepdims=True), 3e-7)
        assert_near(found.sum(axis=1), 1, 1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 2, 7, 64, 96, 128, 768]), st.booleans())
def test_normalization_is_its_formula(seed: int, tokens: int, features: int, scaled: bool) -> None:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((tokens, features), dtype=np.float32) * 3 + 5
    weight, bias = (generator.standard_normal(features, dtype=np.float32) if scaled else None for _ in range(2))
    wide = x.astype(np.float64)
    centered = wide - wide.mean(axis=1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5)
    expected = expected * (1 if weight is None else weight) + (0 if bias is None else bias)
    for one in layouts(x):
        found = kernels.layer_norm(one, weight, bias, 1e-5)
        assert found is one
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5 if features > 2 else 2e-3)


@pytest.mark.parametrize("features", [768, 100])
def test_a_tokens_norm_does_not_depend_on_its_neighbors(features: int) -> None:
    x = np.random.default_rng(0).standard_normal((300, features), dtype=np.float32)
    weight = np.ones(features, dtype=np.float32)
    together = kernels.layer_norm(np.asfortranarray(x), weight, weight, 1e-12)
    for first, last in ((0, 2), (5, 40), (40, 300)):
        part = kernels.layer_norm(np.asfortranarray(x[first:last]), weight, weight, 1e-12)
        assert np.array_equal(part, together[first:last])
