"""Vectors in .safetensors, which is memory-mapped, and in .parquet, which is streamed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.arrow import first_line, pyarrow
from bertcli.search.stored import NAME, OFFSETS, TYPES, Chunk, Stored, mapped, no_vectors
from bertcli.tensors import open_file
from bertcli.untrusted import open_regular, shown

DTYPES = ("F32", "F16", "F64", "I8", "U8")
COLUMNS = ("embedding", NAME)
LISTS = ("fixed_size_list", "list", "large_list")


def safetensors_file(path: Path) -> Stored:
    """A .safetensors file."""
    tensors = open_file(path)
    if OFFSETS in tensors:
        raise no_vectors(path, "holds a row for each token, not for each text")
    flat = [name for name, tensor in tensors.items() if len(tensor.shape) == 2]
    name = NAME if NAME in tensors else flat[0] if len(flat) == 1 else None
    if name is None:
        raise no_vectors(path, f"has no array '{NAME}' but {shown(list(tensors))}")
    tensor = tensors[name]
    if tensor.dtype not in DTYPES or len(tensor.shape) != 2:
        raise no_vectors(path, f"holds an array {tensor.shape} of {tensor.dtype}, not rows of {', '.join(DTYPES)}")
    return mapped(path, tensor.array)


def parquet_file(path: Path) -> Stored:
    """A .parquet file with a column "embedding" of lists, all of one length; null counts as zeros."""
    arrow, parquet = pyarrow(str(path))
    errors = (arrow.ArrowException, OSError, ValueError)
    try:
        with open_regular(path) as file, parquet.ParquetFile(file, pre_buffer=False) as opened:
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
            name = next((name for name in COLUMNS if schema.names.count(name) == 1), None)
            kind: Any = None if name is None else schema.field(name).type
            if name is None or not any(getattr(arrow.types, f"is_{list_}")(kind) for list_ in LISTS):
                raise no_vectors(path, f"has no column '{COLUMNS[0]}' of vectors but {shown(schema.names)}")
            width = _width(opened, name)
            numbers = next((np.dtype(one) for one in TYPES if kind.value_type == getattr(arrow, one)()), None)
    except errors as error:
        raise no_vectors(path, f"cannot be read as Parquet ({first_line(error)})") from None
    if numbers is None:
        raise no_vectors(path, f"holds vectors of {kind.value_type}, not of {', '.join(TYPES)}")

    def chunks(count: int) -> Iterator[Chunk]:
        try:
            with open_regular(path) as file, parquet.ParquetFile(file, pre_buffer=False) as opened:
                for batch in opened.iter_batches(count, columns=[name], use_threads=False):
                    column = batch.column(name)
                    if column.flatten().null_count:
                        raise no_vectors(path, "has vectors with nulls in them")
                    if set(column.value_lengths().to_pylist()) - {width, None}:
                        raise no_vectors(path, f"has vectors of different lengths; the first has {width} numbers")
                    yield _vectors(column, width, numbers)
        except errors as error:
            raise no_vectors(path, f"is damaged ({first_line(error)})") from None

    return Stored(path, rows, width, numbers.name == "uint8", chunks, tuple(schema.names))


def _width(opened: Any, name: str) -> int:
    """The length of the first vector that is not null; 0 if there is none."""
    for batch in opened.iter_batches(1024, columns=[name], use_threads=False):
        for length in batch.column(name).value_lengths().to_pylist():
            if length is not None:
                return int(length)
    return 0


def _vectors(column: Any, width: int, numbers: np.dtype[Any]) -> Chunk:
    vectors = np.zeros((len(column), width), numbers)
    there = column.is_valid().to_numpy(zero_copy_only=False)
    vectors[there] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    return vectors
