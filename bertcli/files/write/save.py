"""Write what is in memory to a file: bytes, or arrays to a .npz or .safetensors file."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from bertcli.files.arrays import FileArray
from bertcli.files.files_beside import check_output
from bertcli.files.formats import SEVERAL, ending_of, writer_of
from bertcli.files.write.resumable_output import ResumableOutput


def save(file: str, data: bytes) -> None:
    """Write a whole file atomically: after an error the old content is unchanged."""
    with ResumableOutput(file) as segments, segments.result() as stream:
        stream.write(data)


def save_arrays(file: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a .npz or .safetensors file, which has no texts; BertcliError if that is not possible."""
    check_output(file, SEVERAL)
    types = {name: array.dtype.newbyteorder("<").str for name, array in arrays.items()}
    names = [name for name in arrays if ending_of(file) == ".npz" or arrays[name].dtype.kind != "U"]
    save_stored(file, *(FileArray(name, types[name], arrays[name].shape, [arrays[name]]) for name in names))


def save_stored(file: str, *arrays: FileArray) -> None:
    """Write arrays to a file of arrays."""
    with ResumableOutput(file) as segments, segments.result() as stream:
        writer_of(ending_of(file), "array", "arrays")(stream, arrays)
