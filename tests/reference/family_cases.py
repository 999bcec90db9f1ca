"""What is recorded and compared of the families that are not BERT: checkpoints and inputs. NumPy only."""

from typing import Any, NamedTuple

import numpy as np
from helpers.family_checkpoints import FAMILIES
from numpy.typing import NDArray
from reference.cases import Batch, ids_of

LENGTHS = (7, 2, 12)
DTYPES = ("F32", "F16", "BF16", "F64")
COLUMNS = slice(3, None, 11)  # of the vocabulary


class Case(NamedTuple):
    """A checkpoint (the keywords of `make_family`) and the texts it is run on."""

    family: str
    head: str
    checkpoint: dict[str, Any]
    lengths: tuple[int, ...] = LENGTHS
    segments: bool = False  # whether the later half of each sentence is the second segment
    padding: tuple[tuple[int, int], ...] = ()  # (sentence, token): where a text has the id of padding
    masks: tuple[tuple[int, int], ...] = ()  # where it has that of the mask, 3

    def batch(self) -> Batch:
        """Ids that are no special ones, padded on the right."""
        shape = (len(self.lengths), max(self.lengths))
        pad = self.checkpoint.get("config", {}).get("pad_token_id", PADS[self.family])
        batch = Batch(np.full(shape, pad, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64))
        for row, length in enumerate(self.lengths):
            batch.ids[row, :length] = np.array(ids_of(length, 115, len(self.head) + row)) + 4
            batch.segments[row, (length + 1) // 2 : length] = self.segments
            batch.mask[row, :length] = 1
        for row, token in self.padding:
            batch.ids[row, token] = pad
        for row, token in self.masks:
            batch.ids[row, token] = 3
        return batch


PADS = dict.fromkeys(FAMILIES, 0) | dict.fromkeys(("roberta", "xlm-roberta", "camembert", "mpnet", "gte", "esm"), 1)


def every_head(family: str, **more: Any) -> dict[str, Case]:
    """A case of each head of a family; types of weights go round, and the base model is saved without its prefix."""
    found = {}
    for number, head in enumerate(FAMILIES[family].heads):
        checkpoint = {"dtype": DTYPES[number % 4], "bare": head == "model", "seed": number}
        found[f"{family}.{head}"] = Case(family, head, checkpoint, **more)
    return found


OLD_KEYS = {"global_attn_every_n_layers": 2, "global_rope_theta": 2000.0, "local_rope_theta": 2000.0}
NEW_KEYS = {
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "full_attention"],
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 5000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
    },
}
VERSION_2 = {
    "position_biased_input": True, "type_vocab_size": 2, "position_buckets": 0, "norm_rel_ebd": None,
    "share_att_key": False, "pos_att_type": ["c2p", "p2c"], "conv_kernel_size": 3, "conv_act": "gelu",
}  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 500.0}
ROPES: tuple[dict[str, Any], ...] = (
    {**ROPE, "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 4.0},
    {**ROPE, "rope_type": "linear", "factor": 4.0},
)  # fmt: skip
KINDS = ("full_attention", "sliding_attention")
MOSAIC = {  # which says nothing of the form of its layers
    "model_type": "bert", "alibi_starting_size": 16, "position_embedding_type": "absolute", "emb_pooler": None,
}  # fmt: skip
CAUSAL = {"use_bidirectional_attention": False}
WINDOWS = {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1}
EXPERTS = {  # nomic-embed-text-v2-moe's keys, which are those of older files
    **dict.fromkeys(key for key in FAMILIES["nomic_bert"].keys if key != "vocab_size"),
    "layer_norm_eps": None, "n_embd": 32, "n_layer": 4, "n_head": 2, "n_inner": 64, "n_positions": 64,
    "type_vocab_size": 1, "layer_norm_epsilon": 1e-5, "activation_function": "gelu",
    "rotary_emb_base": 10000.0, "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True,
    "moe_every_n_layers": 2, "num_experts": 4, "moe_top_k": 2, "moe_normalize_expert_weights": False,
    "expert_choice_router": False, "num_shared_experts": 0, "ffn_div": 1,
}  # fmt: skip
WIDE = {"num_key_value_heads": 1, "head_dim": 24}
NARROW = {"A": 3, "D": 8, "Q": 24}  # heads do not share the hidden size
CASES: dict[str, Case] = {
    **every_head("roberta"),
    "roberta.padding-inside": Case("roberta", "mlm", {"seed": 20}, padding=((0, 3), (2, 0), (2, 11))),
    "roberta.other-padding": Case("roberta", "model", {"seed": 21, "config": {"pad_token_id": 3}}),
    "roberta.relu": Case("roberta", "mlm", {"seed": 22, "config": {"hidden_act": "relu"}}),
    "roberta.limit": Case("roberta", "model", {"seed": 23}, lengths=(62, 61)),
    "xlm-roberta.mlm": Case("xlm-roberta", "mlm", {"seed": 24}),
    "camembert.classifier": Case("camembert", "classifier", {"seed": 25}),
    **every_head("distilbert"),
    "distilbert.relu": Case("distilbert", "mlm", {"seed": 30, "config": {"activation": "relu"}}),
    "distilbert.limit": Case("distilbert", "model", {"seed": 31}, lengths=(64, 3)),
    **every_head("mpnet"),
    "mpnet.beyond-its-buckets": Case("mpnet", "mlm", {"seed": 40, "sizes": {"P": 402}}, lengths=(400, 9, 129, 9)),
    **every_head("electra", segments=True),
    "electra.projected": Case("electra", "mlm", {"seed": 50, "sizes": {"E": 16}, "config": {"hidden_act": "relu"}}),
    "electra.projected-rtd": Case("electra", "rtd", {"seed": 51, "sizes": {"E": 16}, "config": {"hidden_act": "relu"}}),
    **every_head("modernbert"),
    "modernbert.mean": Case("modernbert", "classifier", {"seed": 60, "config": {"classifier_pooling": "mean"}}),
    "modernbert.mean-choice": Case(
        "modernbert", "multiple_choice", {"seed": 61, "config": {"classifier_pooling": "mean"}}
    ),
    "modernbert.old-keys": Case("modernbert", "mlm", {"seed": 62, "config": OLD_KEYS}),
    "modernbert.new-keys": Case("modernbert", "mlm", {"seed": 63, "config": NEW_KEYS}),
    "modernbert.far": Case("modernbert", "model", {"seed": 64, "sizes": {"P": 400}}, lengths=(300, 9, 73, 72)),
    **every_head("deberta-v2"),
    "deberta-v2.old": Case("deberta-v2", "mlm", {"seed": 70, "sizes": {"E": 16}, "config": VERSION_2}, segments=True),
    "deberta-v2.old-classifier": Case("deberta-v2", "classifier", {"seed": 71, "config": VERSION_2}, segments=True),
    "deberta-v2.one-term": Case(
        "deberta-v2", "model", {"seed": 72, "config": {"pos_att_type": ["c2p"], "share_att_key": False}}
    ),
    "deberta-v2.other-term": Case(
        "deberta-v2", "model", {"seed": 73, "config": {"pos_att_type": ["p2c"], "share_att_key": False}}
    ),
    "deberta-v2.far": Case("deberta-v2", "model", {"seed": 74, "sizes": {"P": 200}}, lengths=(190, 9, 70, 9)),
    **every_head("deberta"),
    "deberta.all-embeddings": Case(
        "deberta",
        "mlm",
        {"seed": 160, "sizes": {"E": 16}, "config": {"position_biased_input": True, "type_vocab_size": 2}},
        segments=True,
    ),
    "deberta.one-term": Case("deberta", "model", {"seed": 161, "config": {"pos_att_type": ["p2c"]}}),
    "deberta.clipped": Case(
        "deberta",
        "classifier",
        {"seed": 162, "sizes": {"R": 20}, "config": {"max_relative_positions": 20}},
        lengths=(60, 9, 33),
    ),
    **every_head("albert", segments=True),
    "albert.two-groups": Case(
        "albert", "classifier", {"seed": 80, "sizes": {"G": 2, "L": 5, "E": 16}, "config": {"hidden_act": "gelu"}}
    ),
    **every_head("nomic_bert", segments=True),
    "nomic_bert.old-names": Case("nomic_bert", "mlm", {"seed": 90, "old": True}, segments=True),
    "nomic_bert.limit": Case("nomic_bert", "model", {"seed": 91, "config": {"rope_parameters": ROPE}}, lengths=(64, 3)),
    "nomic_bert.experts": Case(
        "nomic_bert", "model", {"seed": 93, "old": "experts", "sizes": {"L": 4}, "config": EXPERTS}, lengths=(7, 1, 40)
    ),
    "nomic_bert.three-of-five": Case(
        "nomic_bert",
        "model",
        {
            "seed": 94,
            "old": "experts",
            "sizes": {"L": 4, "X": 5, "I": 320},
            "config": EXPERTS | {"num_experts": 5, "moe_top_k": 3},
        },
    ),
    **every_head("gte"),
    "gte.old-names": Case("gte", "classifier", {"seed": 95, "old": True}),
    "gte.old-mlm": Case("gte", "mlm", {"seed": 96, "old": True, "config": {"type_vocab_size": 0}}),
    "gte.linear": Case(
        "gte",
        "model",
        {"seed": 97, "config": {"rope_parameters": {**ROPE, "rope_type": "linear", "factor": 4.0}}},
        lengths=(64, 3),
    ),
    **every_head("eurobert"),
    **{
        f"eurobert.{heads}-key-heads": Case(
            "eurobert",
            "mlm",
            {"seed": 100 + heads, "sizes": {"A": 4, "M": 8 * heads}, "config": {"num_key_value_heads": heads}},
        )
        for heads in (1, 2, 4)
    },
    "eurobert.mean": Case("eurobert", "classifier", {"seed": 105, "config": {"classifier_pooling": "mean"}}),
    "eurobert.bos": Case("eurobert", "classifier", {"seed": 106, "config": {"classifier_pooling": "bos"}}),
    **every_head("gemma3_text"),
    "gemma3_text.wide": Case(
        "gemma3_text",
        "model",
        {"seed": 110, "sizes": {"Q": 48, "M": 24, "D": 24}, "config": {"num_key_value_heads": 1, "head_dim": 24}},
    ),
    "gemma3_text.far": Case("gemma3_text", "model", {"seed": 111, "sizes": {"P": 200}}, lengths=(190, 9, 90, 9)),
    "gemma3_text.causal": Case("gemma3_text", "classifier", {"seed": 112, "config": CAUSAL}, lengths=(30, 2, 12)),
    "gemma3_text.causal-far": Case(
        "gemma3_text", "model", {"seed": 113, "sizes": {"P": 300}, "config": CAUSAL}, lengths=(290, 9, 150)
    ),
    **every_head("qwen3"),
    "qwen3.tied": Case("qwen3", "lm", {"seed": 130, "config": {"tie_word_embeddings": True}}),
    "qwen3.wide": Case(
        "qwen3",
        "model",
        {
            "seed": 131,
            "sizes": {"Q": 48, "M": 24, "D": 24},
            "config": {"num_key_value_heads": 1, "head_dim": 24, "attention_bias": True},
        },
    ),
    "qwen3.far": Case("qwen3", "model", {"seed": 132, "sizes": {"P": 300}}, lengths=(290, 9, 150)),
    "qwen3.both-ways": Case("qwen3", "model", {"seed": 133, "config": {"is_causal": False}}),
    "qwen3.windows": Case("qwen3", "model", {"seed": 134, "config": WINDOWS}, lengths=(60, 9, 33)),
    "qwen3.windows-both-ways": Case(
        "qwen3", "model", {"seed": 135, "config": {**WINDOWS, "is_causal": False}}, lengths=(60, 9, 33)
    ),
    "qwen3.padding-at-the-end": Case("qwen3", "classifier", {"seed": 136}, padding=((0, 6), (1, 0), (1, 1), (2, 3))),
    **every_head("qwen2"),
    "qwen2.wide": Case("qwen2", "model", {"seed": 171, "sizes": {"Q": 48, "M": 24, "D": 24}, "config": WIDE}),
    "qwen2.both-ways": Case("qwen2", "model", {"seed": 172, "config": {"is_causal": False}}),
    "qwen2.windows": Case("qwen2", "lm", {"seed": 173, "config": WINDOWS}, lengths=(60, 9, 33)),
    **every_head("t5"),
    "t5.gated": Case("t5", "model", {"seed": 180, "sizes": NARROW, "config": {"feed_forward_proj": "gated-silu"}}),
    "t5.far": Case("t5", "model", {"seed": 181}, lengths=(290, 9, 150, 9)),
    "t5.buckets": Case("t5", "model", {"seed": 183, "sizes": {"N": 13}}, lengths=(290, 9, 150)),
    "t5.distance": Case(
        "t5", "model", {"seed": 185, "config": {"relative_attention_max_distance": 20}}, lengths=(70, 9, 40)
    ),
    **every_head("mt5"),
    **every_head("umt5"),
    "umt5.buckets": Case("umt5", "model", {"seed": 184, "sizes": {"N": 64}}, lengths=(290, 9, 150)),
    "umt5.distance": Case(
        "umt5", "model", {"seed": 186, "config": {"relative_attention_max_distance": 300}}, lengths=(290, 9, 150)
    ),
    "umt5.plain": Case("umt5", "model", {"seed": 182, "sizes": NARROW, "config": {"feed_forward_proj": "relu"}}),
    **{
        f"{family}.{rope['rope_type']}": Case(
            family,
            "model",
            {"seed": 140 + number, "config": {"rope_parameters": rope}},
            lengths=(64, 3),
        )
        for number, (family, rope) in enumerate(zip(("qwen3", "eurobert"), ROPES, strict=True))
    },
    "modernbert.yarn": Case(
        "modernbert",
        "model",
        {"seed": 145, "config": {"rope_parameters": {kind: {**ROPES[0], "rope_theta": 300.0} for kind in KINDS}}},
        lengths=(64, 3),
    ),
    "gemma3_text.linear": Case(
        "gemma3_text", "model", {"seed": 146, "config": {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}}
    ),
    **every_head("jina_bert", segments=True),
    "jina_bert.three-heads": Case(
        "jina_bert",
        "model",
        {"seed": 150, "sizes": {"H": 24, "A": 3}, "config": {"model_type": "bert", "feed_forward_type": "reglu"}},
    ),
    "jina_bert.far": Case("jina_bert", "model", {"seed": 151, "sizes": {"A": 4}}, lengths=(290, 9, 150)),
    "jina_bert.code": Case("jina_bert", "mlm", {"seed": 152, "old": "code", "config": {"model_type": "bert"}}),
    "jina_bert.code-classifier": Case("jina_bert", "classifier", {"seed": 153, "old": "code"}, segments=True),
    "jina_bert.mosaic": Case("jina_bert", "mlm", {"seed": 154, "old": "mosaic", "config": MOSAIC}),
    "jina_bert.mosaic-classifier": Case("jina_bert", "classifier", {"seed": 155, "old": "mosaic"}),
    **every_head("esm", masks=((0, 3), (2, 0), (2, 4), (2, 11))),
    "esm.no-dropout": Case("esm", "mlm", {"seed": 115, "config": {"token_dropout": False}}, masks=((0, 3),)),
    "esm.old-names": Case("esm", "model", {"seed": 116, "old": True}, lengths=(64, 3)),
    **every_head("ernie", segments=True),
    "ernie.no-task": Case("ernie", "mlm", {"seed": 120, "config": {"use_task_id": False}}, segments=True),
    "mpnet.other-padding": Case("mpnet", "model", {"seed": 41, "config": {"pad_token_id": 0}}),
}


def recorded_rows(batch: Batch) -> NDArray[np.int64]:
    """The packed rows of the first and last token of every sentence."""
    lengths = batch.mask.sum(axis=1)
    ends = np.cumsum(lengths)
    return np.unique(np.stack([ends - lengths, ends - 1]))
