"""Small random folders of GLiNER's span models, as the library saves them and as the Hub's older ones are."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from helpers.bin_files import bin_file
from helpers.checkpoint_files import Tensors, narrow, write_safetensors
from helpers.checkpoints import make, weights
from helpers.family_checkpoints import make_family
from helpers.json_files import read_json, write_json
from helpers.tokenizer_kinds import write_kind
from helpers.vocabulary import pieces, write_tokenizer_json

from bertcli.weights.tensors import open_file

OWN = ("[FLERT]", "<<ENT>>", "<<SEP>>")  # the tokens that GLiNER adds to a backbone's, in this order
BACKBONE = "token_rep_layer.bert_layer.model."
LABELS = ("drink", "capital city", "person")
TEXTS = (
    "She poured a cup of hot coffee in Paris, and he drank the tea!",
    "Berlin",
    "the unbelievable king-queen of the river: a well_known man (he said) bought coffee and sold milk",
    "you & I: 1,000 cups",
)
CASES: dict[str, dict[str, Any]] = {
    "deberta-v2": {},
    "deberta-v2.bin": {"tokenizer": False, "embedded": False, "form": "bin"},
    "deberta-v2.other": {
        "width": 32, "layers": 0, "max_width": 3, "subtoken_pooling": "last", "embed_ent_token": False,
    },
    "deberta-v2.spm": {"tokenizer": False, "embedded": False, "spm": True},
    "deberta-v2.unread": {"num_rnn_layers": 0},  # its file has the tensors of an LSTM that no setting asks for
    "bert": {"backbone": "bert"},
    "modernbert": {"backbone": "modernbert", "width": 40},
}  # fmt: skip
# Threshold, whether entities may lie inside others, whether they may have several labels.
MODES = {
    "flat": (0.5, False, False),
    "surer": (0.9, False, False),
    "nested": (0.5, True, False),
    "labels": (0.8, False, True),
    "both": (0.8, True, True),
}


def write_gliner(
    folder: Path,
    backbone: str = "deberta-v2",
    *,
    width: int = 24,
    layers: int = 1,
    tokenizer: bool = True,
    embedded: bool = True,
    form: str = "safetensors",
    model_max_length: int | None = None,
    spm: bool = False,
    **settings: Any,
) -> Path:
    """A folder of GLiNER and, in `folder`-base, its backbone's config.json and tokenizer; returns the first.

    width: of words, spans and labels. layers: of the LSTM. tokenizer: the folder has one, with GLiNER's own tokens.
    spm: the backbone has spm.model, as DeBERTa-v3 is published. embedded: gliner_config.json has the backbone's
    configuration. form: "safetensors" or "bin". settings: over gliner_config.json's, or taken out where the value is
    None.
    """
    folder.mkdir(parents=True, exist_ok=True)
    base = folder.with_name(f"{folder.name}-base")
    base.mkdir(exist_ok=True)
    size = _write_spm(base) if spm else write_tokenizer(base, backbone, (), model_max_length)
    rows = size + len(OWN)
    config, stored = write_backbone(base, backbone, rows)
    (base / "model.safetensors").unlink()
    tensors = {BACKBONE + name: values for name, values in stored.items()}
    shapes = head_shapes(int(config["hidden_size"]), width, layers)
    # Labels' vectors are halved, so that logits are about as large as a trained model's.
    halved = {name: values * (0.5 if "prompt_rep_layer.3" in name else 1) for name, values in weights(shapes).items()}
    tensors |= {name: narrow(values, "F32") for name, values in halved.items()}
    typed = {name: ("F32", np.ascontiguousarray(values)) for name, values in tensors.items()}
    if form == "bin":
        (folder / "pytorch_model.bin").write_bytes(bin_file(typed))
    else:
        write_safetensors(folder / "model.safetensors", typed)
    if tokenizer:
        write_tokenizer(folder, backbone, OWN, model_max_length)
    written: dict[str, Any] = {
        "model_name": str(base), "name": "small", "max_width": 4, "hidden_size": width, "dropout": 0.4,
        "fine_tune": True, "subtoken_pooling": "first", "span_mode": "markerV0", "max_len": 384, "max_types": 25,
        "words_splitter_type": "whitespace", "num_rnn_layers": layers, "lr_encoder": "1e-5",
    }  # fmt: skip
    if embedded:
        written |= {"encoder_config": config, "class_token_index": rows - 2, "vocab_size": rows}
    written = {key: value for key, value in (written | settings).items() if value is not None}
    write_json(folder / "gliner_config.json", written)
    write_json(base / "config.json", config | {"vocab_size": size})
    return folder


def write_backbone(folder: Path, backbone: str, rows: int) -> tuple[dict[str, Any], Tensors]:
    """A model without heads, with this number of tokens; its configuration and its tensors."""
    if backbone == "bert":
        make(folder, tokenizer="none", naming="plain", sizes={"vocab_size": rows, "max_position_embeddings": 128})
    else:
        make_family(folder, backbone, bare=True, sizes={"V": rows})
    stored = {name: tensor.float32() for name, tensor in open_file(folder / "model.safetensors").items()}
    return read_json(folder / "config.json"), stored


def head_shapes(hidden: int, width: int, layers: int = 1) -> dict[str, tuple[int, ...]]:
    """The tensors beside the backbone's, as GLiNER's library names them."""
    shapes: dict[str, tuple[int, ...]] = {}

    def linear(name: str, outputs: int, inputs: int) -> None:
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = (outputs, inputs), (outputs,)

    if hidden != width:
        linear("token_rep_layer.projection", width, hidden)
    half = width // 2
    for layer in range(layers):
        for end in ("", "_reverse"):
            shapes[f"rnn.lstm.weight_ih_l{layer}{end}"] = (4 * half, width)
            shapes[f"rnn.lstm.weight_hh_l{layer}{end}"] = (4 * half, half)
            shapes[f"rnn.lstm.bias_ih_l{layer}{end}"] = (4 * half,)
            shapes[f"rnn.lstm.bias_hh_l{layer}{end}"] = (4 * half,)
    spans = "span_rep_layer.span_rep_layer."
    inputs = {f"{spans}project_start": 1, f"{spans}project_end": 1, f"{spans}out_project": 2, "prompt_rep_layer": 1}
    for name, ends in inputs.items():
        linear(f"{name}.0", 4 * width, ends * width)
        linear(f"{name}.3", width, 4 * width)
    return shapes


def _write_spm(folder: Path) -> int:
    """Write the files of a tokenizer as DeBERTa-v3 has them, whose mask is not in spm.model; its number of tokens."""
    file = Path(__file__).parents[1] / "reference" / "vocabularies" / "spm.model"
    (folder / "spm.model").write_bytes(file.read_bytes())
    settings = {"do_lower_case": False, "vocab_type": "spm"}
    write_json(folder / "tokenizer_config.json", settings)
    return 121


def write_tokenizer(folder: Path, backbone: str, own: tuple[str, ...], model_max_length: int | None = None) -> int:
    """Write tokenizer.json and tokenizer_config.json, with these tokens added; return the number of tokens."""
    limit: dict[str, Any] = {} if model_max_length is None else {"model_max_length": model_max_length}
    if backbone == "bert":
        write_tokenizer_json(folder, pieces())
        settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True} | limit
        write_json(folder / "tokenizer_config.json", settings)
        size = len(pieces())
    else:
        size = write_kind(folder, backbone, tokenizer_class="PreTrainedTokenizerFast", **limit)
    if own:
        file = folder / "tokenizer.json"
        written = read_json(file)
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number, token in enumerate(own, size):
            written["added_tokens"].append({"id": number, "content": token, **flags, "special": True})
        file.write_text(json.dumps(written, ensure_ascii=False), encoding="utf-8")
    return size + len(own)
