"""Small random checkpoints of every family but BERT: which tensors there are, written down as in published files.

A line is a linear layer (weight and bias), a norm, or a single tensor, with its axes; `N` is a layer's number and
`{a,b}` stands for each of its words. `[mlm]` and so on begin what a head adds; `-` at a line's start takes the lines
away that begin so. That the names and shapes are right is checked when the goldens are recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from checkpoint_files import narrow, write_weights
from checkpoints import weights

Sizes = Mapping[str, int]

ROBERTA = """
tensor roberta.embeddings.word_embeddings.weight V H
tensor roberta.embeddings.position_embeddings.weight P H
tensor roberta.embeddings.token_type_embeddings.weight 1 H
norm roberta.embeddings.LayerNorm H
linear roberta.encoder.layer.N.attention.self.{query,key,value} H H
linear roberta.encoder.layer.N.attention.output.dense H H
norm roberta.encoder.layer.N.attention.output.LayerNorm H
linear roberta.encoder.layer.N.intermediate.dense F H
linear roberta.encoder.layer.N.output.dense H F
norm roberta.encoder.layer.N.output.LayerNorm H
[model]
linear roberta.pooler.dense H H
[mlm]
linear lm_head.dense H H
norm lm_head.layer_norm H
tensor lm_head.bias V
[classifier]
linear classifier.dense H H
linear classifier.out_proj C H
[token_classifier]
linear classifier C H
[qa]
linear qa_outputs 2 H
[multiple_choice]
linear roberta.pooler.dense H H
linear classifier 1 H
"""
DISTILBERT = """
tensor distilbert.embeddings.word_embeddings.weight V H
tensor distilbert.embeddings.position_embeddings.weight P H
norm distilbert.embeddings.LayerNorm H
linear distilbert.transformer.layer.N.attention.{q_lin,k_lin,v_lin,out_lin} H H
norm distilbert.transformer.layer.N.{sa_layer_norm,output_layer_norm} H
linear distilbert.transformer.layer.N.ffn.lin1 F H
linear distilbert.transformer.layer.N.ffn.lin2 H F
[model]
[mlm]
linear vocab_transform H H
norm vocab_layer_norm H
tensor vocab_projector.bias V
[classifier]
linear pre_classifier H H
linear classifier C H
[token_classifier]
linear classifier C H
[qa]
linear qa_outputs 2 H
[multiple_choice]
linear pre_classifier H H
linear classifier 1 H
"""
MPNET = """
tensor mpnet.embeddings.word_embeddings.weight V H
tensor mpnet.embeddings.position_embeddings.weight P H
norm mpnet.embeddings.LayerNorm H
tensor mpnet.encoder.relative_attention_bias.weight 32 A
linear mpnet.encoder.layer.N.attention.attn.{q,k,v,o} H H
norm mpnet.encoder.layer.N.attention.LayerNorm H
linear mpnet.encoder.layer.N.intermediate.dense F H
linear mpnet.encoder.layer.N.output.dense H F
norm mpnet.encoder.layer.N.output.LayerNorm H
[model]
linear mpnet.pooler.dense H H
[mlm]
linear lm_head.dense H H
norm lm_head.layer_norm H
tensor lm_head.bias V
[classifier]
linear classifier.dense H H
linear classifier.out_proj C H
[token_classifier]
linear classifier C H
[qa]
linear qa_outputs 2 H
[multiple_choice]
linear mpnet.pooler.dense H H
linear classifier 1 H
"""
ELECTRA = """
tensor electra.embeddings.word_embeddings.weight V E
tensor electra.embeddings.position_embeddings.weight P E
tensor electra.embeddings.token_type_embeddings.weight 2 E
norm electra.embeddings.LayerNorm E
linear electra.embeddings_project H E if projected
linear electra.encoder.layer.N.attention.self.{query,key,value} H H
linear electra.encoder.layer.N.attention.output.dense H H
norm electra.encoder.layer.N.attention.output.LayerNorm H
linear electra.encoder.layer.N.intermediate.dense F H
linear electra.encoder.layer.N.output.dense H F
norm electra.encoder.layer.N.output.LayerNorm H
[model]
[mlm]
linear generator_predictions.dense E H
norm generator_predictions.LayerNorm E
tensor generator_lm_head.bias V
[rtd]
linear discriminator_predictions.dense H H
linear discriminator_predictions.dense_prediction 1 H
[classifier]
linear classifier.dense H H
linear classifier.out_proj C H
[token_classifier]
linear classifier C H
[qa]
linear qa_outputs 2 H
[multiple_choice]
linear sequence_summary.summary H H
linear classifier 1 H
"""
MODERNBERT = """
tensor model.embeddings.tok_embeddings.weight V H
tensor model.embeddings.norm.weight H
tensor model.layers.N.attn.Wqkv.weight 3H H
tensor model.layers.N.attn.Wo.weight H H
tensor model.layers.N.mlp_norm.weight H
tensor model.layers.N.mlp.Wi.weight 2F H
tensor model.layers.N.mlp.Wo.weight H F
tensor model.layers.{1,2,3}.attn_norm.weight H
tensor model.final_norm.weight H
[model]
[mlm]
tensor head.dense.weight H H
tensor head.norm.weight H
tensor decoder.bias V
[classifier]
tensor head.dense.weight H H
tensor head.norm.weight H
linear classifier C H
[token_classifier]
tensor head.dense.weight H H
tensor head.norm.weight H
linear classifier C H
[qa]
tensor head.dense.weight H H
tensor head.norm.weight H
linear classifier 2 H
[multiple_choice]
tensor head.dense.weight H H
tensor head.norm.weight H
linear classifier 1 H
"""
DEBERTA = """
tensor deberta.embeddings.word_embeddings.weight V E
tensor deberta.embeddings.position_embeddings.weight P E if position_biased_input
tensor deberta.embeddings.token_type_embeddings.weight 2 E if type_vocab_size
tensor deberta.embeddings.embed_proj.weight H E if projected
norm deberta.embeddings.LayerNorm H
tensor deberta.encoder.rel_embeddings.weight 2K H if position_buckets
tensor deberta.encoder.rel_embeddings.weight 2P H if unbucketed
norm deberta.encoder.LayerNorm H if norm_rel_ebd
tensor deberta.encoder.conv.conv.weight H H 3 if conv_kernel_size
tensor deberta.encoder.conv.conv.bias H if conv_kernel_size
norm deberta.encoder.conv.LayerNorm H if conv_kernel_size
linear deberta.encoder.layer.N.attention.self.{query_proj,key_proj,value_proj} H H
linear deberta.encoder.layer.N.attention.self.pos_key_proj H H if own_key
linear deberta.encoder.layer.N.attention.self.pos_query_proj H H if own_query
linear deberta.encoder.layer.N.attention.output.dense H H
norm deberta.encoder.layer.N.attention.output.LayerNorm H
linear deberta.encoder.layer.N.intermediate.dense F H
linear deberta.encoder.layer.N.output.dense H F
norm deberta.encoder.layer.N.output.LayerNorm H
[model]
[mlm]
linear cls.predictions.transform.dense E H
norm cls.predictions.transform.LayerNorm E
tensor cls.predictions.bias V
[classifier]
linear pooler.dense H H
linear classifier C H
[token_classifier]
linear classifier C H
[qa]
linear qa_outputs 2 H
[multiple_choice]
linear pooler.dense H H
linear classifier 1 H
"""
ALBERT = """
tensor albert.embeddings.word_embeddings.weight V E
tensor albert.embeddings.position_embeddings.weight P E
tensor albert.embeddings.token_type_embeddings.weight 2 E
norm albert.embeddings.LayerNorm E
linear albert.encoder.embedding_hidden_mapping_in H E
linear albert.encoder.albert_layer_groups.G.albert_layers.0.attention.{query,key,value,dense} H H
norm albert.encoder.albert_layer_groups.G.albert_layers.0.attention.LayerNorm H
linear albert.encoder.albert_layer_groups.G.albert_layers.0.ffn F H
linear albert.encoder.albert_layer_groups.G.albert_layers.0.ffn_output H F
norm albert.encoder.albert_layer_groups.G.albert_layers.0.full_layer_layer_norm H
[model]
linear albert.pooler H H
[mlm]
linear predictions.dense E H
norm predictions.LayerNorm E
tensor predictions.bias V
[sop]
linear albert.pooler H H
linear predictions.dense E H
norm predictions.LayerNorm E
tensor predictions.bias V
linear sop_classifier.classifier 2 H
[classifier]
linear albert.pooler H H
linear classifier C H
[token_classifier]
linear classifier C H
[qa]
linear qa_outputs 2 H
[multiple_choice]
linear albert.pooler H H
linear classifier 1 H
"""

BERT_SIZES = {"hidden_size": "H", "num_hidden_layers": "L", "num_attention_heads": "A", "intermediate_size": "F",
              "vocab_size": "V", "max_position_embeddings": "P"}  # fmt: skip
ELECTRA_SIZES = BERT_SIZES | {"embedding_size": "E"}
DISTILBERT_SIZES = {"dim": "H", "n_layers": "L", "n_heads": "A", "hidden_dim": "F", "vocab_size": "V",
                    "max_position_embeddings": "P"}  # fmt: skip


class Family(NamedTuple):
    """What a file of this family holds, and what its config.json says besides sizes."""

    tensors: str
    prefix: str
    classes: str  # of transformers: RobertaModel, RobertaForMaskedLM …
    config: Mapping[str, Any]
    keys: Mapping[str, str] = BERT_SIZES  # config.json's key -> the axis whose size it is
    heads: tuple[str, ...] = ("model", "mlm", "classifier", "token_classifier", "qa", "multiple_choice")


ROBERTA_KEYS = {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1, "hidden_act": "gelu"}
FAMILIES = {
    "roberta": Family(ROBERTA, "roberta.", "Roberta", ROBERTA_KEYS),
    "xlm-roberta": Family(ROBERTA, "roberta.", "XLMRoberta", ROBERTA_KEYS),
    "camembert": Family(ROBERTA, "roberta.", "Camembert", ROBERTA_KEYS),
    "distilbert": Family(DISTILBERT, "distilbert.", "DistilBert", {"activation": "gelu"}, DISTILBERT_SIZES),
    "mpnet": Family(MPNET, "mpnet.", "MPNet", {"layer_norm_eps": 1e-5, "pad_token_id": 1, "hidden_act": "gelu"}),
    "electra": Family(
        ELECTRA, "electra.", "Electra", {"layer_norm_eps": 1e-12, "pad_token_id": 0, "hidden_act": "gelu"},
        ELECTRA_SIZES, ("model", "mlm", "rtd", "classifier", "token_classifier", "qa", "multiple_choice"),
    ),
    "modernbert": Family(
        MODERNBERT, "model.", "ModernBert",
        {"norm_eps": 1e-5, "pad_token_id": 0, "hidden_activation": "gelu", "local_attention": 8,
         "position_embedding_type": "sans_pos", "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2,
         "sep_token_id": 2},
    ),
    "deberta-v2": Family(
        DEBERTA, "deberta.", "DebertaV2",
        {"layer_norm_eps": 1e-7, "pad_token_id": 0, "hidden_act": "gelu", "relative_attention": True,
         "position_biased_input": False, "type_vocab_size": 0, "position_buckets": 16, "max_relative_positions": -1,
         "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p", "conv_kernel_size": 0},
        ELECTRA_SIZES,
    ),
    "albert": Family(
        ALBERT, "albert.", "Albert",
        {"layer_norm_eps": 1e-12, "pad_token_id": 0, "hidden_act": "gelu_new", "type_vocab_size": 2},
        ELECTRA_SIZES | {"num_hidden_groups": "G"},
        ("model", "mlm", "sop", "classifier", "token_classifier", "qa", "multiple_choice"),
    ),
}  # fmt: skip
CLASSES = {
    "model": "Model",
    "mlm": "ForMaskedLM",
    "classifier": "ForSequenceClassification",
    "token_classifier": "ForTokenClassification",
    "qa": "ForQuestionAnswering",
    "multiple_choice": "ForMultipleChoice",
    "rtd": "ForPreTraining",
    "sop": "ForPreTraining",
}
SIZES = {"V": 120, "E": 32, "G": 1, "K": 16, "H": 32, "L": 2, "A": 2, "F": 64, "P": 64, "C": 3}


def architecture(family: str, head: str) -> str:
    """The name of transformers' class."""
    return FAMILIES[family].classes + CLASSES[head]


def make_family(
    folder: str | Path,
    family: str,
    head: str = "model",
    *,
    sizes: Sizes | None = None,
    config: Mapping[str, Any] | None = None,
    dtype: str = "F32",
    bare: bool = False,
    seed: int = 0,
) -> Path:
    """A checkpoint folder with config.json and model.safetensors, made if need be; returns its path.

    sizes: over SIZES, by axis. config: keys put over config.json's, or taken out where the value is None.
    bare: without the family's prefix, as a base model that is saved alone.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    of, all_sizes = FAMILIES[family], SIZES | ({"L": 4} if family == "modernbert" else {}) | dict(sizes or {})
    written = {"model_type": family, "architectures": [architecture(family, head)], "num_labels": all_sizes["C"]}
    if head in ("qa", "sop"):
        written["num_labels"] = 2
    written |= {key: all_sizes[axis] for key, axis in of.keys.items()} | dict(of.config)
    written = {key: value for key, value in (written | dict(config or {})).items() if value is not None}
    (folder / "config.json").write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    shapes = dict(tensors(of.tensors, head, all_sizes, written))
    stored = {name.removeprefix(of.prefix) if bare else name: (dtype, narrow(values, dtype))
              for name, values in weights(shapes, seed).items()}  # fmt: skip
    write_weights(folder, stored, 0)
    return folder


def tensors(text: str, head: str, sizes: Sizes, config: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every tensor; lines that end in `if KEY` are for configurations where that is not 0."""
    section = ""
    for line in text.strip().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            continue
        line, _, condition = line.partition(" if ")
        if section not in ("", head) or (condition and not conditions(config).get(condition)):
            continue
        kind, name, *axes = line.split()
        shape = tuple(int(axis) if axis.isdigit() else int(axis[:-1] or 1) * sizes[axis[-1]] for axis in axes)
        for one in _spelled(name, sizes):
            if kind == "tensor":
                yield one, shape
            else:
                yield f"{one}.weight", shape
                yield f"{one}.bias", shape[:1]


def conditions(config: Mapping[str, Any]) -> dict[str, Any]:
    """What `if` may ask for."""
    own = {} if config.get("share_att_key") else {f"own_{at}" for at in config.get("pos_att_type", "")}
    return dict(config) | {
        "projected": config.get("embedding_size", config.get("hidden_size")) != config.get("hidden_size"),
        "unbucketed": config.get("position_buckets") == 0,
        "own_key": "own_c2p" in own,
        "own_query": "own_p2c" in own,
    }


def _spelled(name: str, sizes: Sizes) -> Iterator[str]:
    """Every name that a line stands for."""
    first, *rest = name.split("{")
    choices = [part.partition("}")[0].split(",") for part in rest]
    ends = [part.partition("}")[2] for part in rest]
    for words in product(*choices):
        found = first + "".join(word + end for word, end in zip(words, ends, strict=True))
        letter, count = (".N.", sizes["L"]) if ".N." in found else (".G.", sizes["G"])
        yield from dict.fromkeys(found.replace(letter, f".{i}.") for i in range(count))
