"""Small LoRA adapters in peft's files, on the small checkpoints of other helpers."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from helpers.checkpoint_files import write_safetensors
from helpers.checkpoints import bell, make
from helpers.family_checkpoints import make_family

IDS = np.array([[5, 17, 30, 42, 9, 77], [8, 11, 60, 3, 21, 50]])


class Lora(NamedTuple):
    """An adapter: what its base is, which modules it changes [out, in], and what it holds whole."""

    family: str
    task: str
    modules: Mapping[str, tuple[int, int]]
    whole: Mapping[str, tuple[int, ...]] = {}
    settings: Mapping[str, Any] = {}
    head: str = "model"  # of the base


def _layer(stem: str, names: str, out: int = 32, inputs: int = 32) -> dict[str, tuple[int, int]]:
    return {f"{stem}.{number}.{name}": (out, inputs) for number in (0, 1) for name in names.split()}


def _linear(name: str, out: int, inputs: int = 32) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, inputs), f"{name}.bias": (out,)}


BERT = _layer("bert.encoder.layer", "attention.self.query attention.self.value")
CASES = {
    "bert": Lora("bert", "SEQ_CLS", BERT, _linear("classifier", 2), {"modules_to_save": ["classifier"]}),
    "bert labels of tokens": Lora(
        "bert", "TOKEN_CLS", BERT, _linear("classifier", 2),
        {"modules_to_save": ["classifier"], "use_rslora": True, "alpha_pattern": {"layer.1.attention.self.value": 9}},
        "mlm",
    ),
    "bert vectors": Lora(
        "bert", "FEATURE_EXTRACTION",
        {**{name.removeprefix("bert."): shape for name, shape in BERT.items()}, "embeddings.word_embeddings": (32, -1)},
        {}, {},
    ),
    "roberta": Lora(
        "roberta", "SEQ_CLS", _layer("roberta.encoder.layer", "attention.self.query output.dense", 32),
        {**_linear("classifier.dense", 32), **_linear("classifier.out_proj", 3)}, {"modules_to_save": ["classifier"]},
    ),
    "deberta-v2": Lora(
        "deberta-v2", "SEQ_CLS", _layer("deberta.encoder.layer", "attention.self.query_proj attention.self.value_proj"),
        {**_linear("pooler.dense", 32), **_linear("classifier", 3)}, {"modules_to_save": ["classifier", "pooler"]},
    ),
    "modernbert": Lora(
        "modernbert", "SEQ_CLS",
        {**_layer("model.layers", "attn.Wqkv", 96), **_layer("model.layers", "mlp.Wi", 128)},
        {"head.dense.weight": (32, 32), "head.norm.weight": (32,), **_linear("classifier", 3)},
        {"modules_to_save": ["classifier", "head"]},
    ),
    "distilbert": Lora(
        "distilbert", "SEQ_CLS", _layer("distilbert.transformer.layer", "attention.q_lin attention.v_lin"),
        {**_linear("pre_classifier", 32), **_linear("classifier", 3)},
        {"modules_to_save": ["classifier", "pre_classifier"], "fan_in_fan_out": True, "rank_pattern": {"q_lin": 4}},
    ),
}  # fmt: skip


def write_lora(folder: Path, name: str, **changes: Any) -> tuple[Path, Path]:
    """The folders of a base and of an adapter."""
    case, base, adapter = CASES[name], folder / "base", folder / "adapter"
    if case.family == "bert":
        make(base, head=case.head, tokenizer="json", pooler=True)
    else:
        make_family(base, case.family, case.head)
    adapter.mkdir()
    modules = dict(case.modules)
    if name == "roberta":
        modules = {key: (32, 64 if key.endswith("output.dense") else 32) for key in modules}
    vocabulary = json.loads((base / "config.json").read_text())["vocab_size"]
    tensors = {}
    for module, (out, inputs) in modules.items():
        rank = 4 if module.endswith("q_lin") else 2
        embedding = "embedding" in module
        names = ("lora_embedding_A", "lora_embedding_B") if embedding else ("lora_A.weight", "lora_B.weight")
        first, second = names
        tensors[f"{module}.{first}"] = bell(module + first, (rank, vocabulary if embedding else inputs)) * 0.3
        tensors[f"{module}.{second}"] = bell(module + second, (out, rank)) * 0.3
    for whole, shape in case.whole.items():
        values = bell(whole, shape) * 0.3
        tensors[whole] = values + 1 if whole.endswith("norm.weight") else values
    stored = {f"base_model.model.{key}": ("F32", values.astype(np.float32)) for key, values in tensors.items()}
    write_safetensors(adapter / "adapter_model.safetensors", stored)
    targets = sorted({module.rpartition(".")[2] if "output" not in module else "output.dense" for module in modules})
    config = {"peft_type": "LORA", "task_type": case.task, "base_model_name_or_path": str(base), "r": 2,
              "lora_alpha": 6, "target_modules": targets, "bias": "none", "inference_mode": True}  # fmt: skip
    written = {**config, **case.settings, **changes}
    (adapter / "adapter_config.json").write_text(json.dumps(written))
    return base, adapter
