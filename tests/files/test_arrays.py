"""Arrays come back from every kind of file as they were given, however many rows came at a time."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import load_file

from bertcli.files.arrays import FileArray
from bertcli.files.formats import ARRAYS, SEVERAL
from bertcli.files.write.save import save_arrays, save_stored

Arrays = Mapping[str, NDArray[Any]]
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SPECS = {"embeddings": ("<f4", (3,)), "scales": ("<f2", ()), "offsets": ("<i8", ()), "bits": ("|u1", (2, 2))}


def load(file: Path) -> dict[str, NDArray[Any]]:
    if file.suffix == ".npy":
        return {"embeddings": np.load(file)}
    if file.suffix == ".safetensors":
        return dict(load_file(file))
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
    with np.load(file) as arrays:
        return dict(arrays)


def same(found: Arrays, expected: Arrays) -> bool:
    return found.keys() == expected.keys() and all(
        (found[name].dtype, found[name].shape) == (array.dtype, array.shape) and np.array_equal(found[name], array)
        for name, array in expected.items()
    )


@given(sizes=st.lists(st.integers(0, 5), max_size=5), ending=st.sampled_from(ARRAYS))
@few
def test_arrays_that_come_in_pieces_come_back(sizes: list[int], ending: str, tmp_path: Path) -> None:
    random, file = np.random.default_rng(0), tmp_path / f"v{ending}"
    stored, whole = [], {}
    for name, (dtype, row) in [*SPECS.items()][: 1 if ending == ".npy" else None]:
        pieces = [random.integers(0, 9, (n, *row)).astype(dtype) for n in [0, *sizes]]
        stored.append(FileArray(name, dtype, (sum(sizes), *row), pieces))
        whole[name] = np.concatenate(pieces)
    save_stored(str(file), *stored)
    assert same(load(file), whole)
    assert list(tmp_path.iterdir()) == [file]
    first = file.read_bytes()
    save_stored(str(file), *(array._replace(rows=[whole[array.name]]) for array in stored))
    assert file.read_bytes() == first
    file.unlink()


@pytest.mark.parametrize("ending", SEVERAL)
def test_arrays_of_any_shape_and_name_come_back(ending: str, tmp_path: Path) -> None:
    arrays = {
        "encoder/layer.0/query": np.arange(6, dtype=np.float32).reshape(2, 3).T,
        "loss": np.full((), 0.5, np.float32),
        "none": np.empty((0, 4), np.float32),
        "é": np.ones((1, 2, 3, 4), np.float32),
    }
    file = tmp_path / f"v{ending}"
    save_arrays(str(file), arrays)
    assert same(load(file), arrays)


def test_arrays_of_safetensors_are_aligned(tmp_path: Path) -> None:
    file = tmp_path / "v.safetensors"
    for count in range(1, 9):
        save_arrays(str(file), {"x" * i: np.ones(i, np.float32) for i in range(1, count + 1)})
        assert int.from_bytes(file.read_bytes()[:8], "little") % 8 == 0
