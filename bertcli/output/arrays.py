"""Several arrays by name in one file: .npz or .safetensors."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.output.files import OutputFile, Replacement, check_output

Arrays = Mapping[str, NDArray[np.float32]]
ENDINGS = (".npz", ".safetensors")
ALIGNMENT = 8  # bytes: the arrays of a .safetensors file begin at a multiple


def save_arrays(file: str, arrays: Arrays) -> None:
    """Write float32 arrays to a file whose ending determines the format; BertcliError if that is not possible."""
    ending = check_output(file, ENDINGS)
    with Replacement(file) as output:
        if ending == ".npz":
            _write_npz(output, arrays)
        else:
            _write_safetensors(output, arrays)


def _write_npz(output: Any, arrays: Arrays) -> None:
    """An uncompressed zip of .npy files, the same bytes for the same arrays."""
    with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, _plain(array), allow_pickle=False)


def _write_safetensors(output: OutputFile, arrays: Arrays) -> None:
    """Length of the header, JSON header padded with spaces, arrays end to end."""
    header, end = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    output.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        output.write(_plain(array).tobytes())


def _plain(array: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.ascontiguousarray(array, dtype="<f4")
