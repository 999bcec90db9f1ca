"""Exact search in a file of vectors: every row is compared with the query, a block of rows at a time.

Arrays are mapped (those of .npz files read into memory, a compressed one up to a gigabyte), Parquet is streamed.
"""

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.checkpoint.untrusted import open_regular
from bertcli.errors import BertcliError, first_line, shown
from bertcli.files.formats import PARQUET, ending_of, endings, loaded
from bertcli.files.parquet import check_sizes, note, pyarrow
from bertcli.files.vectors import MODEL, ORIGIN, quantize, stored_width
from bertcli.order import best_first

NAME = "embeddings"  # of the array, if a file has several
SINGULAR = "embedding"  # of the column of a table
ENDS = "offsets"  # an array stored with vectors of tokens: where each text ends
TYPES: list[np.dtype[Any]] = [np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8")]
WHOLE = np.dtype(np.int64)  # of ORIGIN
NUMBERS = 1 << 22  # in a block: 32 MiB in float64
BAD_ZIP = (zipfile.BadZipFile, RuntimeError, ValueError, OSError)
Numbers = NDArray[Any]
Scores = NDArray[np.float64]
Blocks = Callable[[int], Iterator[Numbers]]  # reads an array, so many rows at a time
Arrays = Mapping[str, Blocks]


class Nearest(NamedTuple):
    """The rows nearest to each query, best first, ties in file order: both [query, at most top_k]; of so many rows."""

    rows: NDArray[np.int64]
    scores: Scores
    of: int


class StoredVectors(NamedTuple):
    """The arrays or columns of a file by name, of which one holds vectors."""

    file: Path
    arrays: Arrays
    name: str = NAME
    model: str | None = None  # the signature of the one that made them, where the file says it

    def blocks(self, count: int) -> Iterator[Numbers]:
        """The vectors [row, width], or (uint8) rows of bits, eight in a byte; so many rows at a time."""
        for block in self.arrays[self.name](count):
            if block.ndim != 2:
                shape = shown(block.shape[1:])
                raise _no_vectors(self.file, f"holds rows of the shape {shape}, not rows of numbers one after another")
            _check_type(self.file, block.dtype, TYPES)
            yield block

    def origins(self, rows: Sequence[int], count: int) -> list[dict[str, int]] | None:
        """Of which text these of `count` rows are, and which part of it: ORIGIN; None where a row is a whole text."""
        if not count or not set(ORIGIN) <= set(self.arrays):
            return None
        numbers = {name: np.concatenate([*self.arrays[name](NUMBERS)]) for name in ORIGIN}
        if any(array.shape != (count,) or array.dtype != WHOLE for array in numbers.values()):
            raise _no_vectors(self.file, f"has other arrays {', '.join(ORIGIN)} than a whole number for each vector")
        return [{name: int(numbers[name][row]) for name in ORIGIN} for row in rows]


def nearest(queries: NDArray[np.floating[Any]], stored: StoredVectors, top_k: int) -> Nearest:
    """The rows with the largest cosine(query, row); queries [query, width].

    A zero vector has cosine 0 with everything. int8 rows are compared as stored: a scale per row changes no cosine.
    Rows of bits are compared with the signs of the query: 1 − 2 · (bits that differ) / width, the cosine of vectors of
    ±1. Errors: BertcliError if the widths differ, and for rows that are NaN or infinite.
    """
    width, count = queries.shape[1], 0
    directions, signs = queries.astype(np.float64), quantize(queries, "binary").values
    directions /= _lengths(directions)[:, None]
    rows, scores = np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0))
    for block in stored.blocks(max(1, NUMBERS // max(1, width))):
        binary, length = block.dtype == np.uint8, block.shape[1]
        if length != stored_width(width, "binary" if binary else "float32"):
            size = f"{8 * length} bits" if binary else f"{length} numbers"
            raise BertcliError(
                f"{stored.file} has vectors of {size}, but this model gives {width}: use the model and the settings "
                "that made them (layer, pooling, truncated dimensions)."
            )
        cosines = _same_signs(signs, block, width) if binary else _cosines(directions, block)
        bad = np.flatnonzero(~np.isfinite(cosines).all(axis=0))
        if bad.size:
            raise BertcliError(f"{stored.file}, row {count + bad[0]}: NaN or infinite numbers; create the file again.")
        numbers = np.broadcast_to(np.arange(count, count + len(block)), cosines.shape)
        rows, scores = np.concatenate([rows, numbers], 1), np.concatenate([scores, cosines], 1)
        count += len(block)
        kept = np.sort(_best(scores, top_k), axis=1)  # in file order, which ties keep
        rows, scores = np.take_along_axis(rows, kept, 1), np.take_along_axis(scores, kept, 1)
    order = _best(scores, top_k)
    return Nearest(np.take_along_axis(rows, order, 1), np.take_along_axis(scores, order, 1), count)


def _best(scores: Scores, top_k: int) -> NDArray[np.intp]:
    """Where the `top_k` best of each row are, best first [query, at most top_k]."""
    return np.array([best_first(row, top_k) for row in scores], np.intp).reshape(len(scores), -1)


def _cosines(directions: Scores, block: Numbers) -> Scores:
    """Cosines [query, row] of vectors of length 1 with rows."""
    with np.errstate(all="ignore"):  # non-finite numbers show in the result
        wide = block.astype(np.float64)
        return np.asarray(directions @ wide.T / _lengths(wide)).clip(-1, 1)


def _lengths(vectors: Scores) -> Scores:
    """|x| of every row, 1 where that is 0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.where(lengths == 0, 1.0, lengths)


def _same_signs(signs: NDArray[np.uint8], block: NDArray[np.uint8], width: int) -> Scores:
    """The same [query, row] of vectors of ±1 whose bits are given."""
    different = [np.bitwise_count(block ^ query).sum(axis=1, dtype=np.int64) for query in signs]
    return 1 - 2 * np.array(different, np.float64).reshape(len(signs), len(block)) / width


# ----------------------------------------------------------------------------------------------------- stored vectors


def open_vectors(file: str) -> StoredVectors:
    """Open a file written by `bertcli encode -o`, or one like it: its array "embeddings", or its only array of rows.

    Errors: BertcliError for a file that is missing, damaged, or holds no vectors.
    """
    path, ending = Path(file), ending_of(file)
    if ending not in endings("vectors"):
        raise BertcliError(f"{file}: a file of vectors ends in {', '.join(endings('vectors'))}.")
    if not path.is_file():
        raise BertcliError(f"{file} is missing: give an existing file of vectors, such as encode -o writes.")
    try:
        opened = loaded(ending, "vectors")(path)
    except BAD_ZIP as error:
        raise _no_vectors(path, f"cannot be read ({first_line(error):.80})") from None
    arrays: Arrays = opened
    if ending != PARQUET:
        arrays = {name: partial(_blocks, path, cache(read)) for name, read in opened.items()}
    if ENDS in arrays:
        raise _no_vectors(path, "holds a row for each token, not for each text")
    rows = [name for name in arrays if ending == ".safetensors" and _read(path, opened[name]).ndim == 2]
    only = rows if len(rows) == 1 else arrays if len(arrays) == 1 else ()
    name = next((name for name in (NAME, SINGULAR, *only) if name in arrays), None)
    if name is None:
        raise _no_vectors(path, f"has no array '{NAME}' or column '{SINGULAR}' but {shown([*arrays])}")
    if ending == PARQUET:
        model = note(path, MODEL)
    else:
        text = _read(path, opened[MODEL]) if MODEL in opened else np.empty(0)
        model = str(text) if text.dtype.kind == "U" else None
    stored = StoredVectors(path, arrays, name, model)
    next(stored.blocks(1), None)  # reads the first row, so that what is wrong with the file is an error now
    return stored


def _no_vectors(path: Path, what: str) -> BertcliError:
    """The error for a file that cannot be searched."""
    return BertcliError(f"{path} {what}: it is not a usable file of vectors.")


def _check_type(path: Path, dtype: np.dtype[Any], types: Sequence[np.dtype[Any]]) -> None:
    if dtype not in types:
        raise _no_vectors(path, f"holds numbers of the type {shown(dtype.str)}, not of {', '.join(map(str, TYPES))}")


def _read(path: Path, read: Callable[[], Numbers]) -> Numbers:
    try:
        return read()
    except BertcliError:
        raise
    except Exception as error:  # a header is a Python literal, and Python's parser has many ways to fail
        raise _no_vectors(path, f"cannot be read ({first_line(error):.200})") from None


def _blocks(path: Path, read: Callable[[], Numbers], count: int) -> Iterator[Numbers]:
    array = _read(path, read)
    if not array.ndim:
        raise _no_vectors(path, "holds an array (), not rows of numbers one after another")
    _check_type(path, array.dtype, (*TYPES, WHOLE))
    return in_memory(array, count)


def in_memory(array: Numbers, count: int) -> Iterator[Numbers]:
    """The blocks of an array in memory, or in a memory-mapped file; of one without rows an empty one."""
    return (array[begin : begin + count] for begin in range(0, max(1, len(array)), count))


def open_parquet(path: Path) -> Arrays:
    """Columns of whole numbers, or of lists that all have one length; a list that is null counts as zeros."""
    arrow, parquet = pyarrow(str(path))
    types = {getattr(arrow, dtype.name)(): dtype for dtype in (*TYPES, WHOLE)}

    @contextmanager
    def opened() -> Iterator[Any]:
        try:
            with open_regular(path) as file, parquet.ParquetFile(file, pre_buffer=False) as table:
                yield table
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise _no_vectors(path, f"cannot be read as Parquet ({first_line(error)})") from None

    def blocks(name: str, count: int) -> Iterator[Numbers]:
        with opened() as table:
            kind = table.schema_arrow.field(name).type
            listed = hasattr(kind, "value_field")
            dtype = types.get(kind.value_type if listed else kind)
            if dtype is None:
                allowed = ", ".join(map(str, TYPES))
                raise _no_vectors(path, f"holds a column {shown(name)} of {kind}, not lists of {allowed}")
            check_sizes(str(path), table.metadata, [name])
            width = _width(table, name) if listed else 0
            for batch in table.iter_batches(count, columns=[name], use_threads=False):
                column = batch.column(name)
                yield _rows(path, column, width, dtype) if listed else column.to_numpy(zero_copy_only=False)

    with opened() as table:
        names = table.schema_arrow.names
    return {name: partial(blocks, name) for name in names if names.count(name) == 1}


def _rows(path: Path, lists: Any, width: int, dtype: np.dtype[Any]) -> Numbers:
    if lists.flatten().null_count:
        raise _no_vectors(path, "has vectors with nulls in them")
    if set(lists.value_lengths().to_pylist()) - {width, None}:
        raise _no_vectors(path, f"has vectors of different lengths; the first has {width} numbers")
    vectors = np.zeros((len(lists), width), dtype)
    valid = lists.is_valid().to_numpy(zero_copy_only=False)
    vectors[valid] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    return vectors


def _width(columns: Any, name: str) -> int:
    """The length of the first vector that is not null; 0 if there is none."""
    for batch in columns.iter_batches(1024, columns=[name], use_threads=False):
        for length in batch.column(name).value_lengths().to_pylist():
            if length is not None:
                return int(length)
    return 0
