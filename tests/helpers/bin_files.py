"""Files as torch.save writes them, put together by hand: pickles from their instructions, and the two containers."""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.weights.tensors import open_file

STORAGES = {"F32": "Float", "F16": "Half", "BF16": "BFloat16", "F64": "Double", "I64": "Long"}
MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
FACTS = b"\x80\x02}(X\x0d\0\0\0little_endian\x88X\x10\0\0\0protocol_versionM\xe9\x03u."


def text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(data)) + data


def integer(value: int) -> bytes:
    if 0 <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    data = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def integers(values: Sequence[int]) -> bytes:
    return b"(" + b"".join(map(integer, values)) + b"t"


def storage(key: str = "0", kind: str = "Float", count: int = 2, older: bool = False) -> bytes:
    """The instructions that push a storage."""
    name = b"ctorch\n" + kind.encode() + b"Storage\n"
    return b"(" + text("storage") + name + text(key) + text("cpu") + integer(count) + b"N" * older + b"tQ"


def tensor(
    shape: Sequence[int] = (2,), strides: Sequence[int] = (1,), offset: int = 0, stored: bytes | None = None
) -> bytes:
    """The instructions that push a tensor."""
    view = (storage() if stored is None else stored) + integer(offset) + integers(shape) + integers(strides)
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + view + b"\x89ccollections\nOrderedDict\n)RtR"


def state_dict(**values: bytes) -> bytes:
    """A whole pickle of a dict; `values` push what each name has."""
    return b"\x80\x02}(" + b"".join(text(name) + value for name, value in values.items()) + b"u."


def zipped(
    program: bytes, storages: Mapping[str, bytes] | None = None, order: str | None = "little", root: str = "archive"
) -> bytes:
    """The newer form, as one zip."""
    members: dict[str, str | bytes] = {f"{root}/data.pkl": program}
    members |= {} if order is None else {f"{root}/byteorder": order}
    stored = {"0": bytes(8)} if storages is None else storages
    members |= {f"{root}/data/{key}": data for key, data in stored.items()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for name, data in members.items():
            member = zipfile.ZipInfo(name)
            padding = (
                -(file.tell() + 30 + len(name) + 4) % 64
            )  # so that the bytes begin at a multiple of 64, as torch's
            member.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
            written.writestr(member, data)
    return file.getvalue()


def stream(program: bytes, storages: Mapping[str, tuple[int, bytes]] | None = None, facts: bytes = FACTS) -> bytes:
    """The older form; `storages` has the count and the bytes of each."""
    stored = {"0": (2, bytes(8))} if storages is None else storages
    keys = b"\x80\x02](" + b"".join(map(text, stored)) + b"e."
    blocks = (struct.pack("<q", count) + data for count, data in stored.values())
    return MAGIC + b"\x80\x02M\xe9\x03." + facts + program + keys + b"".join(blocks)


def bin_file(tensors: Mapping[str, tuple[str, NDArray[Any]]], older: bool = False) -> bytes:
    """A .bin file of (dtype, values) by name, in either form; equal arrays are tied."""
    keys = {id(values): str(number) for number, (_, values) in enumerate(tensors.values())}
    pushed = {}
    for name, (dtype, values) in tensors.items():
        strides = [step // values.itemsize for step in np.empty(values.shape, values.dtype).strides]
        stored = storage(keys[id(values)], STORAGES[dtype], values.size, older)
        pushed[name] = tensor(values.shape, strides, 0, stored)
    arrays = {keys[id(values)]: values for _, values in tensors.values()}
    if older:
        return stream(state_dict(**pushed), {key: (one.size, one.tobytes()) for key, one in arrays.items()})
    return zipped(state_dict(**pushed), {key: one.tobytes() for key, one in arrays.items()})


def convert(folder: Path, older: bool = False) -> Path:
    """Put the weights of a checkpoint folder, and of the modules in it, into .bin files in place of safetensors."""
    for path in sorted(folder.rglob("model*.safetensors")):
        tensors = {name: (one.dtype, one.array) for name, one in open_file(path).items()}
        target = path.with_name(f"pytorch_{path.stem}.bin")
        target.write_bytes(bin_file(tensors, older))
        path.unlink()
    for path in sorted(folder.rglob("model.safetensors.index.json")):
        index = path.read_text().replace("model-", "pytorch_model-").replace(".safetensors", ".bin")
        path.with_name("pytorch_model.bin.index.json").write_text(index)
        path.unlink()
    return folder
