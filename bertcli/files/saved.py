"""Arrays that are in memory, as a file."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from bertcli.files.arrays import SAFETENSORS_TYPES, Stored
from bertcli.files.formats import SEVERAL, check_output, format_of
from bertcli.files.kinds import Arrays
from bertcli.files.shards import Shards


def save_arrays(file: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a .npz or .safetensors file, which has no texts; BertcliError if that is not possible."""
    ending = check_output(file, SEVERAL)
    kinds = {name: array.dtype.newbyteorder("<").str for name, array in arrays.items()}
    names = [name for name in arrays if ending == ".npz" or kinds[name] in SAFETENSORS_TYPES]
    save_stored(file, *(Stored(name, kinds[name], arrays[name].shape, [arrays[name]]) for name in names))


def save_stored(file: str, *arrays: Stored) -> None:
    """Write arrays to a file of any of these kinds."""
    with Shards(file) as shards, shards.result() as stream:
        format_of(file, Arrays).write_arrays(stream, arrays)
