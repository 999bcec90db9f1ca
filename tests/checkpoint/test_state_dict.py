"""pytorch_model.bin as data: what torch.save writes is read bit for bit, and nothing that a file asks for is done."""

import io
import pickle
import struct
import time
import tracemalloc
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bin_files
from helpers.bin_files import convert, integer, state_dict, storage, stream, tensor, text, zipped
from helpers.checkpoints import Dense, Sentence, make
from helpers.terminal import bertcli as run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import bertcli
from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.weights.state_dict import MEMBER_LIMIT, PICKLE_LIMIT, Refused, read_state_dict
from bertcli.weights.tensors import open_tensors

RECORDED = np.load(Path(__file__).parents[1] / "reference" / "state_dicts.npz")
KINDS = [name for name in RECORDED.files if "/" not in name]
FILE = "pytorch_model.bin"


def opened(folder: Path, data: bytes) -> dict[str, Any]:
    (folder / FILE).write_bytes(data)
    return open_tensors(Folder(folder))


# ------------------------------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize("kind", KINDS)
def test_what_torch_saved_is_what_torch_loads(tmp_path: Path, kind: str) -> None:
    tensors = opened(tmp_path, RECORDED[kind].tobytes())
    expected = {name.removeprefix(f"{kind}/"): RECORDED[name] for name in RECORDED.files if name.startswith(f"{kind}/")}
    assert {*tensors} == {*expected}
    for name, values in expected.items():
        assert tensors[name].shape == values.shape
        assert np.ascontiguousarray(tensors[name].array).astype(values.dtype).tobytes() == values.tobytes(), name


def test_every_kind_was_recorded() -> None:
    assert len({kind.partition("-")[0] for kind in KINDS}) == 16
    assert sum("-stream-" in kind for kind in KINDS) >= 15


@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16", "F64"])
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("shards", [0, 3])
def test_a_model_gives_the_numbers_of_its_safetensors(tmp_path: Path, dtype: str, older: bool, shards: int) -> None:
    folders = [make(tmp_path / name, head="pretraining", dtype=dtype, tied="stored", shards=shards) for name in "ab"]
    expected = {name: one.array.copy() for name, one in open_tensors(Folder(folders[0])).items()}
    tensors = open_tensors(Folder(convert(folders[1], older)))
    assert {*tensors} == {*expected}
    for name, one in tensors.items():
        assert one.dtype == dtype
        np.testing.assert_array_equal(one.array, expected[name])
    first, second = (bertcli.load(folder) for folder in folders)
    assert first.fill_mask(["a [MASK] here"]) == second.fill_mask(["a [MASK] here"])


def test_safetensors_win(tmp_path: Path) -> None:
    folder = make(tmp_path)
    (folder / FILE).write_bytes(b"never opened")
    (folder / "pytorch_model.bin.index.json").write_text("never opened")
    assert {one.file.name for one in open_tensors(Folder(folder)).values()} == {"model.safetensors"}


def test_dense_layers_of_sentence_models_too(tmp_path: Path) -> None:
    sentence = Sentence(dense=(Dense(7),), normalize=True)
    folders = [make(tmp_path / name, sentence=sentence) for name in "ab"]
    convert(folders[1])
    assert (folders[1] / "2_Dense" / FILE).is_file()
    first, second = (bertcli.load(folder).encode(["one", "and another"]) for folder in folders)
    assert first.shape == (2, 7)
    np.testing.assert_array_equal(first, second)


def test_storages_are_mapped_and_tied_ones_are_one(tmp_path: Path) -> None:
    numbers = np.arange(1_000_000, dtype=np.float32)
    written = bin_files.bin_file({"a": ("F32", numbers), "decoder": ("F32", numbers)})
    assert len(written) < 4_002_000
    tracemalloc.start()
    tensors = opened(tmp_path, written)
    assert tensors["a"].equals(tensors["decoder"])
    assert tensors["a"].float32()[-1] == 999_999
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000 + io.DEFAULT_BUFFER_SIZE  # an open file's buffer: 8 kB, and 128 kB from Python 3.14 on
    assert np.shares_memory(tensors["a"].float32(), tensors["decoder"].float32())
    with pytest.raises(ValueError, match="read-only"):
        tensors["a"].array[0] = 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        tensors["a"].array.setflags(write=True)


def test_a_large_zip_has_its_numbers_elsewhere() -> None:
    """Above 4 GB, the sizes in the directory say "elsewhere", and an extra field has them in 64 bits."""
    data = zipped(state_dict(a=tensor()), {"0": struct.pack("<2f", 1, 2)})
    end = data.rindex(b"PK\5\6")
    (begin,) = struct.unpack("<I", data[end + 16 : end + 20])
    directory, at = b"", begin
    while at < end:
        fields = list(struct.unpack("<4s4xHH8xIIHHH8xI", data[at : at + 46]))
        name = data[at + 46 : at + 46 + fields[5]]
        wide = struct.pack("<HHQQQ", 1, 24, fields[4], fields[3], fields[8])
        huge = struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF)
        entry = data[at : at + 20] + huge + struct.pack("<HHH", len(name), len(wide), 0) + data[at + 34 : at + 42]
        directory += entry + b"\xff" * 4 + name + wide
        at += 46 + fields[5] + fields[6]
    first = data[:begin] + directory
    count = struct.unpack("<H", data[end + 10 : end + 12])[0]
    last = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(directory), begin)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(first), 1)
    whole = first + last + locator + b"PK\5\6" + b"\0" * 4 + b"\xff" * 12 + b"\0\0"
    assert zipfile.ZipFile(BytesIO(whole)).read("archive/data/0") == struct.pack("<2f", 1, 2)
    assert read_state_dict(memoryview(whole))["a"][1].tolist() == [1, 2]


def test_names_before_torch_0_4() -> None:
    older = b"ctorch._utils\n_rebuild_tensor\n(" + storage() + integer(0) + b"K\2\x85K\1\x85tR"
    data = zipped(state_dict(a=older), {"0": struct.pack("<2f", 3, 4)}, order=None)
    assert read_state_dict(memoryview(data))["a"][1].tolist() == [3, 4]


# --------------------------------------------------------------------------------------------------- what is refused


class Calls:
    """An object whose pickle calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.made = function, arguments

    def __reduce__(self) -> Any:
        return self.made


def call(name: str, *arguments: bytes) -> bytes:
    """Instructions that call a function with what the arguments push."""
    module, _, function = name.rpartition(".")
    return f"c{module}\n{function}\n".encode() + b"(" + b"".join(arguments) + b"tR"


CANARY = text("touch canary")
# A function is called only if it is one of a few: of all others some stand here.
HARMFUL = {
    "os.system": call("os.system", CANARY),
    "builtins.eval": call("builtins.eval", text("open('canary', 'w')")),
    "builtins.getattr of getattr": call("builtins.getattr", call("builtins.getattr", b"cos\nsys\n", text("modules"))),
    "builtins.bytearray": call("builtins.bytearray", integer(10**10)),
    "numpy.core.multiarray._reconstruct": call("numpy.core.multiarray._reconstruct"),
    "torch.storage._load_from_bytes": call("torch.storage._load_from_bytes", text("a")),
    "torch.nn.modules.linear.Linear": b"ctorch.nn.modules.linear\nLinear\n)\x81",
    "torch.DoubleTensor": b"ctorch\nDoubleTensor\n",
    "torch.FloatStorage.__class__": b"ctorch\nFloatStorage.__class__\n",
    "collections.defaultdict": call("collections.defaultdict", b"cos\nsystem\n"),
    "collections.OrderedDict.fromkeys": call("collections.OrderedDict.fromkeys", b"]"),
    "a name with an escape": b"c\x1b[2J\nsystem\n",
    "a name of a megabyte": b"c" + b"a" * 10**6 + b"\nsystem\n",
    "a storage called": b"ctorch\nFloatStorage\n(" + integer(10**12) + b"tR",
    "an OrderedDict of an integer": call("collections.OrderedDict", integer(3)),
    "an OrderedDict of no pairs": call("collections.OrderedDict", b"](" + text("ab") + b"e"),
    "an OrderedDict of longer pairs": call("collections.OrderedDict", b"](" + bin_files.integers([1, 2, 3, 4]) + b"e"),
    "a tensor of a text": b"ctorch._utils\n_rebuild_tensor_v2\n" + text("abc") + b"\x85R",
    "a parameter of a parameter's name": call(
        "torch._utils._rebuild_parameter", b"ctorch._utils\n_rebuild_parameter\n"
    ),
    "STACK_GLOBAL": b"\x8c\2os\x8c\6system\x93" + b"(" + CANARY + b"tR",
    "STACK_GLOBAL of what is no text": b"(" * 20_000 + b"t" * 20_000 + b"\x8c\6system\x93",
    "INST": b"(" + CANARY + b"ios\nsystem\n",
    "OBJ": b"(cos\nsystem\n" + CANARY + b"o",
    "NEWOBJ": b"cos\nsystem\n" + CANARY + b"\x85\x81",
    "NEWOBJ_EX": b"cos\nsystem\n)}\x92",
    "EXT1": b"\x82\1",
    "EXT4": b"\x84\1\0\0\0",
    "PERSID": b"Pstorage\n",
    "POP": b"N0N",
    "DUP": b"N2",
    "BYTEARRAY8": b"\x96" + struct.pack("<Q", 2**62),
    "BINBYTES8 of nothing": b"\x8e" + struct.pack("<Q", 2**63 - 1),
    "STRING": b"S'canary'\n",
    "a bad escape": b"S'\\q'\n",
    "INT of 5,000 digits": b"I" + b"9" * 5000 + b"\n",
    "BUILD of a tensor": tensor() + b"}b",
    "BUILD of a name": b"cos\nsystem\n}b",
    "a persistent id of a path": text("/etc/passwd") + b"Q",
    "a persistent id of a name": b"(" + text("storage") + b"cos\nsystem\n" + text("0") + text("cpu") + b"K\2tQ",
    "a persistent id of a function": storage().replace(
        b"ctorch\nFloatStorage\n", b"ctorch._utils\n_rebuild_parameter\n"
    ),
    "a text that is called": text("torch._utils _rebuild_parameter") + b"(tR",
    "SETITEMS on a list": b"](" + text("a") + b"Nu",
    "APPENDS on a dict": b"}(Ne",
    "half a pair": b"}(" + text("a") + b"u",
    "a key twice": b"}(" + (text("a") + b"N") * 2 + b"u",
    "a tuple as a key": b"})Ns",
    "deep tuples as a key": b"}" + b")" + b"\x85" * 100_000 + b"Ns",
    "a long integer as a key": b"}" + integer(2**61 - 1 << 8) + b"Ns",
    "nothing on the stack": b"\x85",
    "MARK without end": b"t",
    "a memo that was never put": b"h\7",
    "a memo of nothing": b"q\0",
}


def copies(of: bytes) -> bytes:
    """The same instructions over and over, each time without what they made, up to the end of a pickle."""
    return b"]" + (of + b"a") * 40_000 + b"."


PROGRAMS = {  # the whole of a pickle
    "empty": b"",
    "cut": b"\x80\x02}(X\4\0\0\0ab",
    "no STOP": b"\x80\x02}",
    "a number": b"\x80\x02K\1.",
    "a list": b"\x80\x02].",
    "no tensors": b"\x80\x02}X\1\0\0\0aK\1s.",
    "a dict that holds itself": b"\x80\x02}q\0X\5\0\0\0modelh\0s.",
    "a list that holds itself": b"\x80\x02]q\0h\0a.",
    "nested 100,000 deep": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "state_dicts 100,000 deep": b"\x80\x02" + (b"}" + text("model")) * 30_000 + b"}" + b"s" * 30_000 + b".",
    "marks": b"\x80\x02" + b"(" * 1_000_000 + b".",
    "memos": b"\x80\x02N" + b"\x94" * 10_000_000 + b".",
    "memos within the limit": b"\x80\x02N" + b"\x94" * 3_900_000 + b".",
    "texts": b"\x80\x02" + text("a" * 100) * 38_000 + b".",
    "dicts": b"\x80\x02" + b"}" * 3_900_000 + b".",
    "copies of a long list": b"\x80\x02]("
    + b"".join(b"(" + integer(i) + b"Nt" for i in range(9000))
    + b"eq\0"
    + copies(b"ccollections\nOrderedDict\n(h\0tR"),
    "copies of a list of nothing": b"\x80\x02]("
    + b"](NNe" * 9000
    + b"eq\0"
    + copies(b"ccollections\nOrderedDict\n(h\0tR"),
    "persistent ids of a long tuple": b"\x80\x02("
    + text("storage")
    + b"ctorch\nFloatStorage\n"
    + text("0")
    + b"NK\2"
    + b"N" * 100_000
    + b"tq\0"
    + copies(b"h\0Q"),
    "calls with a long tuple": b"\x80\x02("
    + storage()
    + b"K\0))"
    + b"N" * 100_000
    + b"tq\0"
    + copies(b"ctorch._utils\n_rebuild_tensor_v2\nh\0R"),
    "not UTF-8": b"\x80\x02X\2\0\0\0\xff\xff.",
    "an unknown instruction": b"\x80\x02\xff.",
    "a text that ends outside": b"\x80\x02X\xff\xff\xff\x7f.",
    "a name of an escape": state_dict(**{"\33[2J": tensor()}),
    "a name of half a pair": state_dict(**{"\ud800": tensor()}),
}
LONG = 2**63 - 1


def described(metadata: bytes) -> bytes:
    """A tensor with the seventh argument that torch calls metadata."""
    return tensor()[: -len(b"tR")] + metadata + b"tR"


TENSORS = {
    "too long": tensor((3,)),
    "beyond by its offset": tensor((2,), (1,), 1),
    "beyond by its strides": tensor((2, 2), (2, 1)),
    "a negative offset": tensor((2,), (1,), -1),
    "a negative stride": tensor((2,), (-1,), 1),
    "a negative size": tensor((-2,), (1,)),
    "a size beyond 64 bits": tensor((2**64,), (0,)),
    "a stride beyond 64 bits": tensor((1,), (2**64,)),
    "strides that overflow": tensor((2**40, 2**40), (2**30, 2**30)),
    "too few strides": tensor((2, 1), (1,)),
    "65 axes": tensor((1,) * 65, (1,) * 65),
    "none of an endless length": tensor((LONG, 0, LONG), (1, 1, 1)),
    "a bomb of stride 0": tensor((2**20, 2**20), (0, 0)),
    "a bomb of two strides": tensor((2**62,), (0,)),
    "bombs together": b"".join(tensor((2**23,), (0,)) + b"s" + text(str(i)) for i in range(9)) + tensor(),
    "another storage": tensor(stored=storage("1")),
    "a storage of texts": tensor(stored=storage().replace(b"J\2\0\0\0t", text("2") + b"t")),
    "a storage too short": tensor(stored=storage(count=1), shape=(1,)),
    "a storage too long": tensor(stored=storage(count=2**62)),
    "a storage of -2": tensor(stored=storage(count=-2)),
    "two kinds of one storage": tensor() + b"s" + text("b") + tensor(stored=storage(kind="Int")),
    "a storage of ComplexFloat": tensor(stored=storage(kind="ComplexFloat")),
    "a storage Untyped": tensor(stored=storage(kind="Untyped")),
    "a storage with a view": tensor(stored=storage(older=True).replace(b"NtQ", text("x") + b"tQ")),
    "True as a size": tensor().replace(b"(J\2\0\0\0t", b"(\x88t"),
    "a negated tensor": described(b"}" + text("neg") + b"\x88s"),
    "a conjugated tensor": described(b"}" + text("conj") + b"\x88s"),
    "a tensor of other metadata": described(b"K\1"),
    "a tensor of two metadata": described(b"NN"),
    "half a number": tensor().replace(b"(J\2\0\0\0t", b"(G?\xe0\0\0\0\0\0\0t"),
}
WHOLE = zipped(state_dict(a=tensor()), {"0": struct.pack("<2f", 1, 2)})
END = WHOLE.rindex(b"PK\5\6")
(DIRECTORY,) = struct.unpack("<I", WHOLE[END + 16 : END + 20])


def several() -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        for name in ("a/data.pkl", "b/data.pkl", "c"):
            written.writestr(name, state_dict(a=tensor()))
    return file.getvalue()


def deflated() -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("a/data.pkl", state_dict(a=tensor((2**28,), (1,), 0, storage(count=2**28))))
        written.writestr("a/data/0", bytes(2**24))
    return file.getvalue()


def entries(count: int) -> bytes:
    """A zip whose directory describes the same member over and over."""
    one = WHOLE[DIRECTORY : WHOLE.index(b"PK\1\2", DIRECTORY + 4)]
    last = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(one) * count, DIRECTORY)
    at = DIRECTORY + len(one) * count
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, at, 1)
    return WHOLE[:DIRECTORY] + one * count + last + locator + b"PK\5\6" + b"\0" * 4 + b"\xff" * 12 + b"\0\0"


def put(at: int, new: bytes) -> bytes:
    return WHOLE[:at] + new + WHOLE[at + len(new) :]


CONTAINERS = {
    "empty": b"",
    "a page of HTML": b"<!DOCTYPE html><html></html>",
    "a tar": b"state_dict\0" + bytes(500),
    "a bare pickle": pickle.dumps({"a": [1.0, 2.0]}),
    "a pickle that calls": pickle.dumps(Calls(print, "canary")),
    "only the magic": bin_files.MAGIC,
    "another protocol": stream(state_dict(a=tensor(stored=storage(older=True)))).replace(
        b"M\xe9\x03.", b"M\xe8\x03.", 1
    ),
    "a machine of big-endian numbers": stream(b"N.", facts=bin_files.FACTS.replace(b"\x88", b"\x89")),
    "no keys": stream(state_dict(a=tensor(stored=storage(older=True))), {}),
    "a count that lies": stream(state_dict(a=tensor(stored=storage(older=True))), {"0": (3, bytes(8))}),
    "a negative count": stream(state_dict(a=tensor(stored=storage(older=True))), {"0": (-2, bytes(8))}),
    "a storage cut short": stream(state_dict(a=tensor(stored=storage(older=True))), {"0": (2, bytes(7))}),
    "bytes after the end": stream(state_dict(a=tensor(stored=storage(older=True)))) + b"\0",
    "a key that nobody uses": stream(
        state_dict(a=tensor(stored=storage(older=True))), {"0": (2, bytes(8)), "9": (0, b"")}
    ),
    "a call in the facts": stream(b"N.", facts=b"\x80\x02" + HARMFUL["os.system"] + b"."),
    "a call in the keys": bin_files.MAGIC
    + b"\x80\x02M\xe9\x03."
    + bin_files.FACTS
    + b"N."
    + HARMFUL["os.system"]
    + b".",
    "another order of bytes": zipped(state_dict(a=tensor()), order="middle"),
    "an endless order of bytes": zipped(state_dict(a=tensor()), order="little" * 10**6),
    "no data.pkl": WHOLE.replace(b"data.pkl", b"data.pkm"),
    "a member twice": several().replace(b"b/data.pkl", b"a/data.pkl"),
    "two roots": several(),
    "compressed": deflated(),
    "encrypted": put(DIRECTORY + 8, b"\1"),
    "sizes that differ": put(DIRECTORY + 20, b"\1\0\0\0"),
    "a member beyond the end": put(DIRECTORY + 20, struct.pack("<II", 10**6, 10**6)),
    "a member elsewhere": put(DIRECTORY + 42, struct.pack("<I", 10**6)),
    "a member within another": put(DIRECTORY + 42, struct.pack("<I", 40)),
    "a local name that differs": put(30, b"b"),
    "sizes elsewhere, nowhere": put(DIRECTORY + 20, b"\xff" * 8),
    "a directory elsewhere": put(END + 16, struct.pack("<I", 10**6)),
    "a directory that is none": put(END + 16, struct.pack("<I", 0)),
    "too many members": put(END + 10, b"\xff\xff"),
    "a comment": WHOLE[:-2] + b"\3\0abc",
    "cut": WHOLE[:-1],
    "cut in the middle": WHOLE[:100],
    "millions of members": entries(MEMBER_LIMIT + 1),
    "the same member often": entries(1000),
    "a pickle too long": zipped(b"\x80\x02" + b"\x95" + bytes(8) * PICKLE_LIMIT + b"."),
}
HOSTILE = {f"{kind} in a zip": zipped(b"\x80\x02" + code + b".") for kind, code in HARMFUL.items()}
# What reads the instructions does not know where they are from: of these some are tried elsewhere, too.
HOSTILE |= {f"{kind} in a stream": stream(b"\x80\x02" + HARMFUL[kind] + b".") for kind in [*HARMFUL][::3]}
HOSTILE |= {f"{kind} as a value": zipped(state_dict(a=tensor(), b=HARMFUL[kind])) for kind in [*HARMFUL][1::3]}
HOSTILE |= {f"a program: {kind}": zipped(code) for kind, code in PROGRAMS.items()}
HOSTILE |= {f"a program in a stream: {kind}": stream(PROGRAMS[kind]) for kind in [*PROGRAMS][::3]}
HOSTILE |= {f"a tensor: {kind}": zipped(state_dict(a=code)) for kind, code in TENSORS.items()}
HOSTILE |= {f"a file: {kind}": data for kind, data in CONTAINERS.items()}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    began = time.process_time()
    with pytest.raises(BertcliError, match=r"pytorch_model\.bin") as caught:
        opened(tmp_path, HOSTILE[kind])
    assert time.process_time() - began < 5
    message = str(caught.value)
    assert message.isprintable()  # one line, and nothing that a terminal would obey
    assert len(message) < 1000
    assert [path.name for path in tmp_path.iterdir()] == [FILE]  # no canary
    assert capfd.readouterr() == ("", "")


def test_what_a_file_asks_for_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / FILE).write_bytes(zipped(state_dict(a=tensor(), b=HARMFUL["os.system"])))
    assert run("encode", "-m", folder, "a").error == (
        f"Error: {folder / FILE} asks for 'os.system', which no state dict does: it is not a usable state dict of "
        "PyTorch, fetch it again or use another."
    )


@pytest.mark.parametrize("kind", ["memos within the limit", "texts", "marks"])
def test_a_hostile_program_fills_no_memory(kind: str) -> None:
    data = zipped(PROGRAMS[kind])
    tracemalloc.start()
    try:
        with pytest.raises(Refused):
            read_state_dict(memoryview(data))
        assert tracemalloc.get_traced_memory()[1] < 120_000_000
    finally:
        tracemalloc.stop()


# --------------------------------------------------------------------------------------------------------- any damage

SOUND = [RECORDED[kind].tobytes() for kind in ("training-zip-2", "training-stream-2", "module-zip-4", "tied-stream-2")]


def survives(data: bytes) -> bool:
    """Whether the bytes are read; then no tensor has a number that is not in them."""
    try:
        arrays = read_state_dict(memoryview(data))
    except Refused:
        return False
    whole = np.frombuffer(data, np.uint8)
    for _, array in arrays.values():
        low, high = np.lib.array_utils.byte_bounds(array)
        first, last = np.lib.array_utils.byte_bounds(whole)
        assert array.size == 0 or first <= low <= high <= last
    return True


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    which=st.sampled_from(range(len(SOUND))),
    edits=st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=3), st.sampled_from("oid")), max_size=4),
    size=st.just(1.0) | st.floats(0, 1),
)
@example(which=0, edits=[], size=1.0)
def test_any_damage_is_read_or_refused(which: int, edits: list[tuple[float, bytes, str]], size: float) -> None:
    data = SOUND[which]
    for place, new, how in edits:
        at = int(place * len(data))
        data = data[:at] + (b"" if how == "d" else new) + data[at + (0 if how == "i" else len(new)) :]
    assert survives(data[: int(size * len(data))]) or edits or size < 1
