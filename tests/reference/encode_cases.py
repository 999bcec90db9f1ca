"""Sentence folders with prompts, and SPLADE folders: what is recorded of sentence-transformers, and compared."""

from pathlib import Path
from typing import Any

from helpers.checkpoint_files import write_modules
from helpers.checkpoints import Sentence, make
from helpers.json_files import change_json, write_json
from reference.task_cases import make_task

TEXTS = ("The cat sat on the mat.", "", "Tea", "She poured a cup of hot coffee, and he drank it with milk.")
PROMPTS = {"query": "Find the House: ", "passage": "a text:", "none": ""}

# pooling, whether the prompt's tokens are pooled, lower-cased by the folder, the default prompt's name, the options
PROMPTED: dict[str, tuple[tuple[str, ...], bool, bool, str | None, dict[str, str]]] = {
    "default": (("mean",), True, False, "query", {}),
    "named": (("mean",), True, False, None, {"prompt_name": "passage"}),
    "given": (("cls", "max"), True, False, "query", {"prompt": "hot "}),
    "empty": (("mean",), False, False, "query", {"prompt": ""}),
    "mean left out": (("mean",), False, False, None, {"prompt_name": "query"}),
    "cls left out": (("cls",), False, False, "passage", {}),
    "all left out": (("mean_sqrt_len", "mean", "max", "cls"), False, True, None, {"prompt": "The Cat"}),
}

# family and head, pooling strategy, activation; None: a model without a SpladePooling, which gets max and relu
SPARSE: dict[str, tuple[str, str, str] | None] = {
    "plain": None,
    "max": ("mlm", "max", "relu"),
    "sum": ("pretraining", "sum", "relu"),
    "max log1p": ("mlm", "max", "log1p_relu"),
    "sum log1p": ("mlm", "sum", "log1p_relu"),
    "distilbert": ("distilbert", "max", "relu"),
    "roberta": ("roberta", "sum", "relu"),
}


def prompted(folder: Path, name: str) -> Path:
    """A folder with PROMPTS."""
    pooling, included, lower, default, _ = PROMPTED[name]
    make(folder, sentence=Sentence(pooling, "new", do_lower_case=lower), seed=len(name), lower_case=not lower)
    change(folder / "1_Pooling/config.json", include_prompt=included)
    write_json(folder / "config_sentence_transformers.json", {"prompts": PROMPTS, "default_prompt_name": default})
    return folder


def sparse(folder: Path, name: str) -> Path:
    """A masked language model, in most cases with a SpladePooling."""
    settings = SPARSE[name]
    head = settings[0] if settings else "mlm"
    if head in ("distilbert", "roberta"):
        make_task(folder, head, "mlm")
    else:
        make(folder, head=head, seed=len(name), tokenizer="both")
    if settings is None:
        return folder
    kinds = {"": "sparse_encoder.models.MLMTransformer", "1_SpladePooling": "sparse_encoder.models.SpladePooling"}
    write_modules(folder, {path: f"sentence_transformers.{kind}" for path, kind in kinds.items()})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 40, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder"})
    (folder / "1_SpladePooling").mkdir()
    write_json(
        folder / "1_SpladePooling/config.json", {"pooling_strategy": settings[1], "activation_function": settings[2]}
    )
    return folder


def change(file: Path, **settings: Any) -> None:
    """Set keys of a JSON file."""
    change_json(file, settings)
