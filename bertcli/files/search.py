"""Exact search in a file of vectors: every row is compared with the query, a block of rows at a time.

No size that a file states is trusted for an allocation: .safetensors is memory-mapped, all others are streamed.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.checkpoint.tensors import open_file
from bertcli.checkpoint.untrusted import open_regular
from bertcli.errors import BertcliError, shown
from bertcli.files.parquet import check_pages, first_line, pyarrow
from bertcli.files.vectors import ORIGIN, quantize, stored_width

NAME = "embeddings"  # of the array, if a file has several
SINGULAR = "embedding"  # of the column of a table
ENDS = "offsets"  # an array stored with vectors of tokens: where each text ends
TYPES: list[np.dtype[Any]] = [np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8")]
WHOLE = np.dtype(np.int64)  # of ORIGIN
SAFETENSORS_TYPES = ("F16", "F32", "F64", "I8", "U8", "I64")  # others are not what NumPy takes them for
MOST = 1 << 48  # rows, or numbers per row: more than any file holds
NUMBERS = 1 << 22  # in a block: 32 MiB in float64
BAD_ZIP = (zipfile.BadZipFile, RuntimeError, ValueError, EOFError, OSError, zlib.error, struct.error)
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
Numbers = NDArray[Any]
Scores = NDArray[np.float64]


class Nearest(NamedTuple):
    """The rows nearest to each query, best first, ties in file order: both [query, at most top_k]."""

    rows: NDArray[np.int64]
    scores: Scores


class Array(NamedTuple):
    """An array of a file: `blocks(n)` gives n rows at a time."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[int], Iterator[Numbers]]


Arrays = Mapping[str, Callable[[], Array]]  # what opens each of a file's arrays or columns


class StoredVectors(NamedTuple):
    """The vectors of a file [rows, width], or (uint8) rows of bits, eight in a byte; and all arrays of that file."""

    file: Path
    vectors: Array
    arrays: Arrays

    @property
    def rows(self) -> int:
        return self.vectors.shape[0]

    def origins(self, rows: Sequence[int]) -> list[dict[str, int]] | None:
        """Of which text these rows are, and which part of it: ORIGIN; None where a row is a whole text."""
        if not set(ORIGIN) <= set(self.arrays):
            return None
        found = {name: self.arrays[name]() for name in ORIGIN}
        if any(array.shape != (self.rows,) or array.dtype != WHOLE for array in found.values()):
            raise _no_vectors(self.file, f"has other arrays {', '.join(ORIGIN)} than a whole number for each vector")
        numbers = {name: np.concatenate([*array.blocks(NUMBERS)]) for name, array in found.items()} if self.rows else {}
        return [{name: int(array[row]) for name, array in numbers.items()} for row in rows]


def nearest(queries: NDArray[np.floating[Any]], stored: StoredVectors, top_k: int) -> Nearest:
    """The rows with the largest cosine(query, row); queries [query, width].

    A zero vector has cosine 0 with everything. int8 rows are compared as stored: a scale per row changes no cosine.
    Rows of bits are compared with the signs of the query: 1 − 2 · (bits that differ) / width, the cosine of vectors of
    ±1. Errors: BertcliError if the widths differ, and for rows that are NaN or infinite.
    """
    width, binary = queries.shape[1], stored.vectors.dtype == np.uint8
    held = stored.vectors.shape[1]
    if held != stored_width(width, "binary" if binary else "float32"):
        what = f"{8 * held} bits" if binary else f"{held} numbers"
        raise BertcliError(
            f"{stored.file} has vectors of {what}, but this model gives {width}: use the model and the settings that "
            "made them (layer, pooling, truncated dimensions)."
        )
    compare = _bits(queries) if binary else _cosines(queries)
    best = Nearest(np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0)))
    begin = 0
    for block in stored.vectors.blocks(max(1, NUMBERS // max(1, width))):
        scores = compare(block)
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=0))
        if bad.size:
            raise BertcliError(f"{stored.file}, row {begin + bad[0]}: NaN or infinite numbers; create the file again.")
        rows = np.broadcast_to(np.arange(begin, begin + len(block)), scores.shape)
        best = _first(np.concatenate([best.rows, rows], 1), np.concatenate([best.scores, scores], 1), top_k)
        begin += len(block)
    return best


def _first(rows: NDArray[np.int64], scores: Scores, count: int) -> Nearest:
    order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return Nearest(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1))


def _cosines(queries: NDArray[np.floating[Any]]) -> Callable[[Numbers], Scores]:
    directions = queries.astype(np.float64)
    directions /= _lengths(directions)[:, None]

    def compare(block: Numbers) -> Scores:
        with np.errstate(all="ignore"):  # non-finite numbers show in the result
            wide = block.astype(np.float64)
            return np.asarray(directions @ wide.T / _lengths(wide)).clip(-1, 1)

    return compare


def _lengths(vectors: Scores) -> Scores:
    """|x| of every row, 1 where that is 0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.where(lengths == 0, 1.0, lengths)


def _bits(queries: NDArray[np.floating[Any]]) -> Callable[[Numbers], Scores]:
    signs, width = quantize(queries, "binary").values, queries.shape[1]

    def compare(block: Numbers) -> Scores:
        different = [np.bitwise_count(block ^ query).sum(axis=1, dtype=np.int64) for query in signs]
        shares: Scores = np.array(different, np.float64).reshape(len(signs), len(block)) / width
        return 1 - 2 * shares

    return compare


# ----------------------------------------------------------------------------------------------------- stored vectors


def open_vectors(file: str) -> StoredVectors:
    """Open a file written by `bertcli encode -o`, or one like it: its array "embeddings", or its only array of rows.

    Errors: BertcliError for a file that is missing, damaged, or holds no vectors.
    """
    path, ending = Path(file), Path(file).suffix.lower()
    if ending not in OPENERS:
        raise BertcliError(f"{file}: a file of vectors ends in {', '.join(OPENERS)}.")
    if not path.exists():
        raise BertcliError(f"{file} is missing: give an existing file of vectors, such as encode -o writes.")
    arrays = OPENERS[ending](path)
    if ENDS in arrays:
        raise _no_vectors(path, "holds a row for each token, not for each text")
    only = arrays if len(arrays) == 1 else ()
    name = next((name for name in (NAME, SINGULAR, *only) if name in arrays), None)
    if name is None:
        raise _no_vectors(path, f"has no array '{NAME}' or column '{SINGULAR}' but {shown([*arrays])}")
    vectors = arrays[name]()
    if len(vectors.shape) != 2:
        raise _no_rows(path, vectors.shape)
    _check_type(path, vectors.dtype, TYPES)
    return StoredVectors(path, vectors, arrays)


def _no_vectors(path: Path, what: str) -> BertcliError:
    """The error for a file that cannot be searched."""
    return BertcliError(f"{path} {what}: it is not a usable file of vectors.")


def _no_rows(path: Path, shape: tuple[int, ...]) -> BertcliError:
    return _no_vectors(path, f"holds an array {shown(shape)}, not rows of numbers one after another")


def _check_type(path: Path, dtype: np.dtype[Any], types: Sequence[np.dtype[Any]]) -> None:
    if dtype not in types:
        raise _no_vectors(path, f"holds numbers of the type {shown(dtype.str)}, not of {', '.join(map(str, TYPES))}")


Opened = Callable[[], AbstractContextManager[tuple[IO[bytes], int]]]  # a .npy file's content, and its size


def _npy(path: Path) -> Arrays:
    @contextmanager
    def opened() -> Iterator[tuple[IO[bytes], int]]:
        with open_regular(path) as file:
            yield file, os.fstat(file.fileno()).st_size

    return {NAME: partial(_streamed, path, opened)}


def _npz(path: Path) -> Arrays:
    @contextmanager
    def archive() -> Iterator[zipfile.ZipFile]:
        try:
            with open_regular(path) as file, zipfile.ZipFile(file) as found:
                yield found
        except BAD_ZIP as error:
            raise _no_vectors(path, f"cannot be read as a zip of arrays ({first_line(error):.80})") from None

    @contextmanager
    def opened(member: str) -> Iterator[tuple[IO[bytes], int]]:
        with archive() as found, found.open(member) as file:
            yield file, found.getinfo(member).file_size

    with archive() as found:
        members = [name for name in found.namelist() if name.endswith(".npy")]
    return {name.removesuffix(".npy"): partial(_streamed, path, partial(opened, name)) for name in members}


def _streamed(path: Path, opened: Opened) -> Array:
    """The array in a .npy file, which must end where its data end."""
    with opened() as (file, size):
        shape, dtype = _header(path, file)
        start = file.tell()
    row, row_bytes = shape[1:], math.prod(shape[1:]) * dtype.itemsize
    if shape[0] * row_bytes != size - start:
        raise _no_vectors(path, f"needs {shape[0] * row_bytes:,} bytes for its rows but has {size - start:,}")

    def blocks(count: int) -> Iterator[Numbers]:
        with opened() as (file, _):
            file.seek(start)
            for begin in range(0, shape[0], count):
                rows = min(count, shape[0] - begin)
                data = file.read(rows * row_bytes)
                if len(data) < rows * row_bytes:
                    raise _no_vectors(path, "ends before its data do")
                yield np.frombuffer(data, dtype).reshape(rows, *row)

    return Array(shape, dtype, blocks)


def _header(path: Path, file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in a .npy file."""
    try:
        read = HEADERS[np.lib.format.read_magic(file)]
    except (*BAD_ZIP, KeyError):
        raise _no_vectors(path, "does not begin like a .npy file") from None
    try:
        shape, by_columns, dtype = read(file)
    except Exception as error:  # the header is a Python literal, and Python's parser has many ways to fail
        why = f"has a header that does not describe rows of numbers ({first_line(error):.200})"
        raise _no_vectors(path, why) from None
    if not shape or by_columns or not 0 <= min(shape) <= max(shape) < MOST:
        raise _no_rows(path, shape)
    _check_type(path, dtype, (*TYPES, WHOLE))
    return shape, dtype


def _safetensors(path: Path) -> Arrays:
    tensors = open_file(path)

    def opened(name: str) -> Array:
        tensor = tensors[name]
        if tensor.dtype not in SAFETENSORS_TYPES:
            types = ", ".join(SAFETENSORS_TYPES)
            raise _no_vectors(path, f"holds an array {tensor.shape} of {tensor.dtype}, not of {types}")
        return in_memory(tensor.array)

    rows = [name for name, tensor in tensors.items() if len(tensor.shape) == 2]
    only = len(rows) == 1 and not set(tensors) & {NAME, ENDS}
    return {name: partial(opened, name) for name in (rows if only else tensors)}


def in_memory(array: Numbers) -> Array:
    """An array in memory, or in a memory-mapped file."""

    def blocks(count: int) -> Iterator[Numbers]:
        for begin in range(0, len(array), count):
            yield array[begin : begin + count]

    return Array(array.shape, array.dtype, blocks)


def _parquet(path: Path) -> Arrays:
    """Columns of whole numbers, or of lists that all have one length; a list that is null counts as zeros."""
    arrow, parquet = pyarrow(str(path))

    @contextmanager
    def table() -> Iterator[tuple[IO[bytes], Any]]:
        try:
            with open_regular(path) as file, parquet.ParquetFile(file, pre_buffer=False) as found:
                yield file, found
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise _no_vectors(path, f"cannot be read as Parquet ({first_line(error)})") from None

    def opened(name: str) -> Array:
        with table() as (file, found):
            kind, rows = found.schema_arrow.field(name).type, found.metadata.num_rows
            listed = hasattr(kind, "value_field")
            check_pages(str(path), file, found.metadata, [name])
            width = _width(found, name) if listed else 0
            of = kind.value_type if listed else kind
            dtype = next((one for one in [*TYPES, WHOLE] if of == getattr(arrow, one.name)()), None)
        if dtype is None:
            types = ", ".join(map(str, TYPES))
            raise _no_vectors(path, f"holds a column {shown(name)} of {kind}, not lists of {types}")

        def blocks(count: int) -> Iterator[Numbers]:
            with table() as (_, found):
                for batch in found.iter_batches(count, columns=[name], use_threads=False):
                    column = batch.column(name)
                    yield _rows(path, column, width, dtype) if listed else column.to_numpy(zero_copy_only=False)

        return Array((rows, width) if listed else (rows,), dtype, blocks)

    with table() as (_, found):
        names = found.schema_arrow.names
    return {name: partial(opened, name) for name in names if names.count(name) == 1}


def _rows(path: Path, lists: Any, width: int, dtype: np.dtype[Any]) -> Numbers:
    if lists.flatten().null_count:
        raise _no_vectors(path, "has vectors with nulls in them")
    if set(lists.value_lengths().to_pylist()) - {width, None}:
        raise _no_vectors(path, f"has vectors of different lengths; the first has {width} numbers")
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
