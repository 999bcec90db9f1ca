"""The tensors of a `pytorch_model.bin`, read as data: nothing that the file names is looked up, imported or called.

Such a file holds a pickle, which is a program for a stack machine. Python's own machine calls whatever function the
program names; the one here builds tuples, lists, dicts, texts, numbers and two records (`Storage`, `Tensor`). It has no
instruction that does more, so no code can run. It reads what torch.save writes for a state dict:

1. A zip (torch 1.6 and later): ROOT/data.pkl is the pickle, ROOT/data/KEY the bytes of a storage, and ROOT/byteorder
   says "little" or "big". Members are not compressed. Their sizes are those of the central directory.
2. Before, five pickles in a row: a magic number, 1001, facts on the machine, the object, a list of storage keys; then,
   for each key, the count as int64 and the bytes, up to the end of the file.
3. A name (GLOBAL) is one of `Global`. Any other, and any instruction that state dicts do not need, is refused.
4. A persistent id ("storage", type, key, location, count) stands for a storage; equal keys are one storage.
5. A call (REDUCE) makes an OrderedDict, a tensor (a view of a storage, within its bounds, neither negated nor
   conjugated), or a parameter, which is its tensor. BUILD gives an OrderedDict attributes (`_metadata`), which are
   dropped.
6. The tensors are the object's, or those of its `state_dict` or `model` where it has none itself (training states).

Every file takes bounded time and memory: the limits below hold for the pickle, the zip's members and the tensors. What
a pickle names again from its memo is never copied, but for the pairs of an OrderedDict, which are counted.
"""

import io
import struct
from collections.abc import Mapping
from enum import Enum
from pickletools import genops
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

PICKLE_LIMIT = 4_000_000  # bytes; BERT-large has 100 kB
STEP_LIMIT = 300_000  # instructions, and pairs that calls copy; BERT-large has 20,000
MOST_AXES = 64  # of a tensor, as in NumPy
MEMBER_LIMIT = 100_000
REPEATS, SPARE = 8, 1 << 26  # tensors may repeat numbers: all have at most 8 times the file's bytes, and 64 MiB
MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001  # how the older form begins
IN_ZIP64_EXTRA = 0xFFFFFFFF  # in a zip, in place of a number that stands in the extra field

# How many values an instruction takes off the stack; those of ABOVE_MARK take all above the last MARK.
TAKEN = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "SETITEM": 2, "APPEND": 1, "STACK_GLOBAL": 2, "BINPERSID": 1}
TAKEN |= {"REDUCE": 2, "BUILD": 1, "STOP": 1}
ABOVE_MARK = ("TUPLE", "SETITEMS", "APPENDS")
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}

# How a storage's bytes are viewed; NumPy has no bfloat16, so its bits stay bits. BOOL may hold bytes beyond 0 and 1.
VIEWS = {"F32": "f4", "F16": "f2", "BF16": "u2", "F64": "f8", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1"}
VIEWS |= {"U8": "u1", "BOOL": "u1"}


class Global(Enum):
    """The names that may stand in a file; they are compared, and stand for themselves."""

    ORDERED_DICT = "collections OrderedDict"
    TENSOR = "torch._utils _rebuild_tensor_v2"
    OLD_TENSOR = "torch._utils _rebuild_tensor"  # torch before 0.4
    PARAMETER = "torch._utils _rebuild_parameter"
    F32 = "torch FloatStorage"
    F16 = "torch HalfStorage"
    BF16 = "torch BFloat16Storage"
    F64 = "torch DoubleStorage"
    I64 = "torch LongStorage"
    I32 = "torch IntStorage"
    I16 = "torch ShortStorage"
    I8 = "torch CharStorage"
    U8 = "torch ByteStorage"
    BOOL = "torch BoolStorage"


class Refused(Exception):
    """A fault of a file, as the rest of a sentence that begins with its name."""


class Storage(NamedTuple):
    """A run of numbers, whose bytes are elsewhere in the file."""

    dtype: str
    key: str
    length: int

    @property
    def nbytes(self) -> int:
        return self.length * np.dtype(VIEWS[self.dtype]).itemsize


class Tensor(NamedTuple):
    """A view of a storage; offset and strides count numbers."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def array(self, stored: Mapping[str, memoryview], order: str) -> NDArray[Any]:
        """A view of its storage's bytes (`stored`, by key); nothing is read yet."""
        numbers = (self.offset, *self.shape, *self.strides)
        if len(self.shape) != len(self.strides) or not all(map(_is_size, numbers)):
            raise Refused("has a tensor of an impossible shape")
        dtype = np.dtype(order + VIEWS[self.storage.dtype])
        axes = [*zip(self.shape, self.strides, strict=True)]
        last = self.offset + sum((size - 1) * stride for size, stride in axes)
        if 0 not in self.shape and last >= self.storage.length:
            raise Refused("has a tensor that ends outside its storage")
        steps = [stride * dtype.itemsize if size > 1 else 0 for size, stride in axes]
        try:
            if 0 in self.shape:
                return np.empty(self.shape, dtype)
            return np.ndarray(self.shape, dtype, stored[self.storage.key], self.offset * dtype.itemsize, steps)
        except ValueError:  # too many axes, or too long ones
            raise Refused("has a tensor of an impossible shape") from None


def read_state_dict(data: memoryview) -> dict[str, tuple[str, NDArray[Any]]]:
    """Name → dtype and array (a read-only view of `data`) of every tensor in the bytes of a .bin file.

    Errors: Refused, for what is not a state dict as torch.save writes it.
    """
    root, stored, order = _read_zip(data) if bytes(data[:4]) == b"PK\3\4" else _read_legacy(data)
    mappings = [root, root.get("state_dict"), root.get("model")] if isinstance(root, dict) else []
    tensors = next(filter(None, map(_tensors, mappings)), None)
    if tensors is None:
        raise Refused("holds no tensors by name")
    arrays = {name: (tensor.storage.dtype, tensor.array(stored, order)) for name, tensor in tensors.items()}
    total = sum(array.nbytes for _, array in arrays.values())
    if total > REPEATS * len(data) + SPARE:
        raise Refused(f"has {len(data):,} bytes, but its tensors would have {total:,}")
    return arrays


def _tensors(mapping: Any) -> dict[str, Tensor]:
    items = mapping.items() if isinstance(mapping, dict) else ()
    return {name: value for name, value in items if isinstance(name, str) and isinstance(value, Tensor)}


# -------------------------------------------------------------------------------------------------- the two containers


def _read_zip(data: memoryview) -> tuple[Any, dict[str, memoryview], str]:
    """The object in a zip, the bytes of each of its storages, and their order ("<" or ">")."""
    members = _members(data)
    roots = [name.removesuffix("data.pkl") for name in members if name.endswith("/data.pkl") and name.count("/") == 1]
    if len(roots) != 1:
        raise Refused(f"has {len(roots)} members named data.pkl, where one is needed")
    root = roots[0]
    program, order = members[f"{root}data.pkl"], bytes(members.get(f"{root}byteorder", b"little")[:9])
    if len(program) > PICKLE_LIMIT or order not in (b"little", b"big"):
        raise Refused(f"has a pickle of {len(program):,} bytes (at most {PICKLE_LIMIT:,}) or another order of bytes")
    storages: dict[str, Storage] = {}
    value = _run(io.BytesIO(program), storages)
    stored = {key: members.get(f"{root}data/{key}", memoryview(b"")) for key in storages}
    for key, storage in storages.items():
        if len(stored[key]) != storage.nbytes:
            raise Refused("has a storage that is not as long as its numbers")
    return value, stored, ">" if order == b"big" else "<"


def _members(data: memoryview) -> dict[str, memoryview]:
    """The bytes of each member of a zip by name, found through the central directory at the end of the file."""
    members: dict[str, memoryview] = {}
    try:
        mark, count, at = struct.unpack("<4s6xH4xI2x", data[-22:])
        if bytes(data[-42:-38]) == b"PK\6\7":  # zip64, which torch always writes
            (at,) = struct.unpack("<8xQ4x", data[-42:-22])
            count, at = struct.unpack("<32xQ8xQ", data[at : at + 56])
        if mark != b"PK\5\6" or count > MEMBER_LIMIT:
            raise Refused("is cut off, or a zip with too many members")
        for _ in range(count):
            name, member, at = _member(data, at)
            if name in members:
                raise Refused(f"has two members of the name {name!r:.100}")
            members[name] = member
    except (struct.error, UnicodeDecodeError):
        raise Refused("is a damaged zip") from None
    return members


def _member(data: memoryview, at: int) -> tuple[str, memoryview, int]:
    """Name and bytes of the member described at a place of the directory, and where the next one is described."""
    fields = struct.unpack("<4s4xHH8xIIHHH8xI", data[at : at + 46])
    mark, flags, method, packed, size, name_length, extra_length, comment_length, offset = fields
    after = at + 46 + name_length
    name, extra = data[at + 46 : after], data[after : after + extra_length]
    if IN_ZIP64_EXTRA in (size, packed, offset):  # zip64: they follow each other in the first field of the extra
        header_id, length = struct.unpack("<HH", extra[:4])
        wide = iter(struct.unpack(f"<{length // 8}Q", extra[4 : 4 + length // 8 * 8]) if header_id == 1 else ())
        size, packed, offset = (
            next(wide, number) if number == IN_ZIP64_EXTRA else number for number in (size, packed, offset)
        )
    local, local_name, local_extra = struct.unpack("<4s22xHH", data[offset : offset + 30])
    begin = offset + 30 + local_name + local_extra
    if (mark, local) != (b"PK\1\2", b"PK\3\4") or data[offset + 30 : offset + 30 + local_name] != name:
        raise Refused("is a damaged zip")
    if method or flags & 1 or packed != size:
        raise Refused("is a zip of compressed or encrypted members, which torch.save does not write")
    if begin + size > len(data):
        raise Refused("is a zip with members that end outside the file")
    return str(name, "utf-8"), data[begin : begin + size], after + extra_length + comment_length


def _read_legacy(data: memoryview) -> tuple[Any, dict[str, memoryview], str]:
    """Read the older form."""
    file = io.BytesIO(data[:PICKLE_LIMIT])
    storages: dict[str, Storage] = {}
    if bytes(data[:1]) != b"\x80" or _run(file, {}) != MAGIC or _run(file, {}) != PROTOCOL:
        raise Refused("is not of the form that torch.save writes")
    facts, value, keys = (_run(file, storages) for _ in range(3))
    if not isinstance(facts, dict) or facts.get("little_endian") is not True or not isinstance(keys, list):
        raise Refused("is of another machine, or lacks the list of its storages")
    stored: dict[str, memoryview] = {}
    at = file.tell()
    for key in keys:
        storage = storages.get(key) if isinstance(key, str) else None
        if storage is None or key in stored or data[at : at + 8] != struct.pack("<Q", storage.length):
            raise Refused("has a storage that is not as long as its numbers")
        stored[key] = data[at + 8 : at + 8 + storage.nbytes]
        at += 8 + storage.nbytes
    if at != len(data) or stored.keys() != storages.keys():
        raise Refused(f"has {len(data):,} bytes, but its storages end at {at:,}")
    return value, stored, "<"


# --------------------------------------------------------------------------------------------------- the stack machine


def _run(file: BinaryIO, storages: dict[str, Storage]) -> Any:
    """The object that the next pickle describes; the storages that it names are added to `storages`."""
    try:
        return _result(file, storages)
    except (IndexError, KeyError):
        raise Refused("has an instruction without the values that it works on") from None
    except (ValueError, DeprecationWarning) as error:  # of pickletools; the warning where it counts as an error
        raise Refused(f"is a damaged pickle ({error!s:.100})") from None


def _result(file: BinaryIO, storages: dict[str, Storage]) -> Any:
    stack: list[Any] = []
    below: list[list[Any]] = []  # the stacks below each MARK
    memo: dict[Any, Any] = {}
    copied = 0
    for step, (opcode, argument, _) in enumerate(genops(file)):
        if step > STEP_LIMIT:
            raise Refused(f"has more than {STEP_LIMIT:,} instructions")
        taken: list[Any] = []
        if opcode.name in ABOVE_MARK:
            taken, stack = stack, below.pop()
        elif opcode.name in TAKEN:
            taken = [stack.pop() for _ in range(TAKEN[opcode.name])][::-1]
        match opcode.name:
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "BINUNICODE" | "SHORT_BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT":
                stack.append(argument)
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append(CONSTANTS[opcode.name])
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST":
                stack.append([])
            case "MARK":
                below.append(stack)
                stack = []
            case "EMPTY_TUPLE" | "TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(taken))
            case "SETITEM" | "SETITEMS":
                _fill(stack[-1], taken)
            case "APPEND" | "APPENDS" if isinstance(stack[-1], list):
                stack[-1].extend(taken)
            case "GLOBAL":
                stack.append(_global(str(argument)))
            case "STACK_GLOBAL" if all(isinstance(part, str) for part in taken):
                stack.append(_global(" ".join(taken)))
            case "BINPERSID":
                stack.append(_storage(taken[0], storages))
            case "REDUCE":
                match taken[1]:
                    case (list(pairs),):
                        copied += len(pairs)
                if copied > STEP_LIMIT:
                    raise Refused(f"copies more than {STEP_LIMIT:,} pairs")
                stack.append(_made(*taken))
            case "BUILD" if isinstance(stack[-1], dict):
                pass  # attributes, such as _metadata
            case "STOP":
                return taken[0]
            case "PROTO" | "FRAME":
                pass
            case _:
                raise Refused(f"has the instruction {opcode.name} where no state dict has it")
    raise Refused("is a pickle without an end")


def _global(name: str) -> Global:
    try:
        return Global(name)
    except ValueError:
        raise Refused(f"asks for {name.replace(' ', '.')!r:.100}, which no state dict does") from None


def _storage(id: Any, storages: dict[str, Storage]) -> Storage:
    """The storage that a persistent id stands for; in the older form it has a sixth field, None."""
    match _short(id, 6):
        case ("storage", Global() as kind, str(key), _, length, *rest) if rest in ([], [None]) and _is_size(length):
            storage = Storage(kind.name, key, length)
            if kind.name in VIEWS and storages.setdefault(key, storage) == storage:
                return storage
    raise Refused("has a persistent id that is not a storage, or two kinds of the same storage")


def _made(function: Any, arguments: Any) -> dict[Any, Any] | Tensor:
    """Make the value of a call."""
    match function, _short(arguments, 7):
        case Global.ORDERED_DICT, ():
            return {}
        case Global.ORDERED_DICT, (list() as pairs,) if all(
            isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs
        ):
            ordered: dict[Any, Any] = {}
            for pair in pairs:
                _fill(ordered, pair)
            return ordered
        case Global.TENSOR, (Storage() as storage, offset, tuple(shape), tuple(strides), _, _, *metadata):
            if metadata not in ([], [None], [{}]):
                raise Refused("has a tensor that is negated or conjugated, or has other metadata")
            return Tensor(storage, offset, _short(shape, MOST_AXES), _short(strides, MOST_AXES))
        case Global.OLD_TENSOR, (Storage() as storage, offset, tuple(shape), tuple(strides)):
            return Tensor(storage, offset, _short(shape, MOST_AXES), _short(strides, MOST_AXES))
        case Global.PARAMETER, (Tensor() as tensor, _, _):
            return tensor
    raise Refused("makes a call that no state dict makes")


def _short(values: Any, most: int) -> Any:
    """Refuse a tuple of more values: taking one apart copies it."""
    if isinstance(values, tuple) and len(values) > most:
        raise Refused(f"has {len(values):,} values where at most {most} belong")
    return values


def _fill(target: Any, items: list[Any] | tuple[Any, ...]) -> None:
    """Put key, value, key, value, … into a dict."""
    if not isinstance(target, dict) or len(items) % 2:
        raise Refused("fills something that is not a dict, or not with pairs")
    for key, value in zip(items[::2], items[1::2], strict=True):
        if type(key) is not str and not (type(key) is int and key.bit_length() < 64):
            raise Refused("has a key that is neither a text nor an integer")
        if key in target:
            raise Refused(f"has the key {key!r:.100} twice")
        target[key] = value


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63
