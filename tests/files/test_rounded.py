"""Vectors as halves and with fewer numbers: how far off they are, and what a user may count on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checkpoints import Sentence
from conftest import Made
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

import bertcli
from bertcli.errors import BertcliError
from bertcli.files.vectors import rounded
from bertcli.tasks.encode import plan, unit
from bertcli.tasks.options import Encode

Vectors = NDArray[np.float32]
TEXTS = ["The cat sat on the mat.", "", "A cup of tea", "Paris"]
shapes = arrays.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=20)
numbers = st.floats(-1e4, 1e4, width=32)
vectors: st.SearchStrategy[Any] = arrays.arrays(np.float32, shapes, elements=numbers)
quick = settings(max_examples=100, deadline=None)


@given(x=vectors)
@quick
def test_rounded_to_float16_is_the_nearest(x: Vectors) -> None:
    error = np.abs(rounded(x, "float16").astype(np.float32) - x)
    assert np.all(error <= np.maximum(np.abs(x) * 2.0**-11, 2.0**-25))


def test_rounded_refuses_what_float16_cannot_hold() -> None:
    with pytest.raises(BertcliError, match="float16 cannot hold"):
        rounded(np.full((1, 2), 1e5, np.float32), "float16")


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


def test_truncate_dim_comes_before_normalizing(made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(pooling=("mean",), normalize=True)))
    assert plan(model, Encode(truncate_dim=8)).plan.width == 8
    kept = np.concatenate([np.asarray(block.vectors) for block in model.encode_blocks(TEXTS, truncate_dim=8)])
    assert np.allclose(kept, unit(model.encode(TEXTS, normalize=False)[:, :8]), atol=1e-6)
    assert np.allclose(np.linalg.norm(kept, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("count", "message"),
    [(0, "truncate_dim is 0; it must"), (-1, "truncate_dim is -1"), (33, "Vectors of 32 numbers cannot be cut to 33")],
)
def test_truncate_dim_cannot_keep_more_than_there_is(count: int, message: str, made: Made) -> None:
    with pytest.raises(BertcliError, match=message):
        bertcli.load(made()).encode_blocks(TEXTS, truncate_dim=count)
