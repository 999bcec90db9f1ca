"""Static models in every layout that sentence-transformers and model2vec have written."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from helpers.checkpoint_files import write_modules, write_safetensors
from helpers.checkpoints import bell
from helpers.json_files import write_json
from helpers.vocabulary import pieces, write_tokenizer_json

WIDTH = 6
LAYOUTS = ("root", "folder", "normalized", "model2vec", "quantized")


def write_static(folder: Path, layout: str) -> None:
    """A folder's files; `model2vec` and `quantized` are model2vec's, which has fewer rows in the latter."""
    path = {"folder": "0_StaticEmbedding", "model2vec": ".", "quantized": "."}.get(layout, "")
    at = folder / path
    at.mkdir(parents=True, exist_ok=True)
    write_tokenizer_json(at, pieces())
    count = len(pieces())
    table = bell("table", (count, WIDTH)).astype(np.float32)
    tensors: dict[str, tuple[str, Any]] = {"embedding.weight": ("F32", table)}
    if layout == "model2vec":
        tensors = {"embeddings": ("F16", table.astype(np.float16))}
    if layout == "quantized":
        mapping, factors = np.arange(count) % 50, bell("weights", (count,)).astype(np.float32)
        tensors = {"embeddings": ("F32", table[:50]), "mapping": ("I64", mapping), "weights": ("F32", factors)}
    write_safetensors(at / "model.safetensors", tensors)
    kinds = {path: "sentence_transformers.models.StaticEmbedding"}
    if layout in ("normalized", "model2vec"):
        kinds["1_Normalize"] = "sentence_transformers.models.Normalize"
    write_modules(folder, kinds)
    if path == ".":
        config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": layout == "model2vec"}
        write_json(folder / "config.json", config)


class Model2Vec(NamedTuple):
    """What model2vec's save_pretrained writes, which has modules.json in newer versions only.

    unigram: the tokenizer is a Unigram model, whose unknown piece has no name.
    """

    dtype: str = "float32"
    mapped: bool = False
    weighted: bool = False
    normalize: bool = True
    unigram: bool = False
    has_modules: bool = False
    max_length: int | None = 512


MODEL2VEC = {
    "plain": Model2Vec(),
    "not normalized": Model2Vec(normalize=False),
    "mapped": Model2Vec(mapped=True),
    "weighted": Model2Vec(weighted=True, normalize=False),
    "float16": Model2Vec("float16"),
    "float16, mapped and weighted": Model2Vec("float16", True, True),
    "float64": Model2Vec("float64"),
    "int8": Model2Vec("int8"),
    "int8, not normalized": Model2Vec("int8", normalize=False),
    "int8, mapped and weighted": Model2Vec("int8", True, True, normalize=False),
    "unigram": Model2Vec(unigram=True),
    "never cut": Model2Vec(max_length=None),
    "with modules": Model2Vec(has_modules=True),
    "float16 with modules": Model2Vec("float16", True, True, has_modules=True),
    "int8 with modules": Model2Vec("int8", has_modules=True),
    "int8, mapped and weighted, with modules": Model2Vec("int8", True, True, has_modules=True),
}


def write_model2vec(folder: Path, name: str) -> Path:
    """A folder of MODEL2VEC; its config.json names no type."""
    saved = MODEL2VEC[name]
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer_json(folder, pieces())
    count = len(pieces())
    if saved.unigram:
        vocabulary: list[list[Any]] = [["<unk>", 0.0], ["<pad>", 0.0], ["▁", -4.0], ["?", -9.0]]
        vocabulary += [[f"▁{piece}", -8.0] for piece in pieces()]
        count = len(vocabulary)
        space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        tokenizer: dict[str, Any] = {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": space, "post_processor": None, "decoder": space,
            "model": {"type": "Unigram", "unk_id": 3, "vocab": vocabulary, "byte_fallback": False},
        }  # fmt: skip
        write_json(folder / "tokenizer.json", tokenizer)
    table = bell("table", (50 if saved.mapped else count, WIDTH))
    if saved.dtype == "int8":
        table = np.rint(table / np.abs(table).max() * 127)
    table = table.astype(saved.dtype)
    codes = {"float32": "F32", "float16": "F16", "float64": "F64", "int8": "I8"}
    tensors: dict[str, tuple[str, Any]] = {"embeddings": (codes[saved.dtype], table)}
    if saved.mapped:
        tensors["mapping"] = ("I64", np.arange(count) % 50)
    if saved.weighted:
        tensors["weights"] = ("F32", bell("weights", (count,)).astype(np.float32))
    write_safetensors(folder / "model.safetensors", tensors)
    config = {"normalize": saved.normalize, "max_length": saved.max_length, "embedding_dtype": saved.dtype}
    write_json(folder / "config.json", config)
    if saved.has_modules:
        kinds = {".": "StaticEmbedding", **({"1_Normalize": "Normalize"} if saved.normalize else {})}
        write_modules(folder, {path: f"sentence_transformers.models.{kind}" for path, kind in kinds.items()})
    return folder
