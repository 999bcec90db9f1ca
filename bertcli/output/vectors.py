"""Arrays written to files as their rows come: .npy, .npz, .safetensors.

The number of rows is known only at the end, so each format's header is first written with room for it, then rewritten.
The first array is written in place; the other arrays of a file are kept in parts of their own until then.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.output.draft import Draft
from bertcli.output.part import Part
from bertcli.output.zipped import Member, directory

ENDINGS = (".npy", ".npz", ".safetensors")
SEVERAL_ENDINGS = (".npz", ".safetensors")  # a .npy file holds one array
HEADER = 512  # bytes of a .safetensors header: enough for three arrays of any size
SAFETENSORS_TYPES = {"<f4": "F32", "<f2": "F16", "|i1": "I8", "|u1": "U8", "<i8": "I64"}


class Column(NamedTuple):
    """An array [row, width], or [row] where `width` is None, of a NumPy type such as "<f4"."""

    name: str
    dtype: str
    width: int | None = None

    def shape(self, rows: int) -> tuple[int, ...]:
        return (rows,) if self.width is None else (rows, self.width)

    @property
    def row_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * (1 if self.width is None else self.width)

    def numpy_header(self, rows: int) -> bytes:
        """The header of the .npy format, version 1.0, in which NumPy leaves room for an array to grow."""
        stream = io.BytesIO()
        header = {"descr": self.dtype, "fortran_order": False, "shape": self.shape(rows)}
        np.lib.format.write_array_header_1_0(stream, header)
        return stream.getvalue()


class VectorFile:
    """`append({name: rows, …})`, and at the end `finish`; a resumed draft keeps its earlier rows."""

    def __init__(self, draft: Draft, columns: Sequence[Column]) -> None:
        self._draft = draft
        self._columns = columns
        self._parts = [draft.part(), *(draft.part(column.name) for column in columns[1:])]
        self._begin = len(self.header([0] * len(columns)))
        if not self._parts[0].size:
            with draft.failures():
                self._parts[0].write(self.header([0] * len(columns)))

    def append(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Append any number of rows to each of the arrays."""
        with self._draft.failures():
            for column, part in zip(self._columns, self._parts, strict=True):
                part.write(np.ascontiguousarray(arrays[column.name], dtype=column.dtype).tobytes())

    def rows(self) -> list[int]:
        """How many rows each array has so far."""
        sizes = [self._parts[0].size - self._begin, *(part.size for part in self._parts[1:])]
        return [
            size // column.row_bytes if column.row_bytes else 0
            for size, column in zip(sizes, self._columns, strict=True)
        ]

    def finish(self) -> dict[str, str]:
        """Write what follows the first array, and the final header; the result is for `Draft.publish`."""
        with self._draft.failures():
            rows = self.rows()
            self.end(self._parts[0], rows)
            self._parts[0].overwrite(0, self.header(rows))
        return {"": ""}

    def header(self, rows: list[int]) -> bytes:
        raise NotImplementedError

    def end(self, main: Part, rows: list[int]) -> None:
        """Append the other arrays to the first."""
        for part in self._parts[1:]:
            for chunk in part.chunks():
                main.write(chunk)


class NumpyFile(VectorFile):
    """The .npy format."""

    def header(self, rows: list[int]) -> bytes:
        return self._columns[0].numpy_header(rows[0])


class SafetensorsFile(VectorFile):
    """The .safetensors format: length of the header, JSON header padded with spaces, arrays end to end."""

    def header(self, rows: list[int]) -> bytes:
        arrays, end = {}, 0
        for column, count in zip(self._columns, rows, strict=True):
            start, end = end, end + count * column.row_bytes
            arrays[column.name] = {
                "dtype": SAFETENSORS_TYPES[column.dtype],
                "shape": column.shape(count),
                "data_offsets": [start, end],
            }
        text = json.dumps(arrays).encode().ljust(HEADER)
        return len(text).to_bytes(8, "little") + text


class ZipFile(VectorFile):
    """The .npz format: an uncompressed zip of .npy files, the same bytes for the same arrays."""

    _first = Member("", 0)

    def header(self, rows: list[int]) -> bytes:
        column = self._columns[0]
        return self._first._replace(name=f"{column.name}.npy").header() + column.numpy_header(rows[0])

    def end(self, main: Part, rows: list[int]) -> None:
        column, *others = self._columns
        start = main.size
        head = column.numpy_header(rows[0])
        crc = zlib.crc32(head)
        for chunk in main.chunks(self._begin):
            crc = zlib.crc32(chunk, crc)
        self._first = Member(f"{column.name}.npy", 0, start - self._begin + len(head), crc)
        members = [self._first]
        for column, part, count in zip(others, self._parts[1:], rows[1:], strict=True):
            members.append(self._add(main, column, part, count))
        main.write(directory(members, main.size))

    def _add(self, main: Part, column: Column, part: Part, rows: int) -> Member:
        head = column.numpy_header(rows)
        crc = zlib.crc32(head)
        for chunk in part.chunks():
            crc = zlib.crc32(chunk, crc)
        member = Member(f"{column.name}.npy", main.size, len(head) + part.size, crc)
        main.write(member.header() + head)
        for chunk in part.chunks():
            main.write(chunk)
        return member


WRITERS: dict[str, type[VectorFile]] = {".npy": NumpyFile, ".npz": ZipFile, ".safetensors": SafetensorsFile}
