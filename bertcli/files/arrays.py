"""Read and write arrays in .npy, .npz and .safetensors files; rows are written as they come, never all in memory.

Which arrays a file of vectors has is decided in write/vector_writer.py; weights are read in weights/tensors.py.
"""

import json
import math
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.files.read.vector_reader import Readers
from bertcli.weights.tensors import StoredTensor, open_file

SAFETENSORS_TYPES = {"<f8": "F64", "<f4": "F32", "<f2": "F16", "|i1": "I8", "|u1": "U8", "<i8": "I64", "<i4": "I32"}
TRUSTED_TYPES = ("F16", "F32", "F64", "I8", "U8", "I32", "I64")  # the others are mapped as raw bits, such as BF16
UNPACKED = 1 << 25  # bytes that a compressed array may have however small it is: those of the longest line
MOST_PACKED = 50  # times that a larger one may be packed: numbers are hardly, and a small file could fill the memory
ALIGNMENT = 8  # bytes: the arrays of a .safetensors file begin at multiples of this, as the package writes them


class FileArray(NamedTuple):
    """An array as it stands in a file, of a NumPy type such as "<f4"; `rows` are its rows, any number at a time."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    rows: Iterable[NDArray[Any]]

    @classmethod
    def text(cls, name: str, text: str) -> "FileArray":
        """Make an array of a text; .safetensors files have it in their metadata."""
        array = np.array(text)
        return cls(name, array.dtype.str, (), [array])

    @classmethod
    def of_texts(cls, name: str, texts: Sequence[str]) -> "FileArray":
        """Make an array of several texts."""
        array = np.array(texts, str)
        return cls(name, array.dtype.str, array.shape, [array])


def write_npy(stream: IO[bytes], arrays: Sequence[FileArray]) -> None:
    """Write one array in the .npy format, version 1.0."""
    (array,) = arrays
    header = {"descr": array.dtype, "fortran_order": False, "shape": array.shape}
    np.lib.format.write_array_header_1_0(stream, header)
    _write_rows(stream, array)


def write_npz(stream: IO[bytes], arrays: Sequence[FileArray]) -> None:
    """Write an uncompressed zip of .npy files; equal arrays give equal bytes, since it holds no dates."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for array in arrays:
            with archive.open(zipfile.ZipInfo(f"{array.name}.npy"), "w", force_zip64=True) as member:
                write_npy(member, [array])


def write_safetensors(stream: IO[bytes], arrays: Sequence[FileArray]) -> None:
    """Write the length of the header, the header (JSON padded with spaces), then the arrays end to end.

    Written here because the safetensors package needs all arrays in memory.
    """
    texts = {array.name: str(*array.rows) for array in arrays if array.dtype.startswith("<U")}
    arrays = [array for array in arrays if array.name not in texts]
    entries: dict[str, Any] = {"__metadata__": texts} if texts else {}
    end = 0
    for array in arrays:
        begin, end = end, end + np.dtype(array.dtype).itemsize * math.prod(array.shape)
        dtype = SAFETENSORS_TYPES[array.dtype]
        entries[array.name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [begin, end]}
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % ALIGNMENT)
    stream.write(len(header).to_bytes(8, "little") + header)
    for array in arrays:
        _write_rows(stream, array)


def _write_rows(stream: IO[bytes], array: FileArray) -> None:
    for rows in array.rows:
        stream.write(np.ascontiguousarray(rows, array.dtype).tobytes())


def ends_of(lengths: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """Yield 0 and the running sum of all lengths, part by part."""
    last = np.zeros(1, np.int64)
    yield last
    for part in lengths:
        ends = last + np.cumsum(part)
        yield ends
        if len(ends):
            last = ends[-1:]


# ------------------------------------------------------------------------------------------------------------- reading


def open_npy(path: Path) -> Readers:
    """Return a function that maps the array of a .npy file, as "embeddings".

    It raises many kinds of errors for a damaged file.
    """
    return {"embeddings": partial(np.lib.format.open_memmap, path, "r")}


def open_npz(path: Path) -> Readers:
    """Return functions that read each array of a .npz file into memory. Errors: zipfile's; the functions' differ."""
    with zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    return {info.filename.removesuffix(".npy"): partial(_member, path, info) for info in members}


def _member(path: Path, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.file_size > max(UNPACKED, MOST_PACKED * info.compress_size):
        raise ValueError(
            f"{info.filename} has {info.file_size:,} bytes in {info.compress_size:,}: what is packed more than "
            f"{MOST_PACKED} times is not read; use np.savez"
        )
    with zipfile.ZipFile(path) as archive, archive.open(info) as member:
        if np.lib.format.read_magic(member) == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(member)
        else:
            shape, _, dtype = np.lib.format.read_array_header_2_0(member)
        if dtype.itemsize * math.prod(shape) != info.file_size - member.tell():
            raise ValueError(f"{info.filename} has other bytes than its header says")
        member.seek(0)
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        if member.read(1):  # read to the end, where zipfile checks the CRC
            raise ValueError(f"{info.filename} has more bytes than its array")
    return array


def open_safetensors(path: Path) -> Readers:
    """Return functions that give each array of a .safetensors file, which is mapped. Errors: BertcliError."""
    readers = {name: partial(_tensor, tensor) for name, tensor in open_file(path).items()}
    with path.open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    texts = header.get("__metadata__", {})
    return readers | {name: partial(np.array, text) for name, text in texts.items() if name not in readers}


def _tensor(tensor: StoredTensor) -> NDArray[Any]:
    if tensor.dtype not in TRUSTED_TYPES:
        raise ValueError(f"numbers of the type {tensor.dtype} are not read")
    return tensor.array
