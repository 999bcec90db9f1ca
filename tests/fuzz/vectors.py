"""Files of vectors to search in, damaged: parts of the fuzzer."""

import io
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.damage import Files, damaged, edited, odd_values
from hypothesis import strategies as st
from safetensors.numpy import save

from bertcli.errors import BertcliError
from bertcli.files.search import open_vectors
from bertcli.wings.search.nearest import nearest

WIDTH = 6
VECTORS = np.arange(-30, 30, dtype=np.float32).reshape(10, WIDTH)
ARRAYS = (VECTORS, VECTORS.astype(np.float16), VECTORS.astype(np.int8), np.packbits(VECTORS > 0, axis=1))


def read_vectors(folder: Path) -> None:
    """A file that opens has rows whose cosines are cosines, or is refused."""
    (file,) = folder.iterdir()
    stored = open_vectors(str(file))
    first = next(stored.blocks(1), np.empty((0, 1)))
    width = first.shape[1] * (8 if first.dtype == np.uint8 else 1)
    if not 0 < width < 10_000:
        raise BertcliError("too large for a case")
    found = nearest(np.ones((1, width)), stored, 3)
    assert found.rows.shape == found.scores.shape == (1, min(3, found.of))
    assert np.all(np.abs(found.scores) <= 1)
    assert np.all((found.rows >= 0) & (found.rows < found.of))


def _saved(write: Callable[[io.BytesIO, Any], object]) -> list[bytes]:
    found = []
    for array in ARRAYS:
        stream = io.BytesIO()
        write(stream, array)
        found.append(stream.getvalue())
    return found


def _named(name: str, files: list[bytes]) -> st.SearchStrategy[Files]:
    return st.sampled_from(files).flatmap(lambda data: damaged(data, 1)).map(lambda data: {name: data})


@st.composite
def numpy_headers(draw: st.DrawFn) -> Files:
    """A .npy file whose header says something else than its data."""
    fields = {"descr": "<f4", "fortran_order": False, "shape": [10, WIDTH]}
    odd = draw(edited(fields))
    if isinstance(odd.get("shape"), list) and draw(st.integers(0, 3)):
        odd["shape"] = tuple(odd["shape"])
    text = (repr(odd) if draw(st.integers(0, 9)) else repr(draw(odd_values))).encode("latin1", "replace")
    version, digits = draw(st.sampled_from([(b"\x01\x00", 2), (b"\x02\x00", 4), (b"\x03\x00", 4)]))
    length = (len(text) % 2 ** (8 * digits)).to_bytes(digits, "little")
    return {"v.npy": draw(damaged(b"\x93NUMPY" + version + length + text + VECTORS.tobytes(), often=6))}


def safetensors_files() -> st.SearchStrategy[Files]:
    files = [save({"embeddings": array, "scales": np.ones(10, np.float32)}) for array in ARRAYS]
    return _named("v.safetensors", files)


def parquet_files() -> st.SearchStrategy[Files]:
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    files = []
    for array in ARRAYS:
        fixed = arrow.FixedSizeListArray.from_arrays(arrow.array(array.reshape(-1)), array.shape[1])
        for lists in (fixed, fixed.cast(arrow.large_list(fixed.type.value_type))):
            stream = io.BytesIO()
            parquet.write_table(arrow.table({"embedding": lists}), stream, compression="none")
            files.append(stream.getvalue())
    return _named("v.parquet", files)


def vector_cases() -> dict[str, st.SearchStrategy[Files]]:
    """Cases by the name of their part; no Parquet where pyarrow is not installed."""
    zips = _saved(lambda stream, array: np.savez(stream, embeddings=array)) + _saved(
        lambda stream, array: np.savez_compressed(stream, embeddings=array)
    )
    arrays = _named("v.npy", _saved(lambda stream, array: np.save(stream, array)))
    found = {"npy": numpy_headers() | arrays, "npz": _named("v.npz", zips), "vectors.st": safetensors_files()}
    try:
        return found | {"vectors.parquet": parquet_files()}
    except ImportError:
        return found
