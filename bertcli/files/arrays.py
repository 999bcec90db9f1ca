"""Arrays in files: .npy, .npz and .safetensors, written from beginning to end as their rows come."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.files.formats import SEVERAL, check_output, ending_of, loaded
from bertcli.files.shards import Shards

SAFETENSORS_TYPES = {"<f4": "F32", "<f2": "F16", "|i1": "I8", "|u1": "U8", "<i8": "I64", "<i4": "I32"}
ALIGNMENT = 8  # bytes: where the arrays of a .safetensors file may begin


class Stored(NamedTuple):
    """An array as it stands in a file, of a NumPy type such as "<f4"; `rows` are its rows, any number at a time."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    rows: Iterable[NDArray[Any]]


def write_npy(stream: IO[bytes], arrays: Sequence[Stored]) -> None:
    """One array in the .npy format, version 1.0."""
    (array,) = arrays
    header = {"descr": array.dtype, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    _write_rows(stream, array)


def write_npz(stream: IO[bytes], arrays: Sequence[Stored]) -> None:
    """An uncompressed zip of .npy files, the same bytes for the same arrays."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for array in arrays:
            with archive.open(zipfile.ZipInfo(f"{array.name}.npy"), "w", force_zip64=True) as member:
                write_npy(member, [array])


def write_safetensors(stream: IO[bytes], arrays: Sequence[Stored]) -> None:
    """The length of the header, then JSON padded with spaces; after it the arrays stand end to end.

    By hand, because the safetensors package writes a file only from arrays that are all in memory.
    """
    entries, end = {}, 0
    for array in arrays:
        begin, end = end, end + np.dtype(array.dtype).itemsize * math.prod(array.shape)
        kind = SAFETENSORS_TYPES[array.dtype]
        entries[array.name] = {"dtype": kind, "shape": array.shape, "data_offsets": [begin, end]}
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    stream.write(len(header).to_bytes(8, "little") + header)
    for array in arrays:
        _write_rows(stream, array)


def _write_rows(stream: IO[bytes], array: Stored) -> None:
    for rows in array.rows:
        stream.write(np.ascontiguousarray(rows, array.dtype).tobytes())


def save_arrays(file: str, arrays: Mapping[str, NDArray[np.float32]]) -> None:
    """Write float32 arrays to a .npz or .safetensors file; BertcliError if that is not possible."""
    check_output(file, SEVERAL)
    save_stored(file, *(Stored(name, "<f4", np.shape(array), [array]) for name, array in arrays.items()))


def save_stored(file: str, *arrays: Stored) -> None:
    """Write arrays to a file of any of these kinds."""
    with Shards(file) as shards, shards.result() as stream:
        loaded(ending_of(file), "arrays")(stream, arrays)
