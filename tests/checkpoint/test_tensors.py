"""Mapped safetensors: every dtype and layout read right, and no damaged or hostile file opened."""

import json
import os
import shutil
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.checkpoint_files import narrow, write_safetensors
from helpers.checkpoints import DTYPES, make
from helpers.json_files import read_json, write_json

from bertcli import load
from bertcli.errors import BertcliError
from bertcli.folder.files import INDEX_FILE, SINGLE_FILE, Folder
from bertcli.weights.tensors import StoredTensor, open_tensors

MATRIX = np.array([[1.5, -2.25, 3e-5], [0.0, -0.0, 65504.0]])


def file_of(header: Any, data: bytes = b"") -> bytes:
    """A safetensors file with that header: an object to be written as JSON, or the bytes themselves."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def twice(one: Any, other: Any) -> bytes:
    """A header that describes tensor `a` twice."""
    return f'{{"a": {json.dumps(one)}, "a": {json.dumps(other)}}}'.encode()


def opened(folder: Path, content: bytes) -> dict[str, StoredTensor]:
    (folder / SINGLE_FILE).write_bytes(content)
    return open_tensors(Folder(folder))


# ------------------------------------------------------------------------------------------------------ what is read


@pytest.mark.parametrize("dtype", DTYPES)
def test_float32_is_the_stored_number(tmp_path: Path, dtype: str) -> None:
    stored = narrow(MATRIX, dtype)
    write_safetensors(tmp_path / SINGLE_FILE, {"a.weight": (dtype, stored), "scalar": (dtype, stored[0, 0])})
    tensors = open_tensors(Folder(tmp_path))
    tensor = tensors["a.weight"]
    assert (tensor.name, tensor.dtype, tensor.shape) == ("a.weight", dtype, (2, 3))
    assert tensor.nbytes == stored.nbytes
    assert tensor.file == tmp_path / SINGLE_FILE
    values = tensor.float32()
    exact = stored.astype(np.float32) if dtype != "BF16" else (stored.astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(values.view(np.uint32), exact.view(np.uint32))
    assert values.dtype == np.float32
    assert values.flags.c_contiguous
    assert values.flags.aligned
    assert tensors["scalar"].float32().shape == ()


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_can_be_written(tmp_path: Path, dtype: str) -> None:
    write_safetensors(tmp_path / SINGLE_FILE, {"a": (dtype, narrow(MATRIX, dtype))})
    tensor = open_tensors(Folder(tmp_path))["a"]
    for array in (tensor.array, tensor.float32()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE"):
        tensor.array.setflags(write=True)


def test_equal_tensors_are_the_same_numbers_in_any_dtype(tmp_path: Path) -> None:
    values = {"other": [[1.5, -2.25], [0, 1]], "flat": [1.5, -2.25, 0, 0], "one": 3, "none": np.zeros((0, 2))}
    stored = {name: ("F32", np.array(value, np.float32)) for name, value in values.items()}
    stored |= {dtype: (dtype, narrow(MATRIX[:, :2], dtype)) for dtype in ("F32", "F16")}
    stored["three"] = ("F64", np.array(3.0))
    write_safetensors(tmp_path / SINGLE_FILE, stored)
    tensors = open_tensors(Folder(tmp_path))
    assert tensors["F32"].equals(tensors["F16"])
    assert tensors["one"].equals(tensors["three"])
    assert tensors["none"].equals(tensors["none"])
    for other in ("other", "flat", "none", "one"):
        assert not tensors["F32"].equals(tensors[other])


def test_comparing_tensors_takes_no_memory_for_the_whole(tmp_path: Path) -> None:
    numbers = np.zeros(6_000_000, np.float16)
    write_safetensors(tmp_path / SINGLE_FILE, {"a": ("F16", numbers), "b": ("F16", numbers)})
    tensors = open_tensors(Folder(tmp_path))
    tracemalloc.start()
    assert tensors["a"].equals(tensors["b"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12_000_000


def test_every_bfloat16_and_float16(tmp_path: Path) -> None:
    bits = np.arange(2**16, dtype=np.uint16)
    write_safetensors(tmp_path / SINGLE_FILE, {"b": ("BF16", bits), "h": ("F16", bits.view(np.float16))})
    tensors = open_tensors(Folder(tmp_path))
    np.testing.assert_array_equal(tensors["b"].float32().view(np.uint32), bits.astype(np.uint32) << 16)
    half = tensors["h"].float32()
    fraction, exponent = (bits & 1023).astype(np.float64), (bits >> 10 & 31).astype(np.int64)
    size = np.where(exponent == 0, np.ldexp(fraction, -24), np.ldexp(fraction + 1024, exponent - 25))
    size = np.where(exponent == 31, np.where(fraction == 0, np.inf, np.nan), size)
    np.testing.assert_array_equal(half, np.where(bits >> 15, -size, size).astype(np.float32))


def test_a_double_beyond_float32_is_infinite_not_a_warning(tmp_path: Path) -> None:
    write_safetensors(tmp_path / SINGLE_FILE, {"a": ("F64", np.array([1e300, -1e300, 1 / 3]))})
    assert open_tensors(Folder(tmp_path))["a"].float32().tolist() == [np.inf, -np.inf, np.float32(1 / 3)]


def test_float32_is_the_map_itself_and_a_crooked_file_is_copied_straight(tmp_path: Path) -> None:
    write_safetensors(tmp_path / SINGLE_FILE, {"a": ("F32", MATRIX.astype(np.float32))})
    tensor = open_tensors(Folder(tmp_path))["a"]
    assert np.shares_memory(tensor.array, tensor.float32())
    header = json.dumps({"a": entry(shape=(2,))}).encode()
    header += b" " * (-len(header) % 8 + 3)  # so that the data begins at no multiple of 4
    crooked = opened(tmp_path, file_of(header, struct.pack("<2f", 1, 2)))["a"]
    assert not crooked.array.flags.aligned
    assert crooked.float32().flags.aligned
    assert crooked.float32().tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["I64", "BOOL", "U8", "F8_E4M3", "U16"])
def test_other_types_are_listed_but_are_no_weights(tmp_path: Path, dtype: str) -> None:
    size = {"I64": 8, "U16": 2}.get(dtype, 1)
    tensor = opened(tmp_path, file_of({"ids": entry(dtype, [3], [0, 3 * size])}, b"\1" * 3 * size))["ids"]
    assert (tensor.dtype, tensor.shape, tensor.nbytes) == (dtype, (3,), 3 * size)
    with pytest.raises(BertcliError, match=f"'ids' in .* is stored as {dtype}"):
        tensor.float32()


def test_empty_tensors_and_files_without_any(tmp_path: Path) -> None:
    header = {"none": entry(shape=[0, 5], offsets=[0, 0]), "huge": entry(shape=[2**40, 0, 2**10], offsets=[0, 0])}
    tensors = opened(tmp_path, file_of(header))
    assert tensors["none"].float32().shape == (0, 5)
    assert tensors["huge"].float32().shape == (2**40, 0, 2**10)
    assert opened(tmp_path, file_of({"__metadata__": {"format": "pt"}})) == {}


@pytest.mark.large
def test_opening_440_megabytes_takes_no_memory(tmp_path: Path) -> None:
    rows = 110_000
    header = file_of({"a": entry(shape=[rows, 1000], offsets=[0, rows * 4000])})
    with (tmp_path / SINGLE_FILE).open("wb") as file:
        file.write(header)
        file.truncate(len(header) + rows * 4000)  # a hole: takes no disk
    tracemalloc.start()
    tensor = open_tensors(Folder(tmp_path))["a"]
    assert tensor.float32()[-1, -1] == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert tensor.nbytes == 440_000_000
    assert peak < 1_000_000


# ------------------------------------------------------------------------------------------------------------ shards


def test_shards_are_one_model(tmp_path: Path) -> None:
    whole, parts = make(tmp_path / "1"), make(tmp_path / "2", shards=3)
    expected, tensors = open_tensors(Folder(whole)), open_tensors(Folder(parts))
    assert set(tensors) == set(expected)
    assert len({tensor.file.name for tensor in tensors.values()}) == 3
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(tensor.array, expected[name].array)


def test_shards_may_be_links_as_in_the_hub_cache(tmp_path: Path) -> None:
    folder = make(tmp_path / "snapshot", shards=2)
    for number, shard in enumerate(sorted(folder.glob("*.safetensors"))):
        shard.rename(tmp_path / f"blob{number}")
        shard.symlink_to(Path("..") / f"blob{number}")
    assert open_tensors(Folder(folder))
    (tmp_path / "blob0").unlink()
    with pytest.raises(BertcliError, match=r"00001-of-00002.safetensors is a link to a file that no longer exists"):
        open_tensors(Folder(folder))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path, shards=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(BertcliError, match=r"lacks the shard model-00002-of-00003.safetensors"):
        open_tensors(Folder(folder))


def test_a_tensor_that_its_shard_lacks_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path, shards=2)
    index = read_json(folder / INDEX_FILE)
    index["weight_map"]["ghost"] = "model-00001-of-00002.safetensors"
    write_json(folder / INDEX_FILE, index)
    with pytest.raises(BertcliError, match=r"model-00001-of-00002.safetensors lacks tensor 'ghost'"):
        open_tensors(Folder(folder))


SHARD_NAMES = [
    "../x.safetensors",
    "/etc/x.safetensors",
    "a/x.safetensors",
    "a\\x.safetensors",
    "..",
    "",
    "x.bin",
    7,
    None,
]


@pytest.mark.parametrize("name", [*SHARD_NAMES, "x\0.safetensors", "C:x.safetensors"])
def test_an_index_stays_in_its_folder(tmp_path: Path, name: Any) -> None:
    write_json(tmp_path / INDEX_FILE, {"weight_map": {"a": name}})
    with pytest.raises(BertcliError, match=r"places tensor 'a' in .* is not a .safetensors file in the same folder"):
        open_tensors(Folder(tmp_path))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"weight_map": []}', '{"weight_map": {}, "weight_map": {}}'])
def test_a_damaged_index_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / INDEX_FILE).write_text(text)
    with pytest.raises(BertcliError, match=INDEX_FILE):
        open_tensors(Folder(tmp_path))


# ------------------------------------------------------------------------------------------------- files not to be read


def test_a_folder_without_weights(tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match=r"holds no weights: there is neither model.safetensors nor pytorch_model"):
        open_tensors(Folder(tmp_path))
    with pytest.raises(BertcliError, match=r"has no config.json and no tokenizer: give the folder of a model"):
        load(tmp_path)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "tokenizer.json").write_text("{}")
    with pytest.raises(BertcliError, match=r"has no config.json: give the folder of a model"):
        load(tmp_path)
    shutil.rmtree(tmp_path / "onnx")
    folder = make(tmp_path)
    (folder / SINGLE_FILE).unlink()
    with pytest.raises(BertcliError, match="has no weights: give the folder of a model"):
        load(folder)
    (folder / "vocab.txt").unlink()
    with pytest.raises(BertcliError, match="has no weights and no tokenizer: give the folder of a model"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tf_model.h5", "has its weights for TensorFlow only"),
        ("flax_model.msgpack", "has its weights for Flax only"),
        ("onnx/model.onnx", "has its weights as an ONNX graph only"),
        ("pytorch_adapter.bin", "is an adapter of the adapters library, not a whole model"),
        ("router_config.json", "is a Router of sentence-transformers"),
    ],
)
def test_what_else_a_folder_is_is_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    with pytest.raises(BertcliError, match=rf"{message}.* \({name}\), which bertcli does not read"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_pointer_of_git_lfs_is_named(tmp_path: Path, name: str) -> None:
    folder = make(tmp_path, tokenizer="json")
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 133466304\n")
    with pytest.raises(BertcliError, match=rf"{name} is a Git LFS pointer, not the file: run `git lfs pull`"):
        load(folder)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / SINGLE_FILE
    path.mkdir()
    with pytest.raises(BertcliError, match="is not a file"):
        open_tensors(Folder(tmp_path))
    path.rmdir()
    os.mkfifo(path)  # opening it would wait for ever
    with pytest.raises(BertcliError, match="is not a file"):
        open_tensors(Folder(tmp_path))
    path.unlink()
    path.symlink_to("gone")
    with pytest.raises(BertcliError, match="is a link to a file that no longer exists"):
        open_tensors(Folder(tmp_path))


def test_a_forbidden_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path)

    def refuse(path: Path, mode: str) -> None:  # by hand: the superuser may read everything
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(BertcliError, match=r"model.safetensors cannot be read: Permission denied\."):
        open_tensors(Folder(tmp_path))


# ---------------------------------------------------------------------------------------------------------- the header

DATA = bytes(8)
HOSTILE = {
    "empty": b"",
    "petabyte": struct.pack("<Q", 10**15) + b"{}",
    "deep": file_of(b'{"a":' + b"[" * 200_000),
    "long number": file_of(b'{"a":' + b"9" * 5000 + b"}"),
    "twice": file_of(twice(entry(), entry(offsets=[8, 16])), bytes(16)),
    "surrogate": file_of(b'{"\\ud800": {}}'),
    "escape": file_of({"\33[2J": entry()}, DATA),
    "escape at a gap": file_of({"\33[2J": entry(offsets=[8, 16])}, bytes(16)),
    "four bits": file_of({"a": entry("F4", [16])}, DATA),
    "shape negative": file_of({"a": entry(shape=[-1, -2])}, DATA),
    "shape too long for an array": file_of({"a": entry(shape=[2**62, 0, 4], offsets=[0, 0])}),
    "rank": file_of({"a": entry(shape=[1] * 65 + [2])}, DATA),
    "backwards": file_of({"a": entry(offsets=[8, 0])}, DATA),
    "truncated": file_of({"a": entry()}, DATA[:-1]),
    "gap": file_of({"a": entry(), "b": entry(offsets=[12, 20])}, bytes(20)),
    "overlap": file_of({"a": entry(), "b": entry(offsets=[4, 12])}, bytes(12)),
}
OUR_REASONS = {
    "petabyte": "claims a header of 1,000,000,000,000,000 bytes, but at most 10,000,000 are allowed",
    "escape": "whose name cannot be printed",
    "four bits": "of the dtype F4",
    "shape too long for an array": "of the impossible shape",
    "rank": "of the impossible shape",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(tmp_path: Path, kind: str) -> None:
    with pytest.raises(
        BertcliError, match=r"model\.safetensors.*( is not a usable safetensors file|use another model)"
    ) as caught:
        opened(tmp_path, HOSTILE[kind])
    assert OUR_REASONS.get(kind, "") in str(caught.value)
    assert str(caught.value).isprintable()  # one line, and nothing that a terminal would obey
    assert len(str(caught.value)) < 1000


def test_a_tensor_described_twice_alike_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BertcliError, match="the key 'a' occurs twice"):
        opened(tmp_path, file_of(twice(entry(), entry()), DATA))


def test_a_header_that_is_there_is_not_parsed_beyond_its_limit(tmp_path: Path) -> None:
    """Brackets by the million would fill forty times their own room."""
    text = b'{"a":[' + b"[]," * 3_400_000 + b"[]]}"
    (tmp_path / SINGLE_FILE).write_bytes(struct.pack("<Q", len(text)) + text)
    tracemalloc.start()
    try:
        with pytest.raises(BertcliError, match="at most 10,000,000 are allowed"):
            open_tensors(Folder(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < len(text)
    finally:
        tracemalloc.stop()


def test_a_long_name_does_not_flood_the_message(tmp_path: Path) -> None:
    with pytest.raises(BertcliError) as caught:
        opened(tmp_path, file_of({"a" * 10**6: entry("?")}, DATA))
    assert len(str(caught.value)) < 1000
