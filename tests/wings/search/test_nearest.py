"""Stored vectors are found again: the nearest rows of every kind of file, and one line for a file that is none."""

import io
import tracemalloc
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.numpy import save_file

from bertcli.errors import BertcliError
from bertcli.files.read.vector_reader import StoredVectors, in_memory
from bertcli.files.search import Nearest, open_vectors
from bertcli.files.write.vector_writer import quantize
from bertcli.wings.search.nearest import nearest

Array = NDArray[Any]
VECTORS = np.random.default_rng(3).normal(size=(200, 20)).astype(np.float32)
QUERIES = VECTORS[[7, 50]] + np.random.default_rng(4).normal(size=(2, 20)) / 20
DTYPES = ("float32", "float16", "int8", "binary")


def save(folder: Path, ending: str, array: Array, name: str = "embeddings") -> str:
    file = folder / f"vectors{ending}"
    if ending == ".npy":
        np.save(file, array)
    elif ending == ".npz":
        arrays: dict[str, Any] = {name: array, "scales": np.ones(len(array), np.float32)}
        np.savez(file, **arrays)
    elif ending == ".safetensors":
        save_file({name: np.ascontiguousarray(array), "scales": np.ones(len(array), np.float32)}, file)
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        flat = arrow.array(array.reshape(-1))
        lists = arrow.FixedSizeListArray.from_arrays(flat, array.shape[1])
        parquet.write_table(arrow.table({"text": ["x"] * len(array), "embedding": lists}), file, row_group_size=30)
    return str(file)


def stored(vectors: Array) -> StoredVectors:
    """Vectors as if from a file."""
    return StoredVectors(Path("v"), {"embeddings": partial(in_memory, vectors)}, "embeddings")


def by_hand(queries: Array, rows: Array, count: int) -> Nearest:
    """Every cosine, sorted: the oracle."""
    unit = [x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True) for x in (queries, rows)]
    scores = unit[0] @ unit[1].T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Nearest(order, np.take_along_axis(scores, order, 1), len(rows))


@pytest.mark.parametrize("ending", [".npy", ".npz", ".safetensors", ".parquet"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_search_finds_the_nearest_rows_of_every_file(
    ending: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = quantize(VECTORS, dtype).values
    signs = [np.where(x > 0, 1.0, -1.0) for x in (QUERIES, VECTORS)]
    expected = by_hand(signs[0], signs[1], 200) if dtype == "binary" else by_hand(QUERIES, values, 200)
    for together in (1 << 22, 20 * 64, 1):
        monkeypatch.setattr("bertcli.wings.search.nearest.NUMBERS", together)
        stored = open_vectors(save(tmp_path, ending, values))
        assert np.array_equal(np.concatenate([*stored.blocks(7)]), values)
        found = nearest(QUERIES, stored, 200)
        assert np.allclose(found.scores, expected.scores, atol=1e-12)
        assert np.array_equal(found.rows[:, 0], [7, 50])
        best = nearest(QUERIES, stored, 3)
        assert np.array_equal(best.rows, found.rows[:, :3])


@given(ties=st.lists(st.integers(0, 3), min_size=1, max_size=30), count=st.integers(1, 40), together=st.integers(1, 9))
@settings(deadline=None, max_examples=100)
def test_search_gives_equal_rows_in_the_order_of_the_file(ties: list[int], count: int, together: int) -> None:
    rows = np.eye(4, dtype=np.float32)[ties]
    query = np.array([[4.0, 3.0, 2.0, 1.0]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bertcli.wings.search.nearest.NUMBERS", 4 * together)
        found = nearest(query, stored(rows), count)
    assert found.rows[0].tolist() == sorted(range(len(ties)), key=lambda i: (ties[i], i))[:count]


@pytest.mark.parametrize("together", [1, 2, 3])
def test_search_gives_rows_that_are_equal_up_to_rounding_in_the_order_of_the_file(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What counts as equal depends on the best score, which may come in a later block."""
    monkeypatch.setattr("bertcli.wings.search.nearest.NUMBERS", 2 * together)
    cosines = np.array([0.1, 0.1 + 5e-7, 0.1 - 2e-5, 1.0, 0.1 + 8e-7])
    rows = np.stack([cosines, np.sqrt(1 - cosines**2)], 1).astype(np.float32) * np.array([[1], [3], [1], [7], [1 / 3]])
    found = nearest(np.array([[1.0, 0.0]]), stored(rows.astype(np.float32)), 4)
    assert found.rows.tolist() == [[3, 0, 1, 4]]


def test_search_gives_no_cosine_beyond_one() -> None:
    both = np.concatenate([VECTORS, -VECTORS])
    found = nearest(VECTORS, stored(both), len(both))
    assert (found.scores.max(), found.scores.min()) == (1, -1)


def test_search_finds_zero_vectors_near_to_nothing() -> None:
    rows = np.array([[0, 0], [-1, 0], [1, 0]], np.float32)
    assert nearest(np.array([[1.0, 0.0]]), stored(rows), 3).rows.tolist() == [[2, 0, 1]]
    assert nearest(np.zeros((1, 2)), stored(rows), 3).scores.tolist() == [[0, 0, 0]]


def test_search_reads_arrays_by_columns_and_compressed_ones(tmp_path: Path) -> None:
    expected = nearest(QUERIES, stored(VECTORS), 3)
    np.save(tmp_path / "v.npy", np.asfortranarray(VECTORS))
    np.savez(tmp_path / "v.npz", embeddings=np.asfortranarray(VECTORS))
    np.savez_compressed(tmp_path / "packed.npz", embeddings=VECTORS)
    for name in ("v.npy", "v.npz", "packed.npz"):
        assert np.array_equal(nearest(QUERIES, open_vectors(str(tmp_path / name)), 3).rows, expected.rows)


def test_search_in_no_rows(tmp_path: Path) -> None:
    for ending in (".npy", ".npz", ".safetensors"):
        stored = open_vectors(save(tmp_path, ending, VECTORS[:0]))
        assert nearest(QUERIES, stored, 3).rows.shape == (2, 0)


@pytest.mark.large
def test_search_reads_no_mapped_file_into_memory(tmp_path: Path) -> None:
    with (tmp_path / "big.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (2_000_000, 128)})
        file.truncate(file.tell() + 4 * 2_000_000 * 128)  # a hole of a gigabyte
    tracemalloc.start()
    try:
        stored = open_vectors(str(tmp_path / "big.npy"))
        assert next(stored.blocks(10)).shape == (10, 128)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------------------------------------------ what is refused


def refusal(file: str) -> str:
    with pytest.raises(BertcliError) as caught:
        nearest(QUERIES, open_vectors(file), 3)
    return str(caught.value).replace(str(Path(file).parent) + "/", "")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_search_names_a_row_that_is_no_vector(bad: float, tmp_path: Path) -> None:
    vectors = VECTORS.copy()
    vectors[77, 3] = bad
    assert refusal(save(tmp_path, ".npy", vectors)).startswith("vectors.npy, row 77: NaN or infinite numbers")


def test_search_names_another_width(tmp_path: Path) -> None:
    message = refusal(save(tmp_path, ".npy", VECTORS[:, :8]))
    assert message.startswith("vectors.npy has vectors of 8 numbers, but this model gives 20: use the model")
    assert "has vectors of 8 bits" in refusal(save(tmp_path, ".npy", quantize(VECTORS[:, :8], "binary").values))


@pytest.mark.parametrize(
    ("array", "what"),
    [
        (np.ones(3, np.float32), "holds rows of the shape (), not rows"),
        (np.ones((3, 2), np.int64), "numbers of the type '<i8'"),
        (np.array([["a"]]), "of the type '<U1'"),
        (np.array([[{}]]), "Python objects"),
    ],
)
def test_search_refuses_an_array_that_is_no_rows_of_numbers(array: Array, what: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", array, allow_pickle=True)
    assert what in refusal(str(tmp_path / "v.npy"))


def header(shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "EOF: reading magic string"),
        (b"plain text, not an array", "the magic string is not correct"),
        (
            b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 20), __import__('os')}",
            "cannot be read",
        ),
        (header((10**12, 250)), "cannot be read"),
        (header((2, 20)) + bytes(159), "cannot be read"),
        (header((-1, 20)) + bytes(20), "cannot be read"),
    ],
)
def test_search_refuses_a_damaged_array(content: bytes, what: str, tmp_path: Path) -> None:
    (tmp_path / "v.npy").write_bytes(content)
    assert what in refusal(str(tmp_path / "v.npy"))
    with zipfile.ZipFile(tmp_path / "v.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("embeddings.npy", content)
    assert what in refusal(str(tmp_path / "v.npz"))


def test_search_refuses_a_zip_that_claims_more_than_it_holds(tmp_path: Path) -> None:
    file = Path(save(tmp_path, ".npz", VECTORS))
    whole = file.read_bytes()
    for damaged in (whole[: len(whole) // 2], whole[:2000] + bytes(9) + whole[2009:], b"PK"):
        file.write_bytes(damaged)
        assert "it is not a usable file of vectors" in refusal(str(file))
    np.savez(file, a=VECTORS, b=VECTORS)
    assert "has no embeddings but ['a', 'b']" in refusal(str(file))


def test_search_refuses_other_files(tmp_path: Path) -> None:
    assert "ends in .npy, .npz, .safetensors, .parquet" in refusal("vectors.txt")
    assert "gone.npy is missing: give an existing file of vectors" in refusal(str(tmp_path / "gone.npy"))
    save_file({"a": VECTORS, "b": VECTORS}, tmp_path / "v.safetensors")
    assert "has no embeddings but ['a', 'b']" in refusal(str(tmp_path / "v.safetensors"))
    save_file({"embeddings": np.ones((2, 2), np.int64)}, tmp_path / "v.safetensors")
    assert "holds numbers of the type '<i8'" in refusal(str(tmp_path / "v.safetensors"))
    save_file({"embeddings": np.ones((2, 2), np.uint16)}, tmp_path / "v.safetensors")
    assert "cannot be read (numbers of the type U16 are not read)" in refusal(str(tmp_path / "v.safetensors"))
    save_file({"embeddings": np.array(1.0, np.float32)}, tmp_path / "v.safetensors")
    assert "holds an array (), not rows of numbers" in refusal(str(tmp_path / "v.safetensors"))


def test_search_refuses_parquet_without_vectors(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "v.parquet"
    parquet.write_table(arrow.table({"text": ["a"], "id": [1]}), file)
    assert "has no embedding but ['text', 'id']" in refusal(str(file))
    parquet.write_table(arrow.table({"text": ["a"]}), file)
    assert "has no embedding but ['text']" in refusal(str(file))
    parquet.write_table(arrow.table({"embedding": ["a"]}), file)
    assert "holds a column 'embedding' of string, not lists of float16" in refusal(str(file))
    file.write_bytes(b"PAR1")
    assert "cannot be read as Parquet" in refusal(str(file))
    vectors = arrow.array([None, *VECTORS.tolist()], arrow.list_(arrow.float32()))
    parquet.write_table(arrow.table({"embedding": vectors}), file)
    assert nearest(QUERIES, open_vectors(str(file)), 1).rows.tolist() == [[8], [51]]
    lists = arrow.array([[1.0] * 20, [2.0] * 19], arrow.list_(arrow.float32()))
    parquet.write_table(arrow.table({"embedding": lists}), file)
    assert "has vectors of different lengths; the first has 20 numbers" in refusal(str(file))
    lists = arrow.array([[None] * 20], arrow.list_(arrow.float32(), 20))
    parquet.write_table(arrow.table({"embedding": lists}), file)
    assert "has vectors with nulls in them" in refusal(str(file))


@pytest.mark.parametrize("place", [40, 60, 200])
def test_search_refuses_a_damaged_array_in_a_zip(place: int, tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "v.npz", embeddings=np.arange(600, dtype=np.float32).reshape(100, 6))
    data = bytearray((tmp_path / "v.npz").read_bytes())
    data[place : place + 8] = bytes(8)
    (tmp_path / "v.npz").write_bytes(data)
    with pytest.raises(BertcliError, match="it is not a usable file of vectors"):
        list(open_vectors(str(tmp_path / "v.npz")).blocks(10))


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_search_refuses_an_array_in_a_zip_with_more_bytes(kind: int, tmp_path: Path) -> None:
    file = tmp_path / "v.npz"
    for more, what in ((512, "embeddings.npy has other bytes than its header says"), (0, "Bad CRC-32 for file")):
        with zipfile.ZipFile(file, "w", kind) as archive:
            archive.writestr("embeddings.npy", header((2, 256)) + bytes(2 * 256 * 4 + more))
        if not more:
            whole, crc = file.read_bytes(), archive.infolist()[0].CRC.to_bytes(4, "little")
            assert [block.shape for block in open_vectors(str(file)).blocks(9)] == [(2, 256)]
            file.write_bytes(whole.replace(crc, bytes(4)))
        assert what in refusal(str(file))


def test_search_refuses_rows_that_no_file_holds(tmp_path: Path) -> None:
    header = repr({"descr": "<f4", "fortran_order": False, "shape": (0, 2**70)}).encode().ljust(118) + b"\n"
    (tmp_path / "v.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(BertcliError, match="it is not a usable file of vectors"):
        open_vectors(str(tmp_path / "v.npy"))


@pytest.mark.parametrize("count", [9, 0])
@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_search_refuses_chunks_of_other_lengths(ending: str, count: int, tmp_path: Path) -> None:
    numbers: dict[str, Any] = {name: np.arange(count) for name in ("index", "chunk", "start", "end")}
    file = f"{tmp_path}/v{ending}"
    if ending == ".npz":
        np.savez(file, embeddings=VECTORS, **numbers)
    else:
        save_file({"embeddings": VECTORS, **numbers}, file)
    with pytest.raises(BertcliError, match="a whole number for each vector"):
        open_vectors(file).origins([0], 200)
