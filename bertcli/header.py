"""The header of a safetensors file, checked before any byte of the data is used.

The file is `u64 length | JSON header | data`. The header is untrusted: no size stated in it is trusted for an
allocation, and a tensor that passes can be viewed without reading past the file. Source: the format section of the
safetensors README; refuses what the reference implementation refuses, and a few more files (each noted below).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from bertcli.errors import BertcliError
from bertcli.untrusted import parse_json, read_bytes, shown

HEADER_LIMIT = 10_000_000  # bytes; BERT-large has 50 kB. The reference allows 100 MB, which may take 4 GB once parsed
RANK_LIMIT = 32  # the most axes in NumPy before 2.0
EXTENT_LIMIT = 2**63 - 1  # the most elements × bytes that an array may address

# Bytes per element. The 4- and 6-bit types are left out: they do not fill whole bytes, and no BERT is stored in them.
ITEM_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}
ITEM_SIZES |= {"U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8}
ITEM_SIZES |= {"C64": 8}


class Entry(NamedTuple):
    """One tensor in the header: its bytes are data[begin:end], and end - begin = product of shape × item size."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def read_header(file: BinaryIO, size: int, path: Path) -> tuple[list[Entry], int]:
    """The entries in header order, and the position in the file at which the data begins.

    `size` is the file's, `path` names it in messages. Memory stays below about 40 × the header's length, hence 400 MB.
    Errors: BertcliError, naming the tensor if it concerns one.
    """
    name = str(path)
    if size < 8:
        raise _refusal(name, f"has {size} bytes, too few for a header")
    length = int.from_bytes(read_bytes(file, 8, path), "little")
    if length > HEADER_LIMIT:
        raise _refusal(name, f"claims a header of {length:,} bytes, but at most {HEADER_LIMIT:,} are allowed")
    if length > size - 8:
        raise _refusal(name, f"claims a header of {length:,} bytes but has {size:,} in all: it is truncated or damaged")
    data = read_bytes(file, length, path)
    if len(data) < length:
        raise _refusal(name, "became shorter while it was being read")
    if not data.startswith(b"{"):
        raise _refusal(name, "has a header that does not begin with '{'")
    header = parse_json(data, f"the header of {name}")
    _check_metadata(header.pop("__metadata__", {}), name)
    entries = [_entry(key, value, name) for key, value in header.items()]
    _check_layout(entries, size - 8 - length, name)
    return entries, 8 + length


def _refusal(name: str, what: str) -> BertcliError:
    return BertcliError(f"{name} {what}: it is not a usable safetensors file, fetch it again.")


def _check_metadata(metadata: Any, name: str) -> None:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _refusal(name, f"has a __metadata__ that does not map text to text but is {shown(metadata)}")


def _entry(key: str, value: Any, name: str) -> Entry:
    """One entry whose dtype, shape and offsets agree; where the offsets point is checked later."""
    tensor = f"tensor {shown(key)}"
    if not key.isprintable():  # control characters and lone surrogates would garble or break a listing
        raise _refusal(name, f"has a {tensor} whose name cannot be printed")
    if not isinstance(value, dict):
        raise _refusal(name, f"has a {tensor} that is described by {shown(value)}")
    dtype, shape, offsets = value.get("dtype"), _naturals(value.get("shape")), _naturals(value.get("data_offsets"))
    if not isinstance(dtype, str) or dtype not in ITEM_SIZES:
        raise _refusal(name, f"has a {tensor} of the unknown dtype {shown(dtype)}")
    item_size = ITEM_SIZES[dtype]
    if (
        shape is None
        or len(shape) > RANK_LIMIT
        or math.prod(extent or 1 for extent in shape) * item_size > EXTENT_LIMIT
    ):
        raise _refusal(name, f"has a {tensor} of the impossible shape {shown(value.get('shape'))}")
    if offsets is None or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _refusal(name, f"has a {tensor} with the impossible data_offsets {shown(value.get('data_offsets'))}")
    needed, held = math.prod(shape) * item_size, offsets[1] - offsets[0]
    if needed != held:
        raise _refusal(name, f"has a {tensor} whose shape {shown(shape)} needs {needed:,} bytes, but it has {held:,}")
    return Entry(key, dtype, shape, offsets[0], offsets[1])


def _naturals(value: Any) -> tuple[int, ...] | None:
    """The list of whole numbers ≥ 0; None for anything else (JSON's true is not a number, though Python's is)."""
    if isinstance(value, list) and all(type(item) is int and item >= 0 for item in value):
        return tuple(value)
    return None


def _check_layout(entries: list[Entry], available: int, name: str) -> None:
    """Check that the tensors follow each other without gap or overlap, and end where the file ends."""
    position = 0
    for entry in sorted(entries, key=lambda entry: (entry.begin, entry.end)):
        if entry.begin != position:
            kind = "a gap before" if entry.begin > position else "an overlap at"
            raise _refusal(name, f"has {kind} tensor {shown(entry.name)}")
        position = entry.end
        if position > available:
            raise _refusal(name, f"has {available:,} bytes of data but tensor {shown(entry.name)} ends at {position:,}")
    if position < available:
        raise _refusal(name, f"has {available - position:,} bytes after its last tensor")
