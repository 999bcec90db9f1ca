"""BERT in sixty lines of plain NumPy, the whole model on one screen; a test holds that bertcli computes the same.

    python tests/examples/bert_in_numpy.py sample_weights/bert-mini-mlm "She poured a cup of hot [MASK]."

S tokens, hidden size H, A heads of size D = H / A, F in the feed-forward layer, V in the vocabulary; w are the tensors
of a checkpoint. Source: Devlin et al. 2018, "BERT: Pre-training of Deep Bidirectional Transformers".
"""

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

Array = np.ndarray[Any, np.dtype[np.float32]]
Weights = Mapping[str, Array]


def linear(x: Array, w: Weights, name: str) -> Array:  # [S, in] -> [S, out]
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def layer_norm(x: Array, w: Weights, name: str, epsilon: float) -> Array:  # [S, H] -> [S, H]
    x = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + epsilon)
    return x * w[f"{name}.weight"] + w[f"{name}.bias"]


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


def gelu(x: Array) -> Array:
    return np.asarray(x * (1 + np.vectorize(math.erf, otypes=[np.float32])(x / np.float32(math.sqrt(2)))) / 2)


def attention(x: Array, w: Weights, name: str, heads: int) -> Array:  # [S, H] -> [S, H]
    q, k, v = (linear(x, w, f"{name}.{part}").reshape(len(x), heads, -1) for part in ("query", "key", "value"))
    scores = np.einsum("qad,kad->aqk", q, k) / np.float32(math.sqrt(q.shape[2]))  # [A, S, S]
    return np.asarray(np.einsum("aqk,kad->qad", softmax(scores), v).reshape(x.shape))


def encoder(ids: list[int], segments: list[int], w: Weights, config: Mapping[str, Any]) -> Array:  # [S] -> [S, H]
    epsilon, heads = config["layer_norm_eps"], config["num_attention_heads"]
    table = {kind: w[f"bert.embeddings.{kind}_embeddings.weight"] for kind in ("word", "token_type", "position")}
    x = table["word"][ids] + table["token_type"][segments] + table["position"][: len(ids)]
    x = layer_norm(x, w, "bert.embeddings.LayerNorm", epsilon)
    for layer in (f"bert.encoder.layer.{i}" for i in range(config["num_hidden_layers"])):
        attended = attention(x, w, f"{layer}.attention.self", heads)
        attended = linear(attended, w, f"{layer}.attention.output.dense")
        x = layer_norm(x + attended, w, f"{layer}.attention.output.LayerNorm", epsilon)
        inner = gelu(linear(x, w, f"{layer}.intermediate.dense"))  # [S, F]
        x = layer_norm(x + linear(inner, w, f"{layer}.output.dense"), w, f"{layer}.output.LayerNorm", epsilon)
    return x


def masked_language_model(states: Array, w: Weights, config: Mapping[str, Any]) -> Array:  # [S, H] -> [S, V]
    x = gelu(linear(states, w, "cls.predictions.transform.dense"))
    x = layer_norm(x, w, "cls.predictions.transform.LayerNorm", config["layer_norm_eps"])
    return softmax(x @ w["bert.embeddings.word_embeddings.weight"].T + w["cls.predictions.bias"])


def opened(folder: Path) -> tuple[Weights, Mapping[str, Any]]:
    stored = load_file(folder / "model.safetensors")
    return {name: x.astype(np.float32) for name, x in stored.items()}, json.loads((folder / "config.json").read_text())


if __name__ == "__main__":
    from tokenizers import Tokenizer

    tokenizer, (w, config) = Tokenizer.from_file(f"{sys.argv[1]}/tokenizer.json"), opened(Path(sys.argv[1]))
    tokens = tokenizer.encode(sys.argv[2])
    found = masked_language_model(encoder(tokens.ids, tokens.type_ids, w, config), w, config)
    for id in np.argsort(-found[tokens.tokens.index("[MASK]")])[:5]:
        print(f"{found[tokens.tokens.index('[MASK]'), id]:.4f}  {tokenizer.id_to_token(int(id))}")
