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
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

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


class Stored(NamedTuple):
    """An array as it stands in a file; `data` are its bytes, in pieces of any size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: Iterable[bytes] = ()


class ArrayFile:
    """Arrays that grow in a draft, where a resumed one has its earlier rows.

    `append({name: rows, …})` any number of times, and at the end `finish`, which writes the file and publishes it. Of
    a .npy file, which holds one array, and of .safetensors the first array follows its header in the result itself;
    otherwise every array has a part of its own, which `finish` and `blocks` read.
    """

    def __init__(self, draft: Draft, arrays: Sequence[Rows]) -> None:
        self._draft = draft
        self.arrays = arrays
        self._header = HEADERS.get(Path(draft.file).suffix.lower())
        head = self._header([Stored(one.name, one.dtype, (0, *one.row)) for one in arrays]) if self._header else b""
        self._head = len(head)
        self._main = draft.part(head=self._head)
        self._parts = [self._main if head and not number else draft.part(str(number)) for number in range(len(arrays))]
        if not self._main.size:
            self._main.write(head)

    def append(self, arrays: Arrays) -> None:
        """Append any number of rows to each of the arrays."""
        for array, part in zip(self.arrays, self._parts, strict=True):
            part.write(np.ascontiguousarray(arrays[array.name], array.dtype).tobytes())

    def rows(self) -> list[int]:
        """How many rows each array has so far."""
        sizes = [part.size - (self._head if part is self._main else 0) for part in self._parts]
        each = [array.row_bytes for array in self.arrays]
        return [size // one if one else 0 for size, one in zip(sizes, each, strict=True)]

    def blocks(self, count: int) -> Iterator[dict[str, NDArray[Any]]]:
        """The next `count` rows of each array, fewer at the end; of those that are listed, the items of these rows."""
        item, ends = 0, self.arrays[-1].name
        for begin in range(0, self.rows()[-1], count):
            block: dict[str, NDArray[Any]] = {}
            for array, part in reversed([*zip(self.arrays, self._parts, strict=True)]):  # where lists end comes first
                part.flush()
                first, number = (item, int(block[ends][-1]) - item) if array.listed else (begin, count)
                place, size = first * array.row_bytes, number * math.prod(array.row)
                block[array.name] = np.fromfile(part.path, array.dtype, size, offset=place).reshape(-1, *array.row)
            item = int(block[ends][-1]) if self.arrays[0].listed else 0
            yield block

    def finish(self, more: Sequence[Stored] = ()) -> None:
        """Write what is left, and `more` arrays (in a .npz), and give the file its name."""
        arrays = [
            Stored(array.name, array.dtype, (rows, *array.row), () if part is self._main else part.chunks())
            for array, rows, part in zip(self.arrays, self.rows(), self._parts, strict=True)
        ]
        if self._header:
            for data in chain.from_iterable(array.data for array in arrays):
                self._main.write(data)
            self._main.write_head(self._header(arrays))
        else:
            _write_npz(self._main, [*arrays, *more])
        self._draft.publish()


def save_arrays(file: str, arrays: Mapping[str, NDArray[np.float32]]) -> None:
    """Write float32 arrays to a .npz or .safetensors file; BertcliError if that is not possible."""
    ending = check_output(file, SEVERAL_ENDINGS)
    found = {name: np.asarray(array, "<f4") for name, array in arrays.items()}
    stored = [Stored(name, "<f4", one.shape, map(np.ndarray.tobytes, [one])) for name, one in found.items()]
    with Draft(file) as draft:
        part = draft.part()
        if ending == ".npz":
            _write_npz(part, stored)
        else:
            for data in chain([safetensors_header(stored)], *(array.data for array in stored)):
                part.write(data)
        draft.publish()


def _write_npz(part: Part, arrays: Iterable[Stored]) -> None:
    """An uncompressed zip of .npy files, the same bytes for the same arrays."""
    with part.by_path() as path, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for array in arrays:
            with archive.open(zipfile.ZipInfo(f"{array.name}.npy"), "w", force_zip64=True) as member:
                for data in chain([npy_header([array])], array.data):
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
