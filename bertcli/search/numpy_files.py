"""Vectors in NumPy's files: .npy is memory-mapped; .npz is streamed, as a zip's contents cannot be mapped."""

from __future__ import annotations

import ast
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from bertcli.arrow import first_line
from bertcli.search.stored import NAME, OFFSETS, TYPES, Chunk, Stored, mapped, no_vectors
from bertcli.untrusted import open_regular, shown

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


DESCRIPTIONS = ("<f2", "<f4", "<f8", "|i1", "|u1")
LENGTH_BYTES = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4, b"\x93NUMPY\x03\x00": 4}  # by magic and version
MOST = 1 << 48  # rows, or numbers per row: more than any file holds
HEADER_LIMIT = 10_000  # bytes, as in NumPy; real ones have 118


class _Header(NamedTuple):
    rows: int
    width: int
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        return self.width * self.dtype.itemsize


def numpy_file(path: Path) -> Stored:
    """A .npy file."""
    with open_regular(path) as file:
        header = _header(path, file, os.fstat(file.fileno()).st_size)
        shape = (header.rows, header.width)
        if not header.rows * header.row_bytes:  # an empty range cannot be mapped
            return mapped(path, np.empty(shape, header.dtype))
        return mapped(path, np.asarray(np.memmap(file, header.dtype, "r", offset=file.tell(), shape=shape)))


def zip_file(path: Path) -> Stored:
    """A .npz file, compressed or not."""
    with _member(path) as (file, size):
        header = _header(path, file, size)

    def chunks(count: int) -> Iterator[Chunk]:
        with _member(path) as (file, size):
            _header(path, file, size)
            for begin in range(0, header.rows, count):
                rows = min(count, header.rows - begin)
                data = _read(path, file, rows * header.row_bytes)
                if len(data) < rows * header.row_bytes:
                    raise no_vectors(path, "ends before its data do")
                yield np.frombuffer(data, header.dtype).reshape(rows, header.width)

    return Stored(path, header.rows, header.width, header.dtype.name == "uint8", chunks)


@contextmanager
def _member(path: Path) -> Iterator[tuple[IO[bytes], int]]:
    """The array "embeddings" of a zip, or its only array, as a stream; and how many bytes it claims to have."""
    with open_regular(path) as file:
        try:
            archive = zipfile.ZipFile(file)
            names = [name for name in archive.namelist() if name.endswith(".npy")]
            if f"{OFFSETS}.npy" in names:
                raise no_vectors(path, "holds a row for each token, not for each text")
            name = f"{NAME}.npy" if f"{NAME}.npy" in names else names[0] if len(names) == 1 else None
            stream = archive.open(name) if name else None
        except BAD_ZIP as error:
            raise no_vectors(path, f"cannot be read as a zip of arrays ({first_line(error):.80})") from None
        if name is None or stream is None:
            raise no_vectors(path, f"has no array '{NAME}' but {shown(names)}")
        with archive, stream:
            yield stream, archive.getinfo(name).file_size


def _read(path: Path, file: IO[bytes], count: int) -> bytes:
    """The next `count` bytes, fewer at the end; BertcliError for a damaged zip."""
    try:
        return file.read(count)
    except BAD_ZIP as error:
        raise no_vectors(path, f"is damaged ({first_line(error)})") from None


def _header(path: Path, file: IO[bytes], size: int) -> _Header:
    """The header of a .npy file of `size` bytes, which must end where its data end. Source: NEP 1."""
    magic = _read(path, file, 8)
    digits = LENGTH_BYTES.get(magic)
    length = int.from_bytes(_read(path, file, digits), "little") if digits else 0
    if not 0 < length <= HEADER_LIMIT:
        raise no_vectors(path, "does not begin like a .npy file")
    text = _read(path, file, length)
    try:
        fields = ast.literal_eval(text.decode("latin1"))
        descr, by_columns, shape = fields["descr"], fields["fortran_order"], fields["shape"]
        rows, width = shape if len(shape) == 2 else (None, None)
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        raise no_vectors(path, f"has the header {shown(text)}, which does not describe rows of numbers") from None
    no_rows = no_vectors(path, f"holds an array {shown(shape)}, not rows of numbers one after another")
    if type(rows) is not int or type(width) is not int or by_columns is not False:
        raise no_rows
    if not 0 <= min(shape) <= max(shape) < MOST:
        raise no_rows
    if descr not in DESCRIPTIONS:
        raise no_vectors(path, f"holds numbers of the type {shown(descr)}, not of {', '.join(TYPES)}")
    header = _Header(rows, width, np.dtype(descr))
    needed, held = rows * header.row_bytes, size - file.tell()
    if needed != held:
        raise no_vectors(path, f"needs {needed:,} bytes for its rows but has {held:,}")
    return header
