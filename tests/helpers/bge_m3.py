"""A small random folder as bge-m3's: XLM-R that pools its first token, and the two layers that torch.save wrote."""

from pathlib import Path
from typing import Any

import numpy as np
from helpers.bin_files import bin_file
from helpers.checkpoint_files import narrow, write_modules
from helpers.checkpoints import bell
from helpers.family_checkpoints import make_family
from helpers.json_files import write_json
from helpers.tokenizer_kinds import write_kind

HIDDEN = 32
QUERIES = ("hot tea, good?", "unbelievable coffee in Paris, coffee and tea.", "river [MASK] <mask> xyzzy")
DOCUMENTS = (
    "The tea, was hot!", "She poured a cup of hot coffee, and he drank the coffee with milk.", "the river <unk>",
)  # fmt: skip


def write_bge_m3(
    folder: Path, *, sparse: bool = True, late: bool = True, modules: bool = True, older: bool = False
) -> Path:
    """The folder, with the layers that are asked for; without `modules` as FlagEmbedding saves a model alone."""
    folder.mkdir(parents=True, exist_ok=True)
    size = write_kind(folder, "xlm-roberta", model_max_length=40)
    make_family(folder, "xlm-roberta", sizes={"V": size, "H": HIDDEN, "P": 64})
    if sparse:
        (folder / "sparse_linear.pt").write_bytes(layer("sparse", 1, older))
    if late:
        (folder / "colbert_linear.pt").write_bytes(layer("late", HIDDEN, older))
    if modules:
        _write_modules(folder)
    return folder


def layer(name: str, outputs: int, older: bool = False, inputs: int = HIDDEN) -> bytes:
    """The file of a layer."""
    tensors: dict[str, tuple[str, Any]] = {
        "weight": ("F32", narrow(bell(name, (outputs, inputs)) * (2 / np.sqrt(inputs)), "F32")),
        "bias": (
            "F32",
            narrow(bell(f"{name} bias", (outputs,)) * 0.1 + (2.5 if outputs == 1 else 0), "F32"),
        ),  # some weights above 0
    }
    return bin_file(tensors, older)


def _write_modules(folder: Path) -> None:
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    write_modules(folder, {path: f"sentence_transformers.models.{kind}" for path, kind in kinds.items()})
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": HIDDEN, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    write_json(folder / "1_Pooling/config.json", pooling)
