"""A checkpoint folder's files, written by hand: safetensors, shards and their index, sentence-transformers' JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from helpers.json_files import write_json
from numpy.typing import NDArray

Tensors = dict[str, NDArray[Any]]


class Dense(NamedTuple):
    """A Dense module of a sentence-transformers folder; `activation` as the class is named in torch."""

    out_features: int
    bias: bool = True
    activation: str = "torch.nn.modules.activation.Tanh"


class Sentence(NamedTuple):
    """What a sentence-transformers folder says besides the model.

    `style`: "legacy" writes the pooling_mode_*_tokens flags, "new" the pooling_mode key (a string, of several a list).
    `normalize` adds the entry to modules.json; its folder is made only when `normalize_folder` says so.
    """

    pooling: tuple[str, ...] = ("mean",)
    style: str = "legacy"
    normalize: bool = False
    normalize_folder: bool = False
    max_seq_length: int | None = None
    do_lower_case: bool = False
    dense: tuple[Dense, ...] = ()


def narrow(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Values rounded to nearest even as `dtype` stores them; BF16 as the upper halves of float32, in uint16."""
    if dtype != "BF16":
        return values.astype({"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64}[dtype])
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def write_safetensors(path: Path, tensors: Mapping[str, tuple[str, NDArray[Any]]]) -> None:
    """One safetensors file of (dtype, values) by name: 8 bytes of header length, JSON header, bytes without holes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    blocks, offset = [], 0
    for name, (dtype, values) in sorted(tensors.items(), key=lambda item: (-item[1][1].itemsize, item[0])):
        blocks.append(values.astype(values.dtype.newbyteorder("<")).tobytes())
        header[name] = {
            "dtype": dtype,
            "shape": list(values.shape),
            "data_offsets": [offset, offset + len(blocks[-1])],
        }
        offset += len(blocks[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(blocks))


def write_weights(folder: Path, stored: Mapping[str, tuple[str, NDArray[Any]]], shards: int) -> None:
    """model.safetensors, or the tensors dealt over `shards` files with their index."""
    if not shards:
        write_safetensors(folder / "model.safetensors", stored)
        return
    names = [f"model-{i + 1:05d}-of-{shards:05d}.safetensors" for i in range(shards)]
    index = {name: names[i % shards] for i, name in enumerate(stored)}
    for file in names:
        write_safetensors(folder / file, {name: tensor for name, tensor in stored.items() if index[name] == file})
    size = sum(values.nbytes for _, values in stored.values())
    document = {"metadata": {"total_size": size}, "weight_map": index}
    write_json(folder / "model.safetensors.index.json", document)


def write_modules(folder: Path, kinds: Mapping[str, str]) -> None:
    """modules.json: the class of each module by its path, which of the network itself is empty."""
    modules = [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (path, kind) in enumerate(kinds.items())]
    write_json(folder / "modules.json", modules)


def write_sentence(folder: Path, sentence: Sentence, hidden_size: int, layers: Sequence[Tensors]) -> None:
    """modules.json, sentence_bert_config.json and the modules' folders; `layers` are the tensors of the Dense ones."""
    kinds: dict[str, str] = {}

    def module(kind: str, config: Mapping[str, Any] | None) -> Path:
        path = f"{len(kinds)}_{kind}" if kinds else ""
        kinds[path] = f"sentence_transformers.models.{kind}"
        if config is not None:
            (folder / path).mkdir(exist_ok=True)
            name = "config.json" if path else "sentence_bert_config.json"
            write_json(folder / path / name, config)
        return folder / path

    module("Transformer", {"max_seq_length": sentence.max_seq_length, "do_lower_case": sentence.do_lower_case})
    pooling: dict[str, Any] = {"word_embedding_dimension": hidden_size}
    if sentence.style == "legacy":
        suffix = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken",
                  "mean_sqrt_len": "mean_sqrt_len_tokens", "weightedmean": "weightedmean_tokens"}  # fmt: skip
        pooling |= {f"pooling_mode_{suffix[mode]}": mode in sentence.pooling for mode in suffix}
    else:
        modes = [{"mean_sqrt_len": "mean_sqrt_len_tokens"}.get(mode, mode) for mode in sentence.pooling]
        pooling = {"embedding_dimension": hidden_size, "pooling_mode": modes[0] if len(modes) == 1 else modes,
                   "include_prompt": True}  # fmt: skip
    module("Pooling", pooling)
    inputs = hidden_size * len(sentence.pooling)
    for dense, tensors in zip(sentence.dense, layers, strict=True):
        path = module("Dense", {"in_features": inputs, "out_features": dense.out_features, "bias": dense.bias,
                                "activation_function": dense.activation})  # fmt: skip
        stored = {name: ("F32", narrow(values, "F32")) for name, values in tensors.items()}
        write_safetensors(path / "model.safetensors", stored)
        inputs = dense.out_features
    if sentence.normalize:
        module("Normalize", {} if sentence.normalize_folder else None)
    write_modules(folder, kinds)
