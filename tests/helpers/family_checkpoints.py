"""Small random checkpoints of every family but BERT: which tensors there are, written down as in published files.

A line is a linear layer (weight and bias), a norm, or a single tensor, with its axes; a name that begins with a dot has
the family's prefix, `#` is a layer's number, and `{a,b}` stands for each of its words. `[mlm]` and so on begin what a
head adds. That the names and shapes are right is checked when the goldens are recorded.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from helpers.checkpoint_files import narrow, write_weights
from helpers.checkpoints import weights
from helpers.json_files import write_json

Sizes = Mapping[str, int]

EMBEDDINGS = """
tensor .embeddings.word_embeddings.weight V H
tensor .embeddings.position_embeddings.weight P H
"""
NARROW_EMBEDDINGS = """
tensor .embeddings.word_embeddings.weight V E
tensor .embeddings.position_embeddings.weight P E
tensor .embeddings.token_type_embeddings.weight 2 E
norm .embeddings.LayerNorm E
"""
ATTENTION = "linear .encoder.layer.#.attention.self.{query,key,value} H H"
FEED_FORWARD = """
linear .encoder.layer.#.intermediate.dense F H
linear .encoder.layer.#.output.dense H F
norm .encoder.layer.#.output.LayerNorm H
"""
LAYER = f"""
linear .encoder.layer.#.attention.output.dense H H
norm .encoder.layer.#.attention.output.LayerNorm H
{FEED_FORWARD}
"""
LM_HEAD = """
linear lm_head.dense H H
norm lm_head.layer_norm H
tensor lm_head.bias V
"""
ALBERT_LAYER = ".encoder.albert_layer_groups.G.albert_layers.0"
ALBERT_MLM = """
linear predictions.dense E H
norm predictions.LayerNorm E
tensor predictions.bias V
"""
TRANSFORM = """
tensor head.dense.weight H H
tensor head.norm.weight H
"""


def fine_tuned(first: str, classifier: str = "", others: str = "") -> str:
    """The heads that are trained later, and the layers before a choice's logit, a text's labels, and all others."""
    return f"""
[classifier]
{classifier or first}
linear classifier{".out_proj" if classifier else ""} C H
[token_classifier]
{others}
linear classifier C H
[qa]
{others}
linear {"classifier" if others else "qa_outputs"} 2 H
[multiple_choice]
{first}
linear classifier 1 H
"""


DENSE = "linear classifier.dense H H"
ROBERTA = f"""
{EMBEDDINGS}
tensor .embeddings.token_type_embeddings.weight T H
norm .embeddings.LayerNorm H
{ATTENTION}
{LAYER}
[model]
linear .pooler.dense H H
[mlm]
{LM_HEAD}
{fine_tuned("linear .pooler.dense H H", DENSE)}
"""
DISTILBERT = f"""
{EMBEDDINGS}
norm .embeddings.LayerNorm H
linear .transformer.layer.#.attention.{{q_lin,k_lin,v_lin,out_lin}} H H
norm .transformer.layer.#.{{sa_layer_norm,output_layer_norm}} H
linear .transformer.layer.#.ffn.lin1 F H
linear .transformer.layer.#.ffn.lin2 H F
[mlm]
linear vocab_transform H H
norm vocab_layer_norm H
tensor vocab_projector.bias V
{fine_tuned("linear pre_classifier H H")}
"""
MPNET = f"""
{EMBEDDINGS}
norm .embeddings.LayerNorm H
tensor .encoder.relative_attention_bias.weight 32 A
linear .encoder.layer.#.attention.attn.{{q,k,v,o}} H H
norm .encoder.layer.#.attention.LayerNorm H
{FEED_FORWARD}
[model]
linear .pooler.dense H H
[mlm]
{LM_HEAD}
{fine_tuned("linear .pooler.dense H H", DENSE)}
"""
ELECTRA = f"""
{NARROW_EMBEDDINGS}
linear .embeddings_project H E if projected
{ATTENTION}
{LAYER}
[mlm]
linear generator_predictions.dense E H
norm generator_predictions.LayerNorm E
tensor generator_lm_head.bias V
[rtd]
linear discriminator_predictions.dense H H
linear discriminator_predictions.dense_prediction 1 H
{fine_tuned("linear sequence_summary.summary H H", DENSE)}
"""
MODERNBERT = f"""
tensor .embeddings.tok_embeddings.weight V H
tensor .embeddings.norm.weight H
tensor .layers.#.attn.Wqkv.weight 3H H
tensor .layers.#.attn.Wo.weight H H
tensor .layers.#.mlp_norm.weight H
tensor .layers.#.mlp.Wi.weight 2F H
tensor .layers.#.mlp.Wo.weight H F
tensor .layers.{{1,2,3}}.attn_norm.weight H
tensor .final_norm.weight H
[mlm]
{TRANSFORM}
tensor decoder.bias V
{fine_tuned(TRANSFORM, others=TRANSFORM)}
"""
DEBERTA = f"""
tensor .embeddings.word_embeddings.weight V E
tensor .embeddings.position_embeddings.weight P E if position_biased_input
tensor .embeddings.token_type_embeddings.weight 2 E if type_vocab_size
tensor .embeddings.embed_proj.weight H E if projected
norm .embeddings.LayerNorm H
tensor .encoder.rel_embeddings.weight 2K H if position_buckets
tensor .encoder.rel_embeddings.weight 2P H if unbucketed
norm .encoder.LayerNorm H if norm_rel_ebd
tensor .encoder.conv.conv.weight H H 3 if conv_kernel_size
tensor .encoder.conv.conv.bias H if conv_kernel_size
norm .encoder.conv.LayerNorm H if conv_kernel_size
linear .encoder.layer.#.attention.self.{{query_proj,key_proj,value_proj}} H H
linear .encoder.layer.#.attention.self.pos_key_proj H H if own_key
linear .encoder.layer.#.attention.self.pos_query_proj H H if own_query
{LAYER}
[mlm]
linear cls.predictions.transform.dense E H
norm cls.predictions.transform.LayerNorm E
tensor cls.predictions.bias V
[published]
tensor .embeddings.position_embeddings.weight P E
linear lm_predictions.lm_head.dense H H
norm lm_predictions.lm_head.LayerNorm H
tensor lm_predictions.lm_head.bias V
linear mask_predictions.dense H H
norm mask_predictions.LayerNorm H
linear mask_predictions.classifier 1 H
{fine_tuned("linear pooler.dense H H")}
"""
DEBERTA_V1 = f"""
tensor .embeddings.word_embeddings.weight V E
tensor .embeddings.position_embeddings.weight P E if position_biased_input
tensor .embeddings.token_type_embeddings.weight 2 E if type_vocab_size
tensor .embeddings.embed_proj.weight H E if projected
norm .embeddings.LayerNorm H
tensor .encoder.rel_embeddings.weight 2R H
tensor .encoder.layer.#.attention.self.in_proj.weight 3H H
tensor .encoder.layer.#.attention.self.{{q_bias,v_bias}} H
tensor .encoder.layer.#.attention.self.pos_proj.weight H H if own_key
linear .encoder.layer.#.attention.self.pos_q_proj H H if own_query
{LAYER}
[mlm]
linear cls.predictions.transform.dense E H
norm cls.predictions.transform.LayerNorm E
tensor cls.predictions.bias V
{fine_tuned("linear pooler.dense H H").partition("[multiple_choice]")[0]}
"""
ALBERT = f"""
{NARROW_EMBEDDINGS}
linear .encoder.embedding_hidden_mapping_in H E
linear {ALBERT_LAYER}.attention.{{query,key,value,dense}} H H
norm {ALBERT_LAYER}.attention.LayerNorm H
linear {ALBERT_LAYER}.ffn F H
linear {ALBERT_LAYER}.ffn_output H F
norm {ALBERT_LAYER}.full_layer_layer_norm H
[model]
linear .pooler H H
[mlm]
{ALBERT_MLM}
[sop]
linear .pooler H H
{ALBERT_MLM}
linear sop_classifier.classifier 2 H
{fine_tuned("linear .pooler H H")}
"""

NOMIC_HEADS = """
[classifier]
linear .pooler.dense H H
linear classifier C H
[token_classifier]
linear classifier C H
"""
GATED = """
tensor .layers.#.self_attn.{q_proj,k_proj,v_proj,o_proj}.weight H H
tensor .layers.#.mlp.{gate_proj,up_proj}.weight F H
tensor .layers.#.mlp.down_proj.weight H F
norm .layers.#.{post_attention_layernorm,post_mlp_layernorm} H
"""
NOMIC = f"""
tensor .embeddings.word_embeddings.weight V H
tensor .embeddings.token_type_embeddings.weight 2 H
norm .embeddings.LayerNorm H
{GATED}
[mlm]
linear cls.predictions.transform.dense H H
norm cls.predictions.transform.layer_norm H
tensor cls.predictions.bias V
{NOMIC_HEADS}
"""
OLD_NOMIC = NOMIC.replace(
    GATED,
    """
tensor .encoder.layers.#.attn.Wqkv.weight 3H H
tensor .encoder.layers.#.attn.out_proj.weight H H
tensor .encoder.layers.#.mlp.{fc11,fc12}.weight F H
tensor .encoder.layers.#.mlp.fc2.weight H F
norm .encoder.layers.#.{norm1,norm2} H
""",
).replace(".embeddings.LayerNorm", ".emb_ln")
GTE = f"""
tensor .embeddings.word_embeddings.weight V H
tensor .embeddings.token_type_embeddings.weight 1 H if type_vocab_size
norm .embeddings.LayerNorm H
{GATED}
tensor .layers.#.self_attn.{{q_proj,k_proj,v_proj,o_proj}}.bias H
tensor .layers.#.mlp.down_proj.bias H
[mlm]
linear lm_head.dense H H
norm lm_head.layer_norm H
tensor lm_head.decoder.bias V
{NOMIC_HEADS}
"""
OLD_GTE = (
    GTE.partition(GATED)[0]
    + """
linear .encoder.layer.#.attention.qkv_proj 3H H
linear .encoder.layer.#.attention.o_proj H H
tensor .encoder.layer.#.mlp.up_gate_proj.weight 2F H
linear .encoder.layer.#.mlp.down_proj H F
norm .encoder.layer.#.{attn_ln,mlp_ln} H
[mlm]"""
    + GTE.partition("[mlm]")[2].replace("lm_head.layer_norm", "lm_head.norm")
)

LLAMA = """
tensor .embed_tokens.weight V H
tensor .layers.#.self_attn.q_proj.weight Q H
tensor .layers.#.self_attn.{k_proj,v_proj}.weight M H
tensor .layers.#.self_attn.o_proj.weight H Q
tensor .layers.#.mlp.{gate_proj,up_proj}.weight F H
tensor .layers.#.mlp.down_proj.weight H F
tensor .layers.#.{input_layernorm,post_attention_layernorm}.weight H
tensor .norm.weight H
"""
EUROBERT = f"""
{LLAMA}
[mlm]
tensor lm_head.weight V H
[classifier]
linear dense H H
linear classifier C H
[token_classifier]
linear classifier C H
"""
GEMMA = f"""
{LLAMA}
tensor .layers.#.self_attn.{{q_norm,k_norm}}.weight D
tensor .layers.#.{{pre_feedforward_layernorm,post_feedforward_layernorm}}.weight H
[classifier]
tensor score.weight C H
"""
QWEN3 = f"""
{LLAMA}
tensor .layers.#.self_attn.{{q_norm,k_norm}}.weight D
tensor .layers.#.self_attn.q_proj.bias Q if attention_bias
tensor .layers.#.self_attn.{{k_proj,v_proj}}.bias M if attention_bias
tensor .layers.#.self_attn.o_proj.bias H if attention_bias
[lm]
tensor lm_head.weight V H
[classifier]
tensor score.weight C H
[token_classifier]
linear score C H
[qa]
linear qa_outputs 2 H
"""
QWEN2 = f"""
{LLAMA}
tensor .layers.#.self_attn.q_proj.bias Q
tensor .layers.#.self_attn.{{k_proj,v_proj}}.bias M
[lm]
tensor lm_head.weight V H
[classifier]
tensor score.weight C H
[token_classifier]
linear score C H
[qa]
linear qa_outputs 2 H
"""
T5 = """
tensor .shared.weight V H
tensor .encoder.block.#.layer.0.SelfAttention.{q,k,v}.weight Q H
tensor .encoder.block.#.layer.0.SelfAttention.o.weight H Q
tensor .encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight N A
tensor .encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight N A if own_bias
tensor .encoder.block.#.layer.0.layer_norm.weight H
tensor .encoder.block.#.layer.1.DenseReluDense.wi.weight F H if plain
tensor .encoder.block.#.layer.1.DenseReluDense.{wi_0,wi_1}.weight F H if gated
tensor .encoder.block.#.layer.1.DenseReluDense.wo.weight H F
tensor .encoder.block.#.layer.1.layer_norm.weight H
tensor .encoder.final_layer_norm.weight H
[token_classifier]
linear classifier C H
"""
ESM = f"""
tensor .embeddings.word_embeddings.weight V H
tensor .rotary_embeddings.inv_freq 8
{ATTENTION}
linear .encoder.layer.#.attention.output.dense H H
linear .encoder.layer.#.intermediate.dense F H
linear .encoder.layer.#.output.dense H F
norm .encoder.layer.#.{{attention.LayerNorm,LayerNorm}} H
norm .encoder.emb_layer_norm_after H
tensor .contact_head.regression.weight 1 4
tensor .contact_head.regression.bias 1
[model]
linear .pooler.dense H H
[mlm]
{LM_HEAD}
[classifier]
{DENSE}
linear classifier.out_proj C H
[token_classifier]
linear classifier C H
"""
ERNIE = f"""
{EMBEDDINGS}
tensor .embeddings.token_type_embeddings.weight 2 H
tensor .embeddings.task_type_embeddings.weight 3 H if use_task_id
norm .embeddings.LayerNorm H
{ATTENTION}
{LAYER}
[model]
linear .pooler.dense H H
[mlm]
linear cls.predictions.transform.dense H H
norm cls.predictions.transform.LayerNorm H
tensor cls.predictions.bias V
{fine_tuned("linear .pooler.dense H H")}
"""

JINA = f"""
tensor .embeddings.word_embeddings.weight V H
tensor .embeddings.token_type_embeddings.weight 2 H
norm .embeddings.LayerNorm H
{ATTENTION}
linear .encoder.layer.#.attention.output.dense H H
norm .encoder.layer.#.attention.output.LayerNorm H
tensor .encoder.layer.#.mlp.gated_layers.weight 2F H
linear .encoder.layer.#.mlp.wo H F
norm .encoder.layer.#.mlp.layernorm H
[model]
linear .pooler.dense H H
[mlm]
linear cls.predictions.transform.dense H H
norm cls.predictions.transform.LayerNorm H
tensor cls.predictions.bias V
{NOMIC_HEADS}
"""
NOMIC_EXPERTS = """
tensor .embeddings.word_embeddings.weight V H
tensor .embeddings.token_type_embeddings.weight 1 H
norm .emb_ln H
linear .encoder.layers.#.attn.Wqkv 3H H
linear .encoder.layers.#.attn.out_proj H H
linear .encoder.layers.{0,2}.mlp.fc1 F H
linear .encoder.layers.{0,2}.mlp.fc2 H F
tensor .encoder.layers.{1,3}.mlp.router.layer.weight X H
tensor .encoder.layers.{1,3}.mlp.experts.mlp.{w1,w2} I H
tensor .encoder.layers.{1,3}.mlp.experts.bias H
norm .encoder.layers.#.{norm1,norm2} H
"""
DIALECTS = {  # other names, and what else there is
    "experts": NOMIC_EXPERTS,
    "code": JINA.replace("gated_layers", "up_gated_layer").replace("mlp.wo", "mlp.down_layer").replace(
        "norm .encoder.layer.#.mlp.layernorm H",
        "norm .encoder.layer.#.{attention.self.layer_norm_q,attention.self.layer_norm_k,layer_norm_1,layer_norm_2} H",
    ),
    "mosaic": JINA.replace(ATTENTION, "linear .encoder.layer.#.attention.self.Wqkv 3H H"),
}  # fmt: skip

BERT_SIZES = {"hidden_size": "H", "num_hidden_layers": "L", "num_attention_heads": "A", "intermediate_size": "F",
              "vocab_size": "V", "max_position_embeddings": "P"}  # fmt: skip
ELECTRA_SIZES = BERT_SIZES | {"embedding_size": "E"}
DISTILBERT_SIZES = {"dim": "H", "n_layers": "L", "n_heads": "A", "hidden_dim": "F", "vocab_size": "V",
                    "max_position_embeddings": "P"}  # fmt: skip


T5_SIZES = {"d_model": "H", "num_layers": "L", "num_heads": "A", "d_ff": "F", "vocab_size": "V", "d_kv": "D",
            "relative_attention_num_buckets": "N"}  # fmt: skip


class Family(NamedTuple):
    """What a file of this family holds, and what its config.json says besides sizes."""

    tensors: str
    prefix: str
    classes: str  # of transformers: RobertaModel, RobertaForMaskedLM …
    config: Mapping[str, Any]
    keys: Mapping[str, str] = BERT_SIZES  # config.json's key -> the axis whose size it is
    heads: tuple[str, ...] = ("model", "mlm", "classifier", "token_classifier", "qa", "multiple_choice")
    old: str = ""  # the tensors of older files
    norms: float = 0  # what weights of norms are less than elsewhere
    prefixes: Mapping[str, str] = {}  # of heads whose files have another
    smaller: Mapping[str, float] = {}  # ends of names -> what their weights are multiplied by


NEW_HEADS = ("model", "mlm", "classifier", "token_classifier")
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
    "deberta": Family(
        DEBERTA_V1, "deberta.", "Deberta",
        {"layer_norm_eps": 1e-7, "pad_token_id": 0, "hidden_act": "gelu", "relative_attention": True,
         "position_biased_input": False, "type_vocab_size": 0, "max_relative_positions": -1,
         "pos_att_type": "c2p|p2c"},
        ELECTRA_SIZES, ("model", "mlm", "classifier", "token_classifier", "qa"),
    ),
    "albert": Family(
        ALBERT, "albert.", "Albert",
        {"layer_norm_eps": 1e-12, "pad_token_id": 0, "hidden_act": "gelu_new", "type_vocab_size": 2},
        ELECTRA_SIZES | {"num_hidden_groups": "G"},
        ("model", "mlm", "sop", "classifier", "token_classifier", "qa", "multiple_choice"),
    ),
    "nomic_bert": Family(
        NOMIC, "nomic_bert.", "NomicBert", {"layer_norm_eps": 1e-12, "pad_token_id": 0, "type_vocab_size": 2},
        heads=NEW_HEADS, old=OLD_NOMIC,
    ),
    "gte": Family(
        GTE, "gte.", "Gte", {"layer_norm_eps": 1e-12, "pad_token_id": 1, "type_vocab_size": 1}, heads=NEW_HEADS,
        old=OLD_GTE,
    ),
    "eurobert": Family(EUROBERT, "model.", "EuroBert", {"rms_norm_eps": 1e-5, "pad_token_id": 0}, heads=NEW_HEADS),
    "gemma3_text": Family(
        GEMMA, "model.", "Gemma3Text",
        {"pad_token_id": 0, "num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 12, "sliding_window": 8,
         "sliding_window_pattern": 2, "use_bidirectional_attention": True},
        heads=("model", "classifier"), norms=1,
    ),
    "qwen3": Family(
        QWEN3, "model.", "Qwen3", {"rms_norm_eps": 1e-6, "pad_token_id": 0, "num_key_value_heads": 2, "head_dim": 16},
        heads=("model", "lm", "classifier", "token_classifier", "qa"), prefixes={"qa": "transformer."},
    ),
    "qwen2": Family(
        QWEN2, "model.", "Qwen2", {"rms_norm_eps": 1e-6, "pad_token_id": 0, "num_key_value_heads": 2},
        heads=("model", "lm", "classifier", "token_classifier", "qa"), prefixes={"qa": "transformer."},
    ),
    **{
        name: Family(
            T5, "transformer.", classes,
            {"layer_norm_epsilon": 1e-6, "pad_token_id": 0, "feed_forward_proj": form, "is_encoder_decoder": True},
            T5_SIZES, ("model", "token_classifier"), prefixes={"model": ""},
            smaller={"SelfAttention.q.weight": 0.25},  # in place of 1 / sqrt(D), as T5's weights are drawn
        )
        for name, classes, form in (
            ("t5", "T5", "relu"), ("mt5", "MT5", "gated-gelu"), ("umt5", "UMT5", "gated-gelu"),
        )
    },
    "esm": Family(
        ESM, "esm.", "Esm",
        {"layer_norm_eps": 1e-5, "pad_token_id": 1, "position_embedding_type": "rotary", "token_dropout": True,
         "mask_token_id": 3},
        heads=NEW_HEADS, old=ESM.replace(".rotary_embeddings", ".encoder.layer.#.attention.self.rotary_embeddings"),
    ),
    "jina_bert": Family(
        JINA, "bert.", "JinaBert",
        {"layer_norm_eps": 1e-12, "pad_token_id": 0, "type_vocab_size": 2, "hidden_act": "gelu",
         "position_embedding_type": "alibi", "feed_forward_type": "geglu", "emb_pooler": "mean"},
        heads=NEW_HEADS,
    ),
    "ernie": Family(
        ERNIE, "ernie.", "Ernie",
        {"layer_norm_eps": 1e-12, "pad_token_id": 0, "type_vocab_size": 2, "use_task_id": True},
    ),
}  # fmt: skip
CLASSES = {
    "model": "Model",
    "mlm": "ForMaskedLM",
    "lm": "ForCausalLM",
    "classifier": "ForSequenceClassification",
    "token_classifier": "ForTokenClassification",
    "qa": "ForQuestionAnswering",
    "multiple_choice": "ForMultipleChoice",
    "rtd": "ForPreTraining",
    "published": "Model",
    "sop": "ForPreTraining",
}
SIZES = {
    "V": 120,
    "E": 32,
    "G": 1,
    "K": 16,
    "N": 32,
    "R": 64,
    "H": 32,
    "L": 2,
    "A": 2,
    "F": 64,
    "P": 64,
    "C": 3,
    "T": 1,
    "Q": 32,
    "M": 32,
    "D": 16,
    "X": 4,
    "I": 256,
}


def architecture(family: str, head: str) -> str:
    """The name of transformers' class."""
    encoder_of = "Encoder" if head == "model" and family in ("t5", "mt5", "umt5") else ""
    return FAMILIES[family].classes + encoder_of + CLASSES[head]


def make_family(
    folder: str | Path,
    family: str,
    head: str = "model",
    *,
    sizes: Sizes | None = None,
    config: Mapping[str, Any] | None = None,
    dtype: str = "F32",
    bare: bool = False,
    old: bool | str = False,
    seed: int = 0,
) -> Path:
    """A checkpoint folder with config.json and model.safetensors, made if need be; returns its path.

    sizes: over SIZES, by axis. config: keys put over config.json's, or taken out where the value is None.
    bare: without the family's prefix, as a base model that is saved alone. old: with
    the names of older files, or of one of DIALECTS.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    of, all_sizes = FAMILIES[family], SIZES | ({"L": 4} if family == "modernbert" else {}) | dict(sizes or {})
    written = {"model_type": family, "architectures": [architecture(family, head)], "num_labels": all_sizes["C"]}
    if head in ("qa", "sop"):
        written["num_labels"] = 2
    written |= {key: all_sizes[axis] for key, axis in of.keys.items()} | dict(of.config)
    written = {key: value for key, value in (written | dict(config or {})).items() if value is not None}
    write_json(folder / "config.json", written)
    of = of._replace(prefix=of.prefixes.get(head, of.prefix))
    of = of._replace(tensors=DIALECTS[old] if isinstance(old, str) else of.old) if old else of
    shapes = dict(tensors(of, head, all_sizes, written))
    made = {name: values - of.norms * name.endswith("norm.weight") for name, values in weights(shapes, seed).items()}
    for name, values in made.items():
        values *= next((factor for end, factor in of.smaller.items() if name.endswith(end)), 1)
    stored = {name.removeprefix(of.prefix) if bare else name: (dtype, narrow(values, dtype))
              for name, values in made.items()}  # fmt: skip
    write_weights(folder, stored, 0)
    return folder


def tensors(of: Family, head: str, sizes: Sizes, config: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every tensor; lines that end in `if KEY` are for configurations where that is not 0."""
    section = ""
    for line in filter(None, of.tensors.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
            continue
        line, _, condition = line.partition(" if ")
        if section not in ("", head) or (condition and not conditions(config).get(condition)):
            continue
        kind, name, *axes = line.split()
        shape = tuple(int(axis) if axis.isdigit() else int(axis[:-1] or 1) * sizes[axis[-1]] for axis in axes)
        for one in _spelled(of.prefix + name[1:] if name.startswith(".") else name, sizes):
            if kind == "tensor":
                yield one, shape
            else:
                yield f"{one}.weight", shape
                yield f"{one}.bias", shape[:1]


def conditions(config: Mapping[str, Any]) -> dict[str, Any]:
    """What `if` may ask for."""
    terms = config.get("pos_att_type", [])
    listed = terms.split("|") if isinstance(terms, str) else terms
    own = {} if config.get("share_att_key") else {f"own_{at}" for at in listed}
    return dict(config) | {
        "projected": config.get("embedding_size", config.get("hidden_size")) != config.get("hidden_size"),
        "unbucketed": config.get("position_buckets") == 0,
        "own_key": "own_c2p" in own,
        "own_query": "own_p2c" in own,
        "own_bias": config.get("model_type") == "umt5",
        "gated": str(config.get("feed_forward_proj")).startswith("gated-"),
        "plain": not str(config.get("feed_forward_proj")).startswith("gated-"),
    }


def _spelled(name: str, sizes: Sizes) -> Iterator[str]:
    """Every name that a line stands for."""
    first, *rest = name.split("{")
    choices = [part.partition("}")[0].split(",") for part in rest]
    ends = [part.partition("}")[2] for part in rest]
    for words in product(*choices):
        found = first + "".join(word + end for word, end in zip(words, ends, strict=True))
        letter, count = (".#.", sizes["L"]) if ".#." in found else (".G.", sizes["G"])
        yield from dict.fromkeys(found.replace(letter, f".{i}.") for i in range(count))
