"""Static models in every layout that sentence-transformers and model2vec have written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from helpers.checkpoint_files import write_safetensors
from helpers.checkpoints import bell
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
    modules = [{"idx": 0, "name": "0", "path": path, "type": "sentence_transformers.models.StaticEmbedding"}]
    if layout in ("normalized", "model2vec"):
        modules.append({"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"})
    (folder / "modules.json").write_text(json.dumps(modules))
    if path == ".":
        config = {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": layout == "model2vec"}
        (folder / "config.json").write_text(json.dumps(config))
