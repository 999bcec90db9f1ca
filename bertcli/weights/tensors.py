"""The weights of a checkpoint folder: memory-mapped safetensors or `.bin`, read-only and without a copy.

How a `.bin` file is read without being run stands in `state_dict`. Of a safetensors file the package checks the header:
its JSON, known dtypes, no overflow in a shape, and tensors that follow each other without gap or overlap up to the end
of the file. It is less strict than the format's description in two ways that do no harm: a tensor may be described with
keys that nobody knows, and after a space. That no name occurs twice is checked here.
The values are views of one map of the file, not the package's own arrays, which are copies.

Opening reads only the header (milliseconds whatever the size); a tensor's bytes are read from disk when they are first
used. The drawback: if another program truncates the file while it is mapped, the process dies with a bus error, as with
every program that maps files. A file that is already too short is refused.
"""

import math
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import (
    INDEX_ENDING,
    SINGLE_FILE,
    STATE_DICTS,
    Folder,
    open_regular,
    parse_json,
    read_bytes,
    shard_names,
    unusable,
    weights_file,
)

HEADER_LIMIT = 10_000_000  # bytes; BERT-large has 50 kB; the package allows 100 MB

# How the bytes are viewed. NumPy has neither bfloat16 nor 8-bit floats: those stay raw bits. BOOL stays uint8: a NumPy
# bool that is neither 0 nor 1 misbehaves, and a file may hold one. The 4- and 6-bit types do not fill whole bytes.
VIEWS = {"BOOL": "u1", "U8": "u1", "I8": "i1", "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1"}
VIEWS |= {"F8_E4M3FNUZ": "u1", "F8_E5M2FNUZ": "u1", "U16": "<u2", "I16": "<i2", "F16": "<f2", "BF16": "<u2"}
VIEWS |= {"U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8", "C64": "<c8"}
TOGETHER = 1 << 20  # numbers that are converted at a time to compare two tensors
COMPILED, PARALLEL = "_orig_mod.", "module."
FLOATS = ("F32", "F64", "F16", "BF16")


class StoredTensor(NamedTuple):
    """A tensor as stored in its file; `array` is a read-only view of the mapped file (BF16: its bits as uint16).

    stored_as: the type in the file, where `array` was made of it, and has another.
    """

    name: str
    dtype: str
    array: NDArray[Any]
    file: Path
    stored_as: str | None = None

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
                f"Tensor {quoted(self.name)} in {self.file} is stored as {self.dtype}, which cannot be used as a "
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

    def equals(self, other: "StoredTensor") -> bool:
        """True if both have the same shape and float32 numbers; read in parts, up to the first that differs."""
        if self.shape != other.shape:
            return False
        if self.array.__array_interface__ == other.array.__array_interface__ and self.dtype == other.dtype:
            return True  # the same bytes of the file, as tied weights in a .bin are
        flat, other_flat = (tensor._replace(array=tensor.array.reshape(-1)) for tensor in (self, other))
        parts = (slice(i, i + TOGETHER) for i in range(0, self.array.size, TOGETHER))
        return all(np.array_equal(flat._part(part).float32(), other_flat._part(part).float32()) for part in parts)

    def _part(self, part: slice) -> "StoredTensor":
        return self._replace(array=self.array[part])


def open_tensors(folder: Folder) -> dict[str, StoredTensor]:
    """Open every tensor of a checkpoint folder, by name.

    They are in model.safetensors, else in the shards listed in its index, else in pytorch_model.bin or its shards.
    Names are without what wrappers of PyTorch put before them.

    Errors: BertcliError naming file and tensor for weights that are missing, damaged, or in an unsupported format.
    """
    file = weights_file(folder)
    if file is None:
        raise BertcliError(
            f"{folder.path} holds no weights: there is neither {SINGLE_FILE} nor pytorch_model.bin: fetch it again."
        )
    if not file.name.endswith(INDEX_ENDING):
        return unwrapped(open_file(folder.reading(file.name)))
    shard_of = shard_names(folder, file.name)
    shards = sorted(set(shard_of.values()))
    for shard in shards:
        if not folder.has(shard):
            raise BertcliError(f"{folder.path} lacks the shard {shard} listed in {file.name}: fetch the model again.")
    opened = {shard: open_file(folder.reading(shard)) for shard in shards}
    for tensor, shard in shard_of.items():
        if tensor not in opened[shard]:
            raise BertcliError(
                f"{folder.file(shard)} lacks tensor {quoted(tensor)}, which {file.name} places there: fetch both again."
            )
    return unwrapped({tensor: opened[shard][tensor] for tensor, shard in shard_of.items()})


def unwrapped(tensors: dict[str, StoredTensor]) -> dict[str, StoredTensor]:
    """Take out of names what torch.compile puts anywhere (_orig_mod), and DataParallel before all (module)."""
    if not any(COMPILED in name or name.startswith(PARALLEL) for name in tensors):
        return tensors
    renamed = {name.replace(COMPILED, ""): tensor for name, tensor in tensors.items()}
    if all(name.startswith(PARALLEL) for name in renamed):
        renamed = {name.removeprefix(PARALLEL): tensor for name, tensor in renamed.items()}
    if len(renamed) < len(tensors):
        return tensors  # the file has tensors under both names, so neither is a wrapper's
    return {name: tensor._replace(name=name) for name, tensor in renamed.items()}


def open_file(path: Path) -> dict[str, StoredTensor]:
    """Open every tensor of a .safetensors, .bin or .pt file, by name, in file order; errors as in `open_tensors`."""
    with open_regular(path) as file:
        if path.suffix in STATE_DICTS:
            return _open_state_dict(path, _mapped(file, path))
        length = int.from_bytes(read_bytes(file, 8, path), "little")
        if length > HEADER_LIMIT:
            what = f"claims a header of {length:,} bytes, but at most {HEADER_LIMIT:,} are allowed"
            raise _refusal(path, what)
        described = _described(path)
        parse_json(read_bytes(file, length, path), path)  # only to refuse keys that occur twice
        data = _mapped(file, path)
    tensors, end = {}, 8 + length
    for name, dtype, shape in described:
        begin, end = end, end + math.prod(shape) * np.dtype(VIEWS[dtype]).itemsize
        try:
            array = data[begin:end].view(VIEWS[dtype]).reshape(shape)
        except ValueError:  # too many axes, or too long ones beside one of length 0
            raise _refusal(path, f"has a tensor {quoted(name)} of the impossible shape {quoted(shape)}") from None
        tensors[name] = StoredTensor(name, dtype, array, path)
    if end != len(data):
        raise _refusal(path, "changed while it was being opened")
    return tensors


def _mapped(file: BinaryIO, path: Path) -> NDArray[np.uint8]:
    """Map a file into memory, read-only."""
    try:
        return np.asarray(np.memmap(file, np.uint8, "r"))
    except (OSError, ValueError) as error:  # ValueError: it is empty
        raise BertcliError(f"{path} cannot be mapped into memory: {error}.") from error


def _open_state_dict(path: Path, data: NDArray[np.uint8]) -> dict[str, StoredTensor]:
    """Open every tensor of a mapped .bin or .pt file."""
    from bertcli.weights.state_dict import Refused, read_state_dict  # most weights are safetensors

    try:
        arrays = read_state_dict(data.data)
    except Refused as error:
        raise _refusal(path, str(error)) from None
    for name in arrays:
        _check_name(name, path)
    return {name: StoredTensor(name, dtype, array, path) for name, (dtype, array) in arrays.items()}


def _check_name(name: str, path: Path) -> None:
    """Refuse a tensor's name that cannot be printed."""
    if not name.isprintable():  # control characters would garble a listing
        raise _refusal(path, f"has a tensor {quoted(name)} whose name cannot be printed")


def _described(path: Path) -> list[tuple[str, str, tuple[int, ...]]]:
    """List name, dtype and shape of every tensor, in the order of their bytes, which follow each other without gaps."""
    from safetensors import SafetensorError, safe_open  # late: takes 3 ms

    try:
        with safe_open(path, "numpy") as file:
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
            tensors = [(name, str(part.get_dtype()), tuple(part.get_shape())) for name, part in slices.items()]
    except SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise BertcliError(f"{path} is not a usable safetensors file ({quoted(reason)}): fetch it again.") from None
    except OSError as error:
        raise BertcliError(f"{path} cannot be read: {error.strerror or error}.") from error
    for name, dtype, _ in tensors:
        _check_name(name, path)
        if dtype not in VIEWS:
            raise unusable(path, f"has a tensor {quoted(name)} of the dtype {dtype}, which bertcli does not know")
    return tensors


def _refusal(path: Path, what: str) -> BertcliError:
    """Make the error for a file that is not as its format requires."""
    file_format = "state dict of PyTorch" if path.suffix in STATE_DICTS else "safetensors file"
    return BertcliError(f"{path} {what}: it is not a usable {file_format}, fetch it again or use another.")
