"""Small LoRA adapters in peft's files, on the small checkpoints of other helpers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from helpers.checkpoint_files import write_safetensors
from helpers.checkpoints import bell, make
from helpers.family_checkpoints import FAMILIES, make_family
from helpers.json_files import read_json, write_json
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

IDS = np.array([[5, 17, 30, 42, 9, 77], [8, 11, 60, 3, 21, 50]])
COLUMNS = slice(3, None, 11)  # of the vocabulary, of which logits are recorded


class Lora(NamedTuple):
    """An adapter: what its base is, which modules it changes [out, in], and what it holds whole.

    `config` are keys over those of the base's config.json; None takes one out.
    """

    family: str
    task: str | None
    modules: Mapping[str, tuple[int, ...]]
    whole: Mapping[str, tuple[int, ...]] = {}
    settings: Mapping[str, Any] = {}
    head: str = "model"  # of the base
    config: Mapping[str, Any] = {}


def _layer(stem: str, names: str, out: int = 32, inputs: int = 32) -> dict[str, tuple[int, int]]:
    return {f"{stem}.{number}.{name}": (out, inputs) for number in (0, 1) for name in names.split()}


def _linear(name: str, out: int, inputs: int = 32) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (out, inputs), f"{name}.bias": (out,)}


def _labelled(family: str, stem: str, names: str, labels: int, first: str = "", **more: Any) -> Lora:
    """A classifier on a plain base, whose config.json says nothing of labels."""
    modules = _layer(stem, names)
    whole = _linear(f"classifier.{first}", 32) | _linear("classifier.out_proj", labels) if first else more.pop("whole")
    return Lora(family, "SEQ_CLS", modules, whole, {"modules_to_save": ["classifier", "score"]}, config=UNLABELLED)


UNLABELLED = {"num_labels": None}
BERT = _layer("bert.encoder.layer", "attention.self.query attention.self.value")
ROBERTA = _layer("roberta.encoder.layer", "attention.self.query attention.self.value")
LLAMA = "self_attn.q_proj self_attn.v_proj"
DEBERTA = {
    **_layer("deberta.encoder.layer", "attention.self.in_proj", 96),
    **_layer("deberta.encoder.layer", "attention.self.pos_proj"),
}
ALL_OF_ESM = {
    **_layer("encoder.layer", "attention.self.query attention.self.key attention.self.value attention.output.dense"),
    **_layer("encoder.layer", "intermediate.dense", 64),
    **_layer("encoder.layer", "output.dense", 32, 64),
    "contact_head.regression": (1, 4),
}
WITH_CONVOLUTION = {
    "position_biased_input": True, "type_vocab_size": 2, "position_buckets": 0, "norm_rel_ebd": None,
    "share_att_key": False, "pos_att_type": ["c2p", "p2c"], "conv_kernel_size": 3, "conv_act": "gelu",
}  # fmt: skip
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
    # peft leaves the base's embeddings to a decoder that is tied to them.
    "bert, saved embeddings": Lora(
        "bert", None, BERT, {"bert.embeddings.word_embeddings.weight": (-1, 32)},
        {"modules_to_save": ["word_embeddings"]}, "mlm",
    ),
    "eurobert, saved embeddings": Lora(
        "eurobert", None, _layer("model.layers", LLAMA), {"model.embed_tokens.weight": (-1, 32)},
        {"modules_to_save": ["embed_tokens"]}, "mlm", {"tie_word_embeddings": True},
    ),
    "roberta, five labels": _labelled("roberta", "roberta.encoder.layer", "attention.self.query", 5, "dense"),
    "xlm-roberta, one label": _labelled("xlm-roberta", "roberta.encoder.layer", "attention.self.query", 1, "dense"),
    "mpnet, five labels": _labelled("mpnet", "mpnet.encoder.layer", "attention.attn.q", 5, "dense"),
    "electra, one label": _labelled("electra", "electra.encoder.layer", "attention.self.query", 1, "dense"),
    "esm, five labels": _labelled("esm", "esm.encoder.layer", "attention.self.query", 5, "dense"),
    "qwen3, five labels": _labelled("qwen3", "model.layers", LLAMA, 5, whole={"score.weight": (5, 32)}),
    "gemma3_text, one label": _labelled("gemma3_text", "model.layers", LLAMA, 1, whole={"score.weight": (1, 32)}),
    "bert, other labels": Lora(  # than the two that config.json of its base names
        "bert", "SEQ_CLS", BERT, _linear("classifier", 5), {"modules_to_save": ["classifier"]}, "classifier",
    ),
    "deberta": Lora(
        "deberta", "SEQ_CLS", DEBERTA, {**_linear("pooler.dense", 32), **_linear("classifier", 3)},
        {"modules_to_save": ["classifier", "pooler"]},
    ),
    "deberta-v2, convolution": Lora(
        "deberta-v2", "SEQ_CLS", {"deberta.encoder.conv.conv": (32, 32, 3)},
        {**_linear("pooler.dense", 32), **_linear("classifier", 3)},
        {"modules_to_save": ["classifier", "pooler"], "target_modules": ["conv.conv"]}, config=WITH_CONVOLUTION,
    ),
    "esm, many linear layers": Lora(
        "esm", "SEQ_CLS",
        {**_layer("esm.encoder.layer", "attention.self.query attention.output.dense"),
         "esm.contact_head.regression": (1, 4)},
        {**_linear("classifier.dense", 32), **_linear("classifier.out_proj", 3)},
        {"modules_to_save": ["classifier"], "target_modules": ["query", "output.dense", "regression"]},
    ),
    # As peft 0.21 saves "all-linear": the names of all modules, the contact head and the first layer of the head too.
    "esm, all-linear as saved": Lora(
        "esm", "FEATURE_EXTRACTION", ALL_OF_ESM, {}, {"target_modules": [*ALL_OF_ESM, "pooler.dense"]}
    ),
    "esm, all-linear as given": Lora("esm", "FEATURE_EXTRACTION", ALL_OF_ESM, {}, {"target_modules": "all-linear"}),
    # peft reads layers_to_transform only where a target is the end of a name.
    "roberta, layers by name": Lora(
        "roberta", "FEATURE_EXTRACTION",
        {name.removeprefix("roberta."): shape for name, shape in ROBERTA.items()}, {},
        {"target_modules": [name.removeprefix("roberta.") for name in ROBERTA], "layers_to_transform": [1]},
    ),
}  # fmt: skip


def write_numbers(folder: Path, mask: int = 9) -> None:
    """A tokenizer for which the word t7 is the token 7, and [MASK] the one with the id `mask`."""
    size = read_json(folder / "config.json")["vocab_size"]
    names = {"[MASK]" if number == mask else f"t{number}": number for number in range(size)}
    made = Tokenizer(WordLevel(names, unk_token="t0"))
    made.pre_tokenizer = WhitespaceSplit()
    made.add_special_tokens(["[MASK]"])
    made.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "mask_token": "[MASK]", "pad_token": "t0"}
    write_json(folder / "tokenizer_config.json", settings)


def write_lora(folder: Path, name: str, **changes: Any) -> tuple[Path, Path]:
    """The folders of a base and of an adapter."""
    case, base, adapter = CASES[name], folder / "base", folder / "adapter"
    if case.family == "bert":
        make(base, head=case.head, tokenizer="json", pooler=True, config=case.config)
    else:
        make_family(base, case.family, case.head, config=case.config)
    adapter.mkdir()
    modules = dict(case.modules)
    if name == "roberta":
        modules = {key: (32, 64 if key.endswith("output.dense") else 32) for key in modules}
    vocabulary = read_json(base / "config.json")["vocab_size"]
    tensors = {}
    for module, (out, inputs, *width) in modules.items():
        rank = 4 if module.endswith("q_lin") else 2
        embedding = "embedding" in module
        names = ("lora_embedding_A", "lora_embedding_B") if embedding else ("lora_A.weight", "lora_B.weight")
        first, second = names
        tensors[f"{module}.{first}"] = bell(module + first, (rank, vocabulary if embedding else inputs, *width)) * 0.3
        tensors[f"{module}.{second}"] = bell(module + second, (out, rank, *(1 for _ in width))) * 0.3
    for whole, shape in case.whole.items():
        values = bell(whole, tuple(vocabulary if size < 0 else size for size in shape)) * 0.3
        tensors[whole] = values + 1 if whole.endswith("norm.weight") else values
    stored = {f"base_model.model.{key}": ("F32", values.astype(np.float32)) for key, values in tensors.items()}
    write_safetensors(adapter / "adapter_model.safetensors", stored)
    targets = sorted({module.rpartition(".")[2] if "output" not in module else "output.dense" for module in modules})
    config = {"peft_type": "LORA", "task_type": case.task, "base_model_name_or_path": str(base), "r": 2,
              "lora_alpha": 6, "target_modules": targets, "bias": "none", "inference_mode": True}  # fmt: skip
    written = {**config, **case.settings, **changes}
    write_json(adapter / "adapter_config.json", written)
    return base, adapter


# The tables of each family, by the end of their modules' names in transformers; of T5's there are two names for one.
TABLES = {
    **dict.fromkeys(("bert", "albert", "electra"), ("word_embeddings", "position_embeddings", "token_type_embeddings")),
    **dict.fromkeys(("roberta", "xlm-roberta"), ("word_embeddings", "position_embeddings", "token_type_embeddings")),
    "ernie": ("word_embeddings", "position_embeddings", "token_type_embeddings", "task_type_embeddings"),
    "distilbert": ("word_embeddings", "position_embeddings"),
    "mpnet": ("word_embeddings", "position_embeddings", "relative_attention_bias"),
    "modernbert": ("tok_embeddings",),
    "nomic_bert": ("word_embeddings", "token_type_embeddings"),
    "esm": ("word_embeddings",),
    **dict.fromkeys(("deberta", "deberta-v2"), ("word_embeddings", "rel_embeddings")),
    **dict.fromkeys(("eurobert", "gemma3_text", "qwen2", "qwen3"), ("embed_tokens",)),
    **dict.fromkeys(("t5", "mt5", "umt5"), ("shared", "embed_tokens", "relative_attention_bias")),
}
KINDS_OF_CHANGE = ("saved", "targeted")  # modules_to_save, target_modules
SOME_STATES = np.s_[:, ::2, ::8]  # that are recorded


def write_table_lora(folder: Path, family: str, table: str, change: str) -> tuple[Path, Path]:
    """The folders of a base and of an adapter that saves a table whole, or changes it; the base has no head."""
    base, adapter = folder / "base", folder / "adapter"
    prefix = "bert."
    if family == "bert":
        make(base, tokenizer="json")
    else:
        make_family(base, family)
        prefix = FAMILIES[family].prefix
    adapter.mkdir(parents=True)
    tensors_of_base = load_file(base / "model.safetensors")
    stored = {name.removeprefix(prefix): values.shape for name, values in tensors_of_base.items()}
    if table == "embed_tokens" and "shared.weight" in stored:
        stored["encoder.embed_tokens.weight"] = stored["shared.weight"]
    tables = {name: shape for name, shape in stored.items() if name.endswith(f"{table}.weight")}
    # peft wants a target beside what is saved: the first layer's first product.
    linear = next(name for name in sorted(stored) if "0" in name and len(stored[name]) == 2 and name not in tables)
    targets = [linear] if change == "saved" else [*tables]
    tensors = {}
    for name in targets:
        outputs, inputs = stored[name]
        stem = name.removesuffix(".weight")
        first, second = ("lora_A.weight", "lora_B.weight")
        if name in tables:
            first, second = "lora_embedding_A", "lora_embedding_B"
            inputs, outputs = outputs, inputs
        tensors[f"{stem}.{first}"] = bell(stem + first, (2, inputs)) * 0.2
        tensors[f"{stem}.{second}"] = bell(stem + second, (outputs, 2)) * 0.2
    if change == "saved":
        tensors |= {name: bell(name, shape) * 0.3 for name, shape in tables.items()}
    written = {f"base_model.model.{name}": ("F32", values.astype(np.float32)) for name, values in tensors.items()}
    write_safetensors(adapter / "adapter_model.safetensors", written)
    config = {"peft_type": "LORA", "task_type": "FEATURE_EXTRACTION", "base_model_name_or_path": str(base), "r": 2,
              "lora_alpha": 6, "target_modules": [name.removesuffix(".weight") for name in targets], "bias": "none",
              "modules_to_save": [table] if change == "saved" else None}  # fmt: skip
    write_json(adapter / "adapter_config.json", config)
    return base, adapter
