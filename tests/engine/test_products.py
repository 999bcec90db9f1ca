"""Products of stored weights: equal to NumPy's in float64 for every size, however they are cut and shared."""

from collections.abc import Iterator

import numpy as np
import pytest
from helpers.near import assert_near
from hypothesis import given
from hypothesis import strategies as st

from bertcli.engine import kernels, threads
from bertcli.engine.kernels import empty_tokens, product, scatter_rows
from bertcli.tracing.dispatch import Array

SIZES = st.sampled_from([1, 2, 11, 12, 24, 36, 50, 96, 100, 384, 768, 1200])


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads.set_thread_count(2)
    yield
    threads.set_thread_count(None)


def arrays(seed: int, tokens: int, outputs: int, inputs: int) -> tuple[Array, Array, Array]:
    """x [token, in] as products return it, weight [out, in], bias [out]."""
    generator = np.random.default_rng(seed)
    x = empty_tokens(tokens, inputs)
    x[...] = generator.standard_normal(x.shape, dtype=np.float32)
    return x, generator.standard_normal((outputs, inputs), dtype=np.float32), np.arange(outputs, dtype=np.float32)


def close(found: Array, x: Array, weight: Array, bias: Array) -> None:
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    assert_near(found, expected, 2e-6 * np.abs(expected).max())


@given(seed=st.integers(0, 2**32 - 1), tokens=st.integers(0, 300), outputs=SIZES, inputs=SIZES)
def test_products_of_every_size(seed: int, tokens: int, outputs: int, inputs: int) -> None:
    x, weight, bias = arrays(seed, tokens, outputs, inputs)
    found = product(x, weight, bias, None)
    assert found.shape == (tokens, outputs)
    assert found.flags.f_contiguous
    if tokens:
        close(found, x, weight, bias)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("tokens", [1, 2, 16, 130])
def test_products_of_every_layout(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "PIECE", 1)  # every product is shared
    x, weight, bias = arrays(0, tokens, 100, 768)
    for rows in (x, np.ascontiguousarray(x), np.repeat(x, 2, axis=0)[::2]):
        for stored in (weight, np.asfortranarray(weight), np.repeat(weight, 2, axis=1)[:, ::2]):
            close(product(rows, stored, bias, None), x, weight, bias)


@pytest.mark.usefixtures("two_threads")
def test_products_have_their_activation_in_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "PIECE", 1)
    x, weight, bias = arrays(0, 40, 100, 64)
    np.testing.assert_array_equal(product(x, weight, bias, "relu"), np.maximum(product(x, weight, bias, None), 0))


def test_products_of_few_tokens_round_no_more_than_those_of_many() -> None:
    """The promise on batches rests on this: a text alone is a product of few tokens."""
    x, weight, bias = arrays(0, 400, 96, 3072)
    exact = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    most = 1.5 * np.abs(product(x, weight, bias, None) - exact).max()
    for tokens in (4, 16):
        few = [product(x[first : first + tokens], weight, bias, None) for first in range(0, 400, tokens)]
        assert np.abs(np.concatenate(few) - exact).max() <= most


@given(seed=st.integers(0, 2**32 - 1), tokens=st.integers(1, 200))
def test_products_put_rows_in_their_places(seed: int, tokens: int) -> None:
    generator = np.random.default_rng(seed)
    x, into = generator.standard_normal((tokens, 5), dtype=np.float32), np.zeros((300, 5), dtype=np.float32)
    rows = generator.permutation(300)[:tokens]
    scatter_rows(x, into, rows)
    np.testing.assert_array_equal(into[rows], x)
    assert np.count_nonzero(into.any(axis=1)) == tokens
