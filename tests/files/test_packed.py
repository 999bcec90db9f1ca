"""Small files that unpack to much, or claim more than lies there, are refused before they fill the memory."""

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers.terminal import bertcli

LARGE = 1 << 26  # bytes
CELL = (1 << 25) + 2  # bytes: more than the longest text that is read


def write_npz(file: Path, shape: tuple[int, ...], bytes_of_zeros: int, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write an archive whose one member claims an array of this shape, and has so many bytes."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("embeddings.npy", header.getvalue() + bytes(bytes_of_zeros))
    return file


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize(
    ("shape", "written"), [((10**12, 256), 1024), ((10**7, 256), 0), ((2, 256), 4096), ((0, 256), 1024)]
)
def test_an_array_has_the_bytes_that_its_header_claims(
    shape: tuple[int, ...], written: int, method: int, tmp_path: Path
) -> None:
    file = write_npz(tmp_path / "v.npz", shape, written, method)
    error = bertcli("search", "tea", "-i", file).error
    assert "(embeddings.npy has other bytes than its header says): it is not a usable file of vectors." in error


def test_an_array_that_is_packed_too_well_is_not_unpacked(tmp_path: Path) -> None:
    file = write_npz(tmp_path / "v.npz", (LARGE // 1024, 256), LARGE)
    assert file.stat().st_size < 70_000
    error = bertcli("search", "tea", "-i", file).error
    assert f"embeddings.npy has {LARGE + 128:,} bytes in" in error
    assert "what is packed more than 50 times is not read; use np.savez" in error


def test_compressed_arrays_are_read(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 256)).astype(np.float32)
    np.savez_compressed(tmp_path / "v.npz", embeddings=vectors)
    np.savez_compressed(tmp_path / "zeros.npz", embeddings=np.zeros((9000, 256), np.float32))
    assert bertcli("search", "tea", "-i", tmp_path / "v.npz", "--format", "json").status == 0
    assert bertcli("search", "tea", "-i", tmp_path / "zeros.npz", "--format", "json").status == 0


def test_a_cell_that_is_packed_too_well_is_not_unpacked(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    tables = {
        "cell": arrow.table({"text": ["a" * CELL]}),
        "one": arrow.table({"text": [*["tea"] * 99, "a" * CELL]}),
        "list": arrow.table({"embedding": [np.zeros(LARGE // 8, np.float32)]}),
        "equal": arrow.table({"text": ["a cup of tea"] * 4_000, "embedding": [[0.5] * 4] * 4_000}),
    }
    for name, table in tables.items():
        parquet.write_table(table, tmp_path / f"{name}.parquet", compression="zstd")
    for name, rows in (("cell", 1), ("one", 100)):
        error = bertcli("encode", "-i", tmp_path / f"{name}.parquet", "-o", tmp_path / "v.npy").error
        assert "cannot be read as Parquet: the column 'text' has 33,5" in error
        assert error.endswith(f", for {rows} rows.")
    error = bertcli("search", "tea", "-i", tmp_path / "list.parquet").error
    assert "the column 'embedding' has 8,388,608 numbers in 1 rows" in error
    # What is equal is not long.
    assert bertcli("tokenize", "-i", tmp_path / "equal.parquet", "-o", tmp_path / "t.jsonl").status == 0
    refused = bertcli("search", "tea", "-i", tmp_path / "equal.parquet").error
    assert "equal.parquet" in refused
    assert "has 4,000" not in refused


def test_a_line_of_a_gzip_has_the_limit_of_other_lines(tmp_path: Path) -> None:

    for ending, head in ((".txt", b""), (".jsonl", b'{"text": "'), (".csv", b"text\n"), (".fasta", b">x\n")):
        with gzip.open(tmp_path / f"t{ending}.gz", "wb") as file:
            file.write(head + b"a" * LARGE)
        error = bertcli("tokenize", "-i", tmp_path / f"t{ending}.gz", "-o", tmp_path / "t.json").error
        assert "more than 33,554,432 bytes without a line end, so this is not text." in error
