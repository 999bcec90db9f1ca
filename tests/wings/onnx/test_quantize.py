"""Vectors in fewer bytes and fewer numbers: how far off they are, and what a user may count on."""

from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

import bertcli
from bertcli.errors import BertcliError
from bertcli.files.write.vector_writer import WRITTEN_AS, Quantized, quantize, stored_width
from bertcli.kinds.vectors import unit
from bertcli.tasks.compute.encode import plan_dense
from bertcli.tasks.encode import EncodeOptions

Vectors = NDArray[np.float32]
TEXTS = ["The cat sat on the mat.", "", "A cup of tea", "Paris"]
shapes = arrays.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=20)
numbers = st.floats(-1e4, 1e4, width=32)
vectors: st.SearchStrategy[Any] = arrays.arrays(np.float32, shapes, elements=numbers)
quick = settings(max_examples=100, deadline=None)


def restored(quantized: Quantized) -> NDArray[np.float32]:
    """Float vectors from quantized ones: scale · q; each bit as ±1, including those that fill the last byte."""
    values, scales = quantized
    if values.dtype == np.uint8:
        return np.unpackbits(values, axis=1).astype(np.float32) * 2 - 1
    vectors = values.astype(np.float32)
    return vectors if scales is None else vectors * scales[:, None]


@given(x=vectors)
@example(x=np.array([[4.578e-42]], np.float32))
@quick
def test_quantize_to_int8_is_off_by_at_most_half_a_step(x: Vectors) -> None:
    values, scales = quantize(x, "int8")
    assert scales is not None
    assert (values.dtype.name, scales.dtype.name) == ("int8", "float32")
    assert (values.shape, scales.shape) == (x.shape, x.shape[:1])
    assert values.min(initial=0) >= -127
    steps = scales.astype(np.float64)[:, None]
    rounding = 127 * 2.0**-150  # of a scale so small that float32 has few digits for it
    assert np.all(np.abs(x - steps * values) <= steps * (0.5 + 1e-4) + rounding)
    assert np.array_equal(quantize(-x, "int8").values, -values)


@given(x=vectors)
@quick
def test_quantize_to_float16_gives_the_nearest(x: Vectors) -> None:
    error = np.abs(restored(quantize(x, "float16")) - x)
    assert np.all(error <= np.maximum(np.abs(x) * 2.0**-11, 2.0**-25))


@given(x=vectors)
@quick
def test_quantize_to_binary_keeps_the_signs_in_order(x: Vectors) -> None:
    packed = quantize(x, "binary").values
    assert packed.shape == (len(x), stored_width(x.shape[1], "binary"))
    for row, bits in zip(x, packed, strict=True):
        assert [bits[i // 8] >> (7 - i % 8) & 1 for i in range(len(row))] == [number > 0 for number in row]
        assert not np.unpackbits(bits)[len(row) :].any()


@given(x=vectors, dtype=st.sampled_from(sorted(WRITTEN_AS)), cut=st.integers(0, 20))
@quick
def test_quantize_takes_each_vector_by_itself(x: Vectors, dtype: str, cut: int) -> None:
    whole = quantize(x, dtype)
    parts = [quantize(part, dtype) for part in (x[:cut], x[cut:])]
    assert np.array_equal(whole.values, np.concatenate([part.values for part in parts]))
    if whole.scales is not None:
        assert np.array_equal(whole.scales, np.concatenate([part.scales for part in parts if part.scales is not None]))


def test_quantize_keeps_zeros() -> None:
    zeros = np.zeros((2, 3), np.float32)
    for dtype in ("float32", "float16", "int8"):
        assert not restored(quantize(zeros, dtype)).any()


def test_quantize_refuses_what_float16_cannot_hold() -> None:
    with pytest.raises(BertcliError, match="float16 cannot hold"):
        quantize(np.full((1, 2), 1e5, np.float32), "float16")
    with pytest.raises(BertcliError, match="no dtype 'int4'"):
        quantize(np.ones((1, 2), np.float32), "int4")


# -------------------------------------------------------------------------------------------------- fewer numbers


def test_truncate_dim_keeps_the_first_numbers(made: Made) -> None:
    model = bertcli.load(made())
    whole = model.encode(TEXTS)
    kept = np.concatenate([np.asarray(block.vectors) for block in model.encode_blocks(TEXTS, truncate_dim=5)])
    assert np.array_equal(kept, whole[:, :5])
    tokens = [
        vector for block in model.encode_blocks(TEXTS, truncate_dim=5, pooling="none") for vector in block.vectors
    ]
    assert {vector.shape[1] for vector in tokens} == {5}
    with pytest.raises(BertcliError, match="truncate_dim is 0; it must be at least 1"):
        model.encode(TEXTS, truncate_dim=0)


def test_truncate_dim_comes_before_normalizing(made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(pooling=("mean",), normalize=True)))
    assert plan_dense(model, EncodeOptions(truncate_dim=8)).steps.width == 8
    kept = np.concatenate([np.asarray(block.vectors) for block in model.encode_blocks(TEXTS, truncate_dim=8)])
    assert np.allclose(kept, unit(model.encode(TEXTS, normalize=False)[:, :8]), atol=1e-6)
    assert np.allclose(np.linalg.norm(kept, axis=1), 1, atol=1e-6)
