"""Arrays in files, one writer a format: .npy, .npz and .safetensors, written as their rows come or all at once.

The number of rows is known only at the end. So the first array of a .npy or .safetensors file is written in its place,
behind a header that is written once more at the end, and further arrays are kept in parts of their own until then; a
.npz file, which `zipfile` writes from its beginning to its end, is put together from parts (at the end it needs twice
its space for a moment).
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bertcli.files.draft import Draft, check_output
from bertcli.files.part import Part

Arrays = Mapping[str, NDArray[Any]]
ENDINGS = (".npy", ".npz", ".safetensors")
SEVERAL_ENDINGS = (".npz", ".safetensors")  # a .npy file holds one array
SAFETENSORS_TYPES = {"<f4": "F32", "<f2": "F16", "|i1": "I8", "|u1": "U8", "<i8": "I64", "<i4": "I32"}
ENTRY = 128  # bytes of a .safetensors header for each array: room for any number of rows
ALIGNMENT = 8  # bytes: where the arrays of a .safetensors file may begin


class Rows(NamedTuple):
    """An array [rows, *row] of a NumPy type such as "<f4" whose number of rows is not known yet.

    listed: its rows are the items of lists, one list after another; the last array says where each list ends.
    """

    name: str
    dtype: str
    row: tuple[int, ...] = ()
    listed: bool = False

    @property
    def row_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * math.prod(self.row)

    def read(self, part: Part, begin: int, count: int) -> NDArray[Any]:
        """So many rows of a part that holds nothing else, fewer at the end."""
        data = part.read(begin * self.row_bytes, count * self.row_bytes)
        return np.frombuffer(data, self.dtype).reshape(-1, *self.row)


class Stored(NamedTuple):
    """An array as it stands in a file; `data` are its bytes, in pieces of any size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: Iterable[bytes] = ()


class Collected:
    """Arrays that grow in parts of a draft, where a resumed one has its earlier rows.

    header: the first array follows this in the result itself; without it, every array has a part of its own.
    """

    def __init__(self, draft: Draft, arrays: Sequence[Rows], header: bytes = b"") -> None:
        self.arrays = arrays
        self._header = header
        self._parts = [draft.part("" if header and not number else str(number)) for number in range(len(arrays))]
        if header and not self._parts[0].size:
            self._parts[0].write(header)

    def append(self, arrays: Arrays) -> None:
        """Append any number of rows to each of the arrays."""
        for array, part in zip(self.arrays, self._parts, strict=True):
            part.write(np.ascontiguousarray(arrays[array.name], array.dtype).tobytes())

    def rows(self) -> list[int]:
        """How many rows each array has so far."""
        sizes = [self._parts[0].size - len(self._header), *(part.size for part in self._parts[1:])]
        each = [array.row_bytes for array in self.arrays]
        return [size // one if one else 0 for size, one in zip(sizes, each, strict=True)]

    def stored(self) -> list[Stored]:
        """The arrays as they are now; the first has no data where they stand in the result already."""
        return [
            Stored(array.name, array.dtype, (rows, *array.row), () if self._header and not i else part.chunks())
            for i, (array, rows, part) in enumerate(zip(self.arrays, self.rows(), self._parts, strict=True))
        ]

    def blocks(self, rows: int) -> Iterator[dict[str, NDArray[Any]]]:
        """The next so many rows of each array, fewer at the end; of those that are listed, the items of these rows."""
        parts = dict(zip(self.arrays, self._parts, strict=True))
        listed = [array for array in self.arrays if array.listed]
        item = 0
        for begin in range(0, self.rows()[-1], rows):
            block = {array.name: array.read(parts[array], begin, rows) for array in self.arrays if not array.listed}
            if listed:
                end = int(block[self.arrays[-1].name][-1])
                block |= {array.name: array.read(parts[array], item, end - item) for array in listed}
                item = end
            yield block


class ArrayFile:
    """`append({name: rows, …})` any number of times, and at the end `finish`, which publishes the file.

    The ending of the draft's file is one of ENDINGS; a .npy file holds one array.
    """

    def __init__(self, draft: Draft, arrays: Sequence[Rows]) -> None:
        self._draft = draft
        self._main = draft.part()
        self._header = HEADERS.get(Path(draft.file).suffix.lower())
        none_yet = [Stored(array.name, array.dtype, (0, *array.row)) for array in arrays]
        self._collected = Collected(draft, arrays, self._header(none_yet) if self._header else b"")
        self.append, self.rows = self._collected.append, self._collected.rows

    def finish(self, *beside: str, more: Sequence[Stored] = ()) -> None:
        """Write what is left, and `more` arrays (in a .npz), and give the file its name; `beside` is for `publish`."""
        arrays = [*self._collected.stored(), *more]
        if self._header is None:
            write_npz(self._main, arrays)
        else:
            for array in arrays:
                for data in array.data:
                    self._main.write(data)
            self._main.seek(0)
            self._main.write(self._header(arrays))
        self._draft.publish(*beside)


def save_arrays(file: str, arrays: Mapping[str, NDArray[np.float32]]) -> None:
    """Write float32 arrays to a .npz or .safetensors file; BertcliError if that is not possible."""
    ending = check_output(file, SEVERAL_ENDINGS)
    stored = [
        Stored(name, "<f4", array.shape, map(np.ndarray.tobytes, [np.asarray(array, "<f4")]))
        for name, array in arrays.items()
    ]
    with Draft(file) as draft:
        if ending == ".npz":
            write_npz(draft.part(), stored)
        else:
            draft.part().write(safetensors_header(stored))
            for array in stored:
                for data in array.data:
                    draft.part().write(data)
        draft.publish()


def write_npz(part: Part, arrays: Iterable[Stored]) -> None:
    """An uncompressed zip of .npy files, the same bytes for the same arrays."""
    with zipfile.ZipFile(cast(IO[bytes], part), "w", zipfile.ZIP_STORED) as archive:
        for array in arrays:
            with archive.open(zipfile.ZipInfo(f"{array.name}.npy"), "w", force_zip64=True) as member:
                member.write(npy_header([array]))
                for data in array.data:
                    member.write(data)


def npy_header(arrays: Sequence[Stored]) -> bytes:
    """The header of the .npy format, version 1.0, in which NumPy leaves room for the only array to grow."""
    (array,) = arrays
    stream = io.BytesIO()
    header = {"descr": array.dtype, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def safetensors_header(arrays: Sequence[Stored]) -> bytes:
    """The length of the header, then JSON padded with spaces; after it the arrays stand end to end.

    By hand, because the safetensors package writes a file only from arrays that are all in memory.
    """
    entries, end = {}, 0
    for array in arrays:
        begin, end = end, end + np.dtype(array.dtype).itemsize * math.prod(array.shape)
        kind = SAFETENSORS_TYPES[array.dtype]
        entries[array.name] = {"dtype": kind, "shape": array.shape, "data_offsets": [begin, end]}
    text = json.dumps(entries).encode()
    text = text.ljust(max(ENTRY * (1 + len(arrays)), len(text) + -len(text) % ALIGNMENT))
    return len(text).to_bytes(8, "little") + text


HEADERS = {".npy": npy_header, ".safetensors": safetensors_header}
