"""The weights of a checkpoint folder: memory-mapped safetensors, read-only and without a copy.

Opening reads only the header (milliseconds whatever the size); a tensor's bytes are read from disk when they are first
used. The drawback: if another program truncates the file while it is mapped, the process dies with a bus error, as with
every program that maps files. A file that is already too short is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.header import read_header
from bertcli.untrusted import open_regular, read_object, shown

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"

# How the bytes are viewed. NumPy has neither bfloat16 nor 8-bit floats: those stay raw bits. BOOL stays uint8: a NumPy
# bool that is neither 0 nor 1 misbehaves, and a file may hold one.
VIEWS = {"BOOL": "u1", "U8": "u1", "I8": "i1", "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1"}
VIEWS |= {"F8_E4M3FNUZ": "u1", "F8_E5M2FNUZ": "u1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "BF16": "<u2"}
VIEWS |= {"U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8", "C64": "<c8"}
FLOATS = ("F32", "F64", "F16", "BF16")

PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
FOREIGN = {
    "tf_model.h5": "TensorFlow", "flax_model.msgpack": "Flax", "bert_model.ckpt.index": "TensorFlow",
    "model.ckpt.index": "TensorFlow", "model.onnx": "ONNX",
}  # fmt: skip
# The state dict is saved unchanged: loading it into a transformers class would drop the heads that class lacks.
CONVERT_PICKLE = (
    'python -c "import glob, torch; from safetensors.torch import save_file; save_file({k: v.contiguous().clone()'
    " for f in sorted(glob.glob('pytorch_model*.bin'))"
    " for k, v in torch.load(f, map_location='cpu', weights_only=True).items()}, 'model.safetensors')\""
)


class StoredTensor(NamedTuple):
    """A tensor as stored in its file; `array` is a read-only view of the mapped file (BF16: its bits as uint16)."""

    name: str
    dtype: str
    array: NDArray[Any]
    file: Path

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def float32(self) -> NDArray[np.float32]:
        """The values in float32, C-contiguous, aligned and read-only: the mapped file if stored so, else a copy.

        F64 is rounded to the nearest float32 (infinite beyond its range). Errors: BertcliError for non-float dtypes.
        """
        if self.dtype not in FLOATS:
            raise BertcliError(
                f"Tensor {shown(self.name)} in {self.file} is stored as {self.dtype}, which cannot be used as a "
                f"weight: convert it to {', '.join(FLOATS[:-1])} or {FLOATS[-1]}."
            )
        if self.dtype == "BF16":  # the upper half of a float32
            bits = np.empty(self.shape, np.uint32)
            np.left_shift(self.array, 16, out=bits, dtype=np.uint32)
            values = bits.view(np.float32)
        else:
            with np.errstate(over="ignore"):
                values = np.require(self.array, np.float32, ["C", "A"])
        values.setflags(write=False)
        return values


def open_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of a checkpoint folder by name: from model.safetensors, else from the shards listed in the index.

    Errors: BertcliError naming file and tensor for weights that are missing, damaged, or in an unsupported format.
    """
    if os.path.lexists(folder / SINGLE_FILE):
        return open_file(folder / SINGLE_FILE)
    if os.path.lexists(folder / INDEX_FILE):
        return _open_shards(folder)
    raise _no_weights(folder)


def shard_names(index: Path) -> dict[str, str]:
    """Tensor name → file name from a model.safetensors.index.json; file names outside the folder are refused."""
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict):
        raise BertcliError(f"{index} has no weight_map of tensor and file names: fetch the model again.")
    for tensor, file in weight_map.items():
        if not isinstance(file, str) or not _is_plain(file):
            raise BertcliError(
                f"{index} places tensor {shown(tensor)} in {shown(file)}, which is not a safetensors file in the same "
                "folder: do not use this model."
            )
    return weight_map


def _is_plain(name: str) -> bool:
    return name.endswith(".safetensors") and name.isprintable() and not any(mark in name for mark in '/\\:"')


def open_file(path: Path) -> dict[str, StoredTensor]:
    """Every tensor of a safetensors file by name; errors as those of `open_tensors`."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        entries, start = read_header(file, size, path)
        data: NDArray[np.uint8] = np.empty(0, np.uint8)
        if size > start:  # an empty range cannot be mapped
            try:
                data = np.asarray(np.memmap(file, np.uint8, "r", offset=start, shape=(size - start,)))
            except (OSError, ValueError) as error:  # ValueError: it has become shorter since
                raise BertcliError(f"{path} cannot be mapped into memory: {error}.") from error
    return {
        entry.name: StoredTensor(
            entry.name, entry.dtype, data[entry.begin : entry.end].view(VIEWS[entry.dtype]).reshape(entry.shape), path
        )
        for entry in entries
    }


def _open_shards(folder: Path) -> dict[str, StoredTensor]:
    weight_map = shard_names(folder / INDEX_FILE)
    shards: dict[str, dict[str, StoredTensor]] = {}
    for file in sorted(set(weight_map.values())):
        if not os.path.lexists(folder / file):
            raise BertcliError(f"{folder} lacks the shard {file} listed in {INDEX_FILE}: fetch the model again.")
        shards[file] = open_file(folder / file)
    for tensor, file in weight_map.items():
        if tensor not in shards[file]:
            raise BertcliError(
                f"{folder / file} lacks tensor {shown(tensor)}, which {INDEX_FILE} places there: fetch it again."
            )
    return {tensor: shards[file][tensor] for tensor, file in weight_map.items()}


def _no_weights(folder: Path) -> BertcliError:
    """Why there is nothing to open, and the way out."""
    if not folder.is_dir():
        return BertcliError(f"There is no folder {folder}.")
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return BertcliError(f"{folder} cannot be read: {error.strerror or error}.")
    pickle = next((name for name in names if name in PICKLES or name.startswith("pytorch_model-")), None)
    if pickle is not None:
        return BertcliError(
            f"{folder} has its weights only in {pickle}, a pickle: opening one can run code from whoever made it, so "
            "bertcli never does; if you trust it, convert it in that folder where PyTorch is installed: "
            f"{CONVERT_PICKLE}"
        )
    foreign = next((name for name in names if name in FOREIGN), None)
    if foreign is not None:
        return BertcliError(
            f"{folder} has its weights only in {foreign} ({FOREIGN[foreign]}), which bertcli does not read: load it "
            "with transformers and call save_pretrained, which writes model.safetensors."
        )
    return BertcliError(f"{folder} holds no weights: there is neither {SINGLE_FILE} nor {INDEX_FILE}.")
