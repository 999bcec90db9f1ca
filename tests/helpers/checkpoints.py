"""Small random BERT checkpoints of every kind, the same on every machine, from NumPy alone.

Every weight is a function of (seed, tensor's name, index): 64 hashed bits (splitmix64 over a counter) are cut into four
16-bit integers whose sum has a bell shape, and one product in float64 scales it. Integers and single IEEE operations
only: no distribution of `numpy.random`, no transcendental function, so no version or platform changes a bit.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from helpers.checkpoint_files import Dense as Dense
from helpers.checkpoint_files import Sentence as Sentence
from helpers.checkpoint_files import Tensors, narrow, write_sentence, write_weights
from helpers.json_files import write_json
from helpers.vocabulary import pieces, write_tokenizer_json, write_vocabulary
from numpy.typing import NDArray

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
    "token_classifier": "BertForTokenClassification",
    "qa": "BertForQuestionAnswering",
    "multiple_choice": "BertForMultipleChoice",
}
LABELED = ("classifier", "token_classifier")
WITHOUT_POOLER = ("mlm", "token_classifier", "qa")
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
}


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

    rows = {"word": vocab, "position": config["max_position_embeddings"], "token_type": config["type_vocab_size"]}
    found |= {f"bert.embeddings.{kind}_embeddings.weight": (count, hidden) for kind, count in rows.items()}
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
    if head in LABELED:
        linear("classifier", num_labels, hidden)
    if head == "qa":
        linear("qa_outputs", 2, hidden)
    if head == "multiple_choice":
        linear("classifier", 1, hidden)
    return found


def weights(shape_of: Mapping[str, tuple[int, ...]], seed: int = 0) -> Tensors:
    """Float64 values of a trained network's scale: norms off 1, biases off 0, attention far from uniform."""
    found: Tensors = {}
    for name, shape in shape_of.items():
        values = bell(name, shape, seed)
        if name.endswith(".weight") and len(shape) == 1:  # of a norm
            values = 1 + values * 0.15
        elif len(shape) == 1:
            values = values * 0.2
        elif "_embeddings" in name or "decoder" in name:
            values = values * (1.5 / np.sqrt(shape[1]))  # rows of length 1.5, as BERT-base has them
        else:
            values = values * (1.25 / np.sqrt(shape[1]))
        found[name] = values
    return found


def _stored(tensors: Tensors, *, naming: str, tied: str, decoder_bias: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """The tensors a checkpoint of that habit holds, under the names it holds them."""
    decoder, bias = "cls.predictions.decoder", "cls.predictions.bias"
    for name, values in tensors.items():
        if name == f"{decoder}.weight" and tied == "stored":
            values = tensors["bert.embeddings.word_embeddings.weight"]
        if name == f"{decoder}.bias" and decoder_bias != "differ":
            values = tensors[bias]
        absent = {f"{decoder}.weight": tied == "absent", f"{decoder}.bias": decoder_bias == "predictions"}
        if (absent | {bias: decoder_bias == "decoder"}).get(name, False):
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
    pooler: None follows the architecture (see WITHOUT_POOLER). shards: number of files, 0 for one without an index.
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
    written |= {"layer_norm_eps": 1e-12, "pad_token_id": 0} | (labels if head in LABELED else {})
    written = {key: value for key, value in (written | dict(config or {})).items() if value is not None}
    write_json(folder / "config.json", written)

    with_pooler = head not in WITHOUT_POOLER if pooler is None else pooler
    tensors = weights(shapes(settings, head, with_pooler, num_labels), seed)
    stored = {name: (dtype, narrow(values, dtype)) for name, values in
              _stored(tensors, naming=naming, tied=tied, decoder_bias=decoder_bias)}  # fmt: skip
    if position_ids_buffer:
        name = "embeddings.position_ids" if naming.startswith("plain") else "bert.embeddings.position_ids"
        stored[name] = ("I64", np.arange(settings["max_position_embeddings"], dtype=np.int64)[None])
    write_weights(folder, stored, shards)

    tokenizer_config = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": lower_case,
        "strip_accents": strip_accents,
        "tokenize_chinese_chars": tokenize_chinese_chars,
        "model_max_length": model_max_length,
    }
    if tokenizer != "none":
        kept = {key: value for key, value in tokenizer_config.items() if value is not None}
        write_json(folder / "tokenizer_config.json", kept)
    if tokenizer in ("vocab", "both"):
        write_vocabulary(folder, vocabulary)
    if tokenizer in ("json", "both"):
        write_tokenizer_json(folder, vocabulary, lower_case=lower_case, strip_accents=strip_accents,
                             chinese=tokenize_chinese_chars, baked=baked)  # fmt: skip
    if sentence is not None:
        write_sentence(
            folder, sentence, settings["hidden_size"], _dense_layers(sentence, settings["hidden_size"], seed)
        )
    return folder


def _dense_layers(sentence: Sentence, hidden_size: int, seed: int) -> list[Tensors]:
    """The tensors of each Dense module, which takes what the one before it gives."""
    layers, inputs = [], hidden_size * len(sentence.pooling)
    for number, dense in enumerate(sentence.dense):
        prefix = f"dense.{number}."
        shape_of: dict[str, tuple[int, ...]] = {f"{prefix}linear.weight": (dense.out_features, inputs)}
        shape_of |= {f"{prefix}linear.bias": (dense.out_features,)} if dense.bias else {}
        layers.append({name.removeprefix(prefix): values for name, values in weights(shape_of, seed).items()})
        inputs = dense.out_features
    return layers


def damaged(folder: Path, value: float, tensor: str = "bert.encoder.layer.1.output.LayerNorm.bias") -> Path:
    """A checkpoint with one bad number: by default in a norm of its last layer."""
    make(folder, head="pretraining")
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    start = 8 + length + header[tensor]["data_offsets"][0]
    data[start : start + 4] = np.float32(value).tobytes()
    file.write_bytes(bytes(data))
    return folder
