"""Small random models of late interaction in their three layouts, on several families."""

import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from helpers.checkpoint_files import narrow, write_modules, write_safetensors
from helpers.checkpoints import bell, make
from helpers.family_checkpoints import make_family
from helpers.json_files import change_json, read_json, write_json
from helpers.tokenizer_kinds import write_kind
from helpers.vocabulary import pieces
from safetensors.numpy import load_file

Json = dict[str, Any]
HIDDEN, WIDTH = 32, 6


class Late(NamedTuple):
    """A folder: its family, its layout, and the settings that this layout keeps in one file or another."""

    family: str
    layout: str  # modules, pylate or stanford
    main: Mapping[str, Any] = {}  # config_sentence_transformers.json, or artifact.metadata
    transformer: Mapping[str, Any] = {}  # sentence_bert_config.json
    mask: Mapping[str, Any] = {}  # of MultiVectorMask
    widths: tuple[int, ...] = (WIDTH,)  # of the Dense layers
    residual: bool = False  # around each of them


def expansion(strategy: str, length: int, **settings: Any) -> Json:
    return {"query_expansion": {"strategy": strategy, "length": length, **settings}}


QUERIES = ("hot tea, good?", "", "unbelievable coffee in Paris. " * 6)
DOCUMENTS = (
    "The tea, was hot!", "", "...", "She poured a cup of hot coffee, and he drank it with milk. " * 4,
    "the [MASK] river [SEP] tea, .x",
)  # fmt: skip
PROMPTS = {"prompts": {"query": "tea ", "document": "hot "}}
PREFIXES = {"model_type": "ColBERT", "query_prefix": "[Q] ", "document_prefix": "[D] "}
PUNCTUATION = {"skiplist_words": [*string.punctuation]}
FOLDERS = {
    "modules fixed": Late("bert", "modules", PROMPTS, {"document_length": 12, **expansion("fixed", 10)}, PUNCTUATION),
    "modules min": Late(
        "xlm-roberta", "modules", PROMPTS | {"similarity_fn_name": "meanmaxsim"},
        {"query_length": 14, "document_length": 20, **expansion("min", 9, attend=True, token="</s>")},
        PUNCTUATION | {"skiplist_tasks": ["query", "document"]}, (20, WIDTH),
    ),
    "modules plain": Late("modernbert", "modules", {}, {"query_length": 8}, {}, (WIDTH,)),
    "modules eurobert": Late("eurobert", "modules", PROMPTS, expansion("fixed", 24), {"skiplist_words": [",", "tea"]}),
    "modules residual": Late("bert", "modules", PROMPTS, expansion("fixed", 8), {}, (HIDDEN, WIDTH), True),
    "pylate": Late(
        "bert", "pylate", {**PREFIXES, "query_length": 10, "document_length": 12, "attend_to_expansion_tokens": True}
    ),
    "pylate local": Late("modernbert", "pylate", {**PREFIXES, "query_length": 40, "skiplist_words": ["."]}),
    "pylate short": Late("bert", "pylate", {**PREFIXES, "do_query_expansion": False, "query_length": 7, **PROMPTS}),
    "stanford": Late("bert", "stanford", {"query_maxlen": 16, "doc_maxlen": 14, "query_token_id": "[unused2]"}),
    "stanford attended": Late("bert", "stanford", {"attend_to_mask_tokens": True, "mask_punctuation": False}),
}  # fmt: skip


def write_late(folder: Path, name: str | Late) -> Path:
    """The folder of this name, or another one, with its tokenizer."""
    made = FOLDERS[name] if isinstance(name, str) else name
    _write_network(folder, made)
    if made.layout == "stanford":
        change_json(folder / "config.json", {"architectures": ["HF_ColBERT"]})
        stored = stored_in(folder)
        write_safetensors(folder / "model.safetensors", stored | {"linear.weight": _weight(WIDTH, HIDDEN)})
        write_json(folder / "artifact.metadata", made.main)
        return folder
    kinds = {"": "sentence_transformers.models.Transformer"}
    inputs = HIDDEN
    for number, outputs in enumerate(made.widths, start=1):
        config = _dense(inputs, outputs, made.layout) | ({"use_residual": True} if made.residual else {})
        _write(folder / f"{number}_Dense/config.json", config)
        tensors = {"linear.weight": _weight(outputs, inputs)}
        if made.residual and inputs != outputs:
            tensors["residual.weight"] = _weight(outputs, inputs, "residual")
        write_safetensors(folder / f"{number}_Dense/model.safetensors", tensors)
        of_pylate = made.layout == "pylate"
        kinds[f"{number}_Dense"] = "pylate.models.Dense.Dense" if of_pylate else "sentence_transformers.models.Dense"
        inputs = outputs
    if made.layout == "modules":
        last = (
            "sentence_transformers.multi_vector_encoder.modules.MultiVectorMask",
            "sentence_transformers.models.Normalize",
        )
        for number, kind in enumerate(last, start=len(kinds)):
            path = f"{number}_{kind.rpartition('.')[2]}"
            kinds[path] = kind
            settings = made.mask if kind.endswith("Mask") else {"module_input_name": "token_embeddings"}
            _write(folder / path / "config.json", settings)
    write_modules(folder, kinds)
    main = {"model_type": "MultiVectorEncoder"} | {**made.main} if made.layout == "modules" else made.main
    _write(folder / "config_sentence_transformers.json", main)
    _write(folder / "sentence_bert_config.json", {"max_seq_length": 40, "do_lower_case": False, **made.transformer})
    return folder


def stored_in(folder: Path) -> dict[str, tuple[str, Any]]:
    """The tensors of a folder, as `write_safetensors` takes them."""
    return {name: ("F32", array) for name, array in load_file(folder / "model.safetensors").items()}


def _write_network(folder: Path, made: Late) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if made.family == "bert":
        make(folder, tokenizer="both", pooler=False)
        if made.layout == "pylate":  # with markers that a tokenizer in lower case never finds
            tokens = read_json(folder / "tokenizer.json")
            size = len(pieces())
            for number, content in enumerate(("[Q] ", "[D] ")):
                flags = dict.fromkeys(("special", "lstrip", "rstrip", "single_word"), False)
                tokens["added_tokens"].append({"id": size + number, "content": content, "normalized": True, **flags})
            write_json(folder / "tokenizer.json", tokens)
            change_json(folder / "config.json", {"vocab_size": size + 2})
            stored = stored_in(folder)
            key = next(one for one in stored if one.endswith("word_embeddings.weight"))
            more = narrow(bell("markers", (2, HIDDEN)) * 0.25, "F32")
            stored[key] = ("F32", np.concatenate([stored[key][1], more]))
            write_safetensors(folder / "model.safetensors", stored)
    else:
        kind = "modernbert" if made.family == "eurobert" else made.family
        size = write_kind(folder, kind, model_max_length=40)
        make_family(folder, made.family, sizes={"V": size, "H": HIDDEN, "P": 64})


def _dense(inputs: int, outputs: int, layout: str) -> Json:
    config: Json = {"in_features": inputs, "out_features": outputs, "bias": False}
    config["activation_function"] = "torch.nn.modules.linear.Identity"
    return config | ({"use_residual": False} if layout == "pylate" else {"module_input_name": "token_embeddings"})


def _weight(outputs: int, inputs: int, name: str = "dense") -> tuple[str, Any]:
    return "F32", narrow(bell(f"{name} {inputs}", (outputs, inputs)) * (1.25 / np.sqrt(inputs)), "F32")


def _write(file: Path, value: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    write_json(file, value)
