"""Exact search in a file of vectors: every row is compared with the query, a chunk of rows at a time.

No size that a file states is trusted for an allocation. .npy and .safetensors are memory-mapped, .npz (compressed or
not) and .parquet are streamed.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.checkpoint.tensors import open_file
from bertcli.checkpoint.untrusted import open_regular
from bertcli.errors import BertcliError, shown
from bertcli.files.parquet import check_sizes, first_line, pyarrow
from bertcli.files.quantize import quantize, stored_width
from bertcli.files.vectors import ORIGIN

NAME = "embeddings"  # of the array, if a file has several
SINGULAR = "embedding"  # of the column of a table
ENDS = "offsets"  # an array stored with vectors of tokens: where each text ends
TYPES: list[np.dtype[Any]] = [np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8")]
WHOLE = np.dtype(np.int64)  # of ORIGIN
SAFETENSORS_TYPES = ("F16", "F32", "F64", "I8", "U8", "I64")  # others are not what NumPy takes them for
LISTS = ("fixed_size_list", "list", "large_list")
MOST = 1 << 48  # rows, or numbers per row: more than any file holds
NUMBERS = 1 << 22  # in a chunk: 32 MiB in float64
BAD_ZIP = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    OSError,
    zlib.error,
    struct.error,
)
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
Chunk = NDArray[Any]
Scores = NDArray[np.float64]


class Nearest(NamedTuple):
    """The rows nearest to each query, best first, ties in file order: both [query, at most top_k]."""

    rows: NDArray[np.int64]
    scores: Scores


class Vectors(NamedTuple):
    """The vectors of a file [rows, width]; `binary`: a row is `width` bytes of bits. `chunks(n)`: n rows at a time.

    names: of all arrays or columns of the file; `array` opens one.
    """

    file: Path
    rows: int
    width: int
    binary: bool
    chunks: Callable[[int], Iterator[Chunk]]
    names: Sequence[str] = ()
    array: Callable[[str], OpenArray] | None = None

    def origins(self, rows: Sequence[int]) -> list[dict[str, int]] | None:
        """Of which text these rows are, and which part of it: ORIGIN; None where a row is a whole text."""
        if self.array is None or not set(ORIGIN) <= set(self.names):
            return None
        found = {name: self.array(name) for name in ORIGIN}
        if any(array.shape != (self.rows,) or array.dtype != WHOLE for array in found.values()):
            raise no_vectors(self.file, f"has other arrays {', '.join(ORIGIN)} than a whole number for each vector")
        numbers = {name: np.concatenate([*array.chunks(NUMBERS)]) for name, array in found.items()} if self.rows else {}
        return [{name: int(array[row]) for name, array in numbers.items()} for row in rows]


class OpenArray(NamedTuple):
    """An array of a file: `chunks(n)` gives n rows at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: Callable[[int], Iterator[Chunk]]


def nearest(queries: NDArray[np.floating[Any]], stored: Vectors, top_k: int) -> Nearest:
    """The rows with the largest cosine(query, row); queries [query, width].

    A zero vector has cosine 0 with everything. int8 rows are compared as stored: a scale per row changes no cosine.
    Rows of bits are compared with the signs of the query: 1 − 2 · (bits that differ) / width, the cosine of vectors of
    ±1. Errors: BertcliError if the widths differ, and for rows that are NaN or infinite.
    """
    width = queries.shape[1]
    if stored.width != stored_width(width, "binary" if stored.binary else "float32"):
        what = f"{8 * stored.width} bits" if stored.binary else f"{stored.width} numbers"
        raise BertcliError(
            f"{stored.file} has vectors of {what}, but this model gives {width}: use the model and the settings that "
            "made them (layer, pooling, truncated dimensions)."
        )
    compare = _bits(queries) if stored.binary else _cosines(queries)
    best = Nearest(np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0)))
    begin = 0
    for chunk in stored.chunks(max(1, NUMBERS // max(1, width))):
        scores = compare(chunk)
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=0))
        if bad.size:
            raise BertcliError(f"{stored.file}, row {begin + bad[0]}: NaN or infinite numbers; create the file again.")
        rows = np.broadcast_to(np.arange(begin, begin + len(chunk)), scores.shape)
        best = _first(np.concatenate([best.rows, rows], 1), np.concatenate([best.scores, scores], 1), top_k)
        begin += len(chunk)
    return best


def _first(rows: NDArray[np.int64], scores: Scores, count: int) -> Nearest:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Nearest(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1))


def _cosines(queries: NDArray[np.floating[Any]]) -> Callable[[Chunk], Scores]:
    directions = queries.astype(np.float64)
    directions /= _lengths(directions)[:, None]

    def compare(chunk: Chunk) -> Scores:
        with np.errstate(all="ignore"):  # non-finite numbers show in the result
            wide = chunk.astype(np.float64)
            return np.asarray(directions @ wide.T / _lengths(wide)).clip(-1, 1)

    return compare


def _lengths(vectors: Scores) -> Scores:
    """|x| of every row, 1 where that is 0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.where(lengths == 0, 1.0, lengths)


def _bits(queries: NDArray[np.floating[Any]]) -> Callable[[Chunk], Scores]:
    signs, width = quantize(queries, "binary").values, queries.shape[1]

    def compare(chunk: Chunk) -> Scores:
        different = [np.bitwise_count(chunk ^ query).sum(axis=1, dtype=np.int64) for query in signs]
        shares: Scores = np.array(different, np.float64).reshape(len(signs), len(chunk)) / width
        return 1 - 2 * shares

    return compare


# ----------------------------------------------------------------------------------------------------- stored vectors


def open_vectors(file: str) -> Vectors:
    """Open a file written by `bertcli encode -o`, or one like it: its array "embeddings", or its only array of rows.

    Errors: BertcliError for a file that is missing, damaged, or holds no vectors.
    """
    path, ending = Path(file), Path(file).suffix.lower()
    if ending not in OPENERS:
        raise BertcliError(f"{file}: a file of vectors ends in {', '.join(OPENERS)}.")
    if not path.exists():
        raise BertcliError(f"{file} is missing: give an existing file of vectors, such as encode -o writes.")
    names, array = OPENERS[ending](path)
    if ENDS in names:
        raise no_vectors(path, "holds a row for each token, not for each text")
    name = next((name for name in (NAME, SINGULAR) if name in names), names[0] if len(names) == 1 else None)
    if name is None:
        raise no_vectors(path, f"has no array '{NAME}' or column '{SINGULAR}' but {shown(names)}")
    shape, dtype, chunks = array(name)
    if len(shape) != 2:
        raise _no_rows(path, shape)
    _check_type(path, dtype, TYPES)
    return Vectors(path, *shape, dtype == np.uint8, chunks, names, array)


def in_memory(array: Chunk) -> OpenArray:
    """An array in memory, or in a memory-mapped file."""

    def chunks(count: int) -> Iterator[Chunk]:
        for begin in range(0, len(array), count):
            yield array[begin : begin + count]

    return OpenArray(array.shape, array.dtype, chunks)


def no_vectors(path: Path, what: str) -> BertcliError:
    """The error for a file that cannot be searched."""
    return BertcliError(f"{path} {what}: it is not a usable file of vectors.")


def _no_rows(path: Path, shape: tuple[int, ...]) -> BertcliError:
    return no_vectors(path, f"holds an array {shown(shape)}, not rows of numbers one after another")


def _check_type(path: Path, dtype: np.dtype[Any], types: Sequence[np.dtype[Any]] = (*TYPES, WHOLE)) -> None:
    if dtype not in types:
        raise no_vectors(path, f"holds numbers of the type {shown(dtype.str)}, not of {', '.join(map(str, TYPES))}")


Opened = tuple[list[str], Callable[[str], OpenArray]]  # the names of arrays, and what opens one


def _npy(path: Path) -> Opened:
    with open_regular(path) as file:
        shape, dtype = _header(path, file, os.fstat(file.fileno()).st_size)
        if math.prod(shape):
            array = np.asarray(np.memmap(file, dtype, "r", offset=file.tell(), shape=shape))
        else:  # an empty range cannot be mapped
            array = np.empty(shape, dtype)
    return [NAME], lambda name: in_memory(array)


def _npz(path: Path) -> Opened:
    @contextmanager
    def opened() -> Iterator[zipfile.ZipFile]:
        try:
            with open_regular(path) as file, zipfile.ZipFile(file) as archive:
                yield archive
        except BAD_ZIP as error:
            raise no_vectors(path, f"cannot be read as a zip of arrays ({first_line(error):.80})") from None

    def array(name: str) -> OpenArray:
        member = f"{name}.npy"
        with opened() as archive, archive.open(member) as file:
            size = archive.getinfo(member).file_size
            shape, dtype = _header(path, file, size)
        row_bytes = math.prod(shape[1:]) * dtype.itemsize

        def chunks(count: int) -> Iterator[Chunk]:
            with opened() as archive, archive.open(member) as file:
                _header(path, file, size)
                for begin in range(0, shape[0], count):
                    rows = min(count, shape[0] - begin)
                    data = file.read(rows * row_bytes)
                    if len(data) < rows * row_bytes:
                        raise no_vectors(path, "ends before its data do")
                    yield np.frombuffer(data, dtype).reshape(rows, *shape[1:])

        return OpenArray(shape, dtype, chunks)

    with opened() as archive:
        return [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")], array


def _header(path: Path, file: IO[bytes], size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in a .npy file of `size` bytes, which must end where its data end."""
    try:
        read = HEADERS[np.lib.format.read_magic(file)]
    except (*BAD_ZIP, KeyError):
        raise no_vectors(path, "does not begin like a .npy file") from None
    try:
        shape, by_columns, dtype = read(file)
    except Exception as error:  # the header is a Python literal, and Python's parser has many ways to fail
        why = f"has a header that does not describe rows of numbers ({first_line(error):.200})"
        raise no_vectors(path, why) from None
    if not shape or by_columns or not 0 <= min(shape) <= max(shape) < MOST:
        raise _no_rows(path, shape)
    _check_type(path, dtype)
    needed, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed != held:
        raise no_vectors(path, f"needs {needed:,} bytes for its rows but has {held:,}")
    return shape, dtype


def _safetensors(path: Path) -> Opened:
    tensors = open_file(path)

    def array(name: str) -> OpenArray:
        tensor = tensors[name]
        if tensor.dtype not in SAFETENSORS_TYPES:
            types = ", ".join(SAFETENSORS_TYPES)
            raise no_vectors(path, f"holds an array {tensor.shape} of {tensor.dtype}, not of {types}")
        return in_memory(tensor.array)

    rows = [name for name, tensor in tensors.items() if len(tensor.shape) == 2]
    return (rows if len(rows) == 1 and not set(tensors) & {NAME, ENDS} else list(tensors)), array


def _parquet(path: Path) -> Opened:
    """Columns of whole numbers, or of lists that all have one length; a list that is null counts as zeros."""
    arrow, parquet = pyarrow(str(path))
    errors = (arrow.ArrowException, OSError, ValueError)

    @contextmanager
    def opened() -> Iterator[Any]:
        try:
            with open_regular(path) as file, parquet.ParquetFile(file, pre_buffer=False) as columns:
                yield columns
        except errors as error:
            raise no_vectors(path, f"cannot be read as Parquet ({first_line(error)})") from None

    def array(name: str) -> OpenArray:
        with opened() as columns:
            kind, rows = columns.schema_arrow.field(name).type, columns.metadata.num_rows
            listed = any(getattr(arrow.types, f"is_{kind_of_list}")(kind) for kind_of_list in LISTS)
            check_sizes(str(path), columns.metadata, [name])
            width = _width(columns, name) if listed else 0
            of = kind.value_type if listed else kind
            dtype = next((one for one in [*TYPES, WHOLE] if of == getattr(arrow, one.name)()), None)
        if dtype is None:
            raise no_vectors(path, f"holds a column {shown(name)} of {kind}, not lists of {', '.join(map(str, TYPES))}")

        def chunks(count: int) -> Iterator[Chunk]:
            with opened() as columns:
                for batch in columns.iter_batches(count, columns=[name], use_threads=False):
                    column = batch.column(name)
                    yield _rows(path, column, width, dtype) if listed else column.to_numpy(zero_copy_only=False)

        return OpenArray((rows, width) if listed else (rows,), dtype, chunks)

    with opened() as columns:
        names = columns.schema_arrow.names
    return [name for name in names if names.count(name) == 1], array


def _rows(path: Path, lists: Any, width: int, dtype: np.dtype[Any]) -> Chunk:
    if lists.flatten().null_count:
        raise no_vectors(path, "has vectors with nulls in them")
    if set(lists.value_lengths().to_pylist()) - {width, None}:
        raise no_vectors(path, f"has vectors of different lengths; the first has {width} numbers")
    vectors = np.zeros((len(lists), width), dtype)
    there = lists.is_valid().to_numpy(zero_copy_only=False)
    vectors[there] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    return vectors


def _width(columns: Any, name: str) -> int:
    """The length of the first vector that is not null; 0 if there is none."""
    for batch in columns.iter_batches(1024, columns=[name], use_threads=False):
        for length in batch.column(name).value_lengths().to_pylist():
            if length is not None:
                return int(length)
    return 0


OPENERS = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors, ".parquet": _parquet}
