"""Small random BERT checkpoints of every kind, the same on every machine, from NumPy alone.

Every weight is a function of (seed, tensor's name, index): 64 hashed bits (splitmix64 over a counter) are cut into four
16-bit integers whose sum has a bell shape, and one product in float64 scales it. Integers and single IEEE operations
only: no distribution of `numpy.random`, no transcendental function, so no version or platform changes a bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from vocabulary import pieces, write_tokenizer_json, write_vocabulary

Tensors = dict[str, NDArray[Any]]

HEADS = ("model", "mlm", "pretraining", "nsp", "classifier")
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "silu", "tanh")
DTYPES = ("F32", "F16", "BF16", "F64")
NAMINGS = ("plain", "prefixed", "gamma_beta", "plain_gamma_beta")  # bert. in front or not; LayerNorm.weight or .gamma

ARCHITECTURES = {
    "model": "BertModel",
    "mlm": "BertForMaskedLM",
    "pretraining": "BertForPreTraining",
    "nsp": "BertForNextSentencePrediction",
    "classifier": "BertForSequenceClassification",
}
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
}


class Dense(NamedTuple):
    """A Dense module of a sentence-transformers folder; `activation` as the class is named in torch."""

    out_features: int
    bias: bool = True
    activation: str = "torch.nn.modules.activation.Tanh"


class Sentence(NamedTuple):
    """What a sentence-transformers folder says besides the model.

    `style`: "legacy" writes the pooling_mode_*_tokens flags, "new" the pooling_mode key (a string, or a list of several).
    `normalize` adds the entry to modules.json; its folder is made only when `normalize_folder` says so.
    """

    pooling: tuple[str, ...] = ("mean",)
    style: str = "legacy"
    normalize: bool = False
    normalize_folder: bool = False
    max_seq_length: int | None = None
    do_lower_case: bool = False
    dense: tuple[Dense, ...] = ()


def bell(name: str, shape: tuple[int, ...], seed: int = 0) -> NDArray[np.float64]:
    """Numbers of mean 0 and deviation 1 within ±3.47: the sum of four uniform 16-bit integers, scaled."""
    key = int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "little")
    count = int(np.prod(shape, dtype=np.int64))
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    state ^= state >> np.uint64(31)
    total = np.zeros(count, np.int64)
    for shift in (0, 16, 32, 48):
        total += ((state >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64)
    return ((total - 131070).astype(np.float64) * 2.642888e-05).reshape(shape)  # 1 / (2¹⁶ · sqrt(4 / 12))


def shapes(config: Mapping[str, Any], head: str, pooler: bool, num_labels: int) -> dict[str, tuple[int, ...]]:
    """Tensor names, as today's transformers writes them with the `bert.` prefix, and their shapes."""
    hidden, feed, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    found: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = (outputs, inputs), (outputs,)

    def norm(name: str) -> None:
        found[f"{name}.LayerNorm.weight"] = found[f"{name}.LayerNorm.bias"] = (hidden,)

    for kind, key in (("word", "vocab_size"), ("position", "max_position_embeddings"), ("token_type", "type_vocab_size")):
        found[f"bert.embeddings.{kind}_embeddings.weight"] = (config[key], hidden)
    norm("bert.embeddings")
    for layer in (f"bert.encoder.layer.{i}" for i in range(config["num_hidden_layers"])):
        for part in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{part}", hidden, hidden)
        linear(f"{layer}.attention.output.dense", hidden, hidden)
        norm(f"{layer}.attention.output")
        linear(f"{layer}.intermediate.dense", feed, hidden)
        linear(f"{layer}.output.dense", hidden, feed)
        norm(f"{layer}.output")
    if pooler:
        linear("bert.pooler.dense", hidden, hidden)
    if head in ("mlm", "pretraining"):
        linear("cls.predictions.transform.dense", hidden, hidden)
        norm("cls.predictions.transform")
        linear("cls.predictions.decoder", vocab, hidden)
        found["cls.predictions.bias"] = (vocab,)
    if head in ("pretraining", "nsp"):
        linear("cls.seq_relationship", 2, hidden)
    if head == "classifier":
        linear("classifier", num_labels, hidden)
    return found


def weights(shape_of: Mapping[str, tuple[int, ...]], seed: int = 0) -> Tensors:
    """Float64 values of a trained network's scale: norms off 1, biases off 0, attention far from uniform."""
    found: Tensors = {}
    for name, shape in shape_of.items():
        values = bell(name, shape, seed)
        if name.endswith("LayerNorm.weight"):
            values = 1 + values * 0.15
        elif len(shape) == 1:
            values = values * 0.2
        elif "_embeddings" in name or "decoder" in name:
            values = values * (2.5 / np.sqrt(shape[1]))
        else:
            values = values * (1.25 / np.sqrt(shape[1]))
        found[name] = values
    return found


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


def _stored(tensors: Tensors, *, naming: str, tied: str, decoder_bias: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """The tensors a checkpoint of that habit holds, under the names it holds them."""
    decoder, bias = "cls.predictions.decoder", "cls.predictions.bias"
    for name, values in tensors.items():
        if name == f"{decoder}.weight" and tied == "stored":
            values = tensors["bert.embeddings.word_embeddings.weight"]
        if name == f"{decoder}.bias" and decoder_bias != "differ":
            values = tensors[bias]
        if name == f"{decoder}.weight" and tied == "absent" or name == f"{decoder}.bias" and decoder_bias == "predictions":
            continue
        if name == bias and decoder_bias == "decoder":
            continue
        if naming.startswith("plain"):
            name = name.removeprefix("bert.")
        if naming.endswith("gamma_beta"):
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        yield name, values


def make(
    folder: str | Path,
    *,
    head: str = "model",
    hidden_act: str = "gelu",
    dtype: str = "F32",
    naming: str = "prefixed",
    tied: str = "absent",
    decoder_bias: str = "predictions",
    pooler: bool | None = None,
    position_ids_buffer: bool = False,
    shards: int = 0,
    num_labels: int = 2,
    id2label: Mapping[int, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    config: Mapping[str, Any] | None = None,
    vocabulary: Sequence[str] | None = None,
    tokenizer: str = "vocab",
    lower_case: bool = True,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
    model_max_length: int | None = None,
    baked: int | None = None,
    sentence: Sentence | None = None,
    seed: int = 0,
) -> Path:
    """A checkpoint folder, made if need be; returns its path.

    tied: "absent" (no decoder weight), "stored" (a copy of the embeddings), "untied" (stored, another matrix).
    decoder_bias: under "predictions", "decoder", "both" names, or both and they "differ".
    pooler: None follows the architecture (all but mlm). shards: number of files, 0 for one without an index.
    config: keys put over config.json's, or taken out where the value is None. sizes: over SIZES.
    tokenizer: "vocab" (vocab.txt and tokenizer_config.json), "json" (tokenizer.json and tokenizer_config.json), "both"
    or "none". baked: a truncation and padding length inside tokenizer.json.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = pieces() if vocabulary is None else vocabulary
    settings: dict[str, Any] = {"vocab_size": len(vocabulary)} | SIZES | dict(sizes or {})
    labels = {"id2label": {str(i): label for i, label in id2label.items()}} if id2label else {"num_labels": num_labels}
    num_labels = len(id2label) if id2label else num_labels
    written = {"model_type": "bert", "architectures": [ARCHITECTURES[head]], "hidden_act": hidden_act} | settings
    written |= {"layer_norm_eps": 1e-12, "pad_token_id": 0} | (labels if head == "classifier" else {})
    written = {key: value for key, value in (written | dict(config or {})).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")

    tensors = weights(shapes(settings, head, head != "mlm" if pooler is None else pooler, num_labels), seed)
    stored = {name: (dtype, narrow(values, dtype)) for name, values in
              _stored(tensors, naming=naming, tied=tied, decoder_bias=decoder_bias)}  # fmt: skip
    if position_ids_buffer:
        name = "embeddings.position_ids" if naming.startswith("plain") else "bert.embeddings.position_ids"
        stored[name] = ("I64", np.arange(settings["max_position_embeddings"], dtype=np.int64)[None])
    _write_weights(folder, stored, shards)

    tokenizer_config = {"do_lower_case": lower_case, "strip_accents": strip_accents, "tokenizer_class": "BertTokenizer",
                        "tokenize_chinese_chars": tokenize_chinese_chars, "model_max_length": model_max_length}  # fmt: skip
    if tokenizer != "none":
        kept = {key: value for key, value in tokenizer_config.items() if value is not None}
        (folder / "tokenizer_config.json").write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
    if tokenizer in ("vocab", "both"):
        write_vocabulary(folder, vocabulary)
    if tokenizer in ("json", "both"):
        write_tokenizer_json(folder, vocabulary, lower_case=lower_case, strip_accents=strip_accents,
                             chinese=tokenize_chinese_chars, baked=baked)  # fmt: skip
    if sentence is not None:
        _write_sentence(folder, sentence, settings["hidden_size"], seed)
    return folder


def _write_weights(folder: Path, stored: Mapping[str, tuple[str, NDArray[Any]]], shards: int) -> None:
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
    (folder / "model.safetensors.index.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _write_sentence(folder: Path, sentence: Sentence, hidden_size: int, seed: int) -> None:
    """modules.json, sentence_bert_config.json and the folders of the modules."""
    modules: list[dict[str, Any]] = []

    def module(kind: str, config: Mapping[str, Any] | None) -> Path:
        path = f"{len(modules)}_{kind}" if modules else ""
        modules.append({"idx": len(modules), "name": str(len(modules)), "path": path,
                        "type": f"sentence_transformers.models.{kind}"})  # fmt: skip
        if config is not None:
            (folder / path).mkdir(exist_ok=True)
            name = "config.json" if path else "sentence_bert_config.json"
            (folder / path / name).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        return folder / path

    module("Transformer", {"max_seq_length": sentence.max_seq_length, "do_lower_case": sentence.do_lower_case})
    pooling: dict[str, Any] = {"word_embedding_dimension": hidden_size}
    if sentence.style == "legacy":
        suffix = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "mean_sqrt_len": "mean_sqrt_len_tokens",
                  "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}  # fmt: skip
        pooling |= {f"pooling_mode_{suffix[mode]}": mode in sentence.pooling for mode in suffix}
    else:
        modes = [{"mean_sqrt_len": "mean_sqrt_len_tokens"}.get(mode, mode) for mode in sentence.pooling]
        pooling = {"embedding_dimension": hidden_size, "pooling_mode": modes[0] if len(modes) == 1 else modes,
                   "include_prompt": True}  # fmt: skip
    module("Pooling", pooling)
    inputs = hidden_size * len(sentence.pooling)
    for number, dense in enumerate(sentence.dense):
        path = module("Dense", {"in_features": inputs, "out_features": dense.out_features, "bias": dense.bias,
                                "activation_function": dense.activation})  # fmt: skip
        shape_of: dict[str, tuple[int, ...]] = {"linear.weight": (dense.out_features, inputs)}
        shape_of |= {"linear.bias": (dense.out_features,)} if dense.bias else {}
        tensors = weights({f"dense.{number}.{name}": shape for name, shape in shape_of.items()}, seed)
        write_safetensors(path / "model.safetensors", {name.removeprefix(f"dense.{number}."): ("F32", narrow(v, "F32"))
                                                       for name, v in tensors.items()})  # fmt: skip
        inputs = dense.out_features
    if sentence.normalize:
        module("Normalize", {} if sentence.normalize_folder else None)
    (folder / "modules.json").write_text(json.dumps(modules, indent=2) + "\n", encoding="utf-8")
