"""GTE (Zhang et al. 2024; gte-base-en-v1.5, gte-multilingual-base): NomicBERT with some biases, for longer texts."""

from typing import Any, ClassVar

from bertcli.engine.rope import Rope
from bertcli.models.bert import EMBEDDINGS, POOLER
from bertcli.models.config import choice, count, sized
from bertcli.models.nomic_bert import Embeddings, Encoder
from bertcli.models.registry import Family
from bertcli.models.roberta import LM_HEAD, MaskedLM
from bertcli.models.rope import GLOBAL, ROPE_TYPES, RotaryConfig
from bertcli.network.heads import Classifier, Network, Pooler, TokenClassifier
from bertcli.network.module import part


class Gte(Network):
    """Token ids to hidden states, with heads to apply to them"""

    embeddings: Embeddings = part()
    encoder: Encoder = part()
    pooler: Pooler | None = part()
    mlm: MaskedLM | None = part(features="H")
    classifier: Classifier | None = part()
    token_classifier: TokenClassifier | None = part()

    pooled: ClassVar = frozenset({"classifier"})


class GteConfig(RotaryConfig):
    """A GTE configuration with config.json's own keys; the defaults are those of gte-multilingual-base."""

    vocab_size: int = count(250048, "V", needed=True)
    layer_norm_type: str = choice("layer_norm")
    type_vocab_size: int = count(1, "T", least=0)
    logn_attention_scale: bool = choice(False)
    logn_attention_clip1: bool = choice(False)
    pad_token_id: int = 1
    model_type: str = "gte"

    title: ClassVar[str] = "GTE"
    rope_types: ClassVar = {**ROPE_TYPES, "ntk": ("factor",)}  # GTE's own: θ is larger, and the rates are lower
    theta_keys: ClassVar = {GLOBAL: ("rope_theta", 160000.0)}

    @property
    def has_segments(self) -> bool:
        return self.type_vocab_size > 1


# In newer and in older files.
NAMES = """
encoder.layers.#.attention.{query,key,value}.*        layers.#.self_attn.{q,k,v}_proj.*
                                                      encoder.layer.#.attention.qkv_proj.*[{0,1,2}/3]
encoder.layers.#.attention.output.*                   layers.#.self_attn.o_proj.*
                                                      encoder.layer.#.attention.o_proj.*
encoder.layers.#.attention_norm.*                     layers.#.post_attention_layernorm.*
                                                      encoder.layer.#.attn_ln.*
encoder.layers.#.feed_forward.{gate,intermediate}.*   layers.#.mlp.{up,gate}_proj.*
                                                      encoder.layer.#.mlp.up_gate_proj.*[{0,1}/2]
encoder.layers.#.feed_forward.output.*                layers.#.mlp.down_proj.*
                                                      encoder.layer.#.mlp.down_proj.*
encoder.layers.#.feed_forward_norm.*                  layers.#.post_mlp_layernorm.*
                                                      encoder.layer.#.mlp_ln.*
mlm.norm.*                                            lm_head.layer_norm.*   lm_head.norm.*
{classifier,token_classifier}.output.*                classifier.*
"""


def _ntk(rope_theta: float, factor: float) -> dict[str, Any]:
    return {"rope_parameters": {GLOBAL: Rope(rope_theta=rope_theta, rope_type="ntk", factor=factor)}}


FAMILY = Family(
    types={"gte": "Gte", "new": "New"},
    config=GteConfig,
    network=Gte,
    prefixes=("gte.", "new."),
    names=(NAMES, EMBEDDINGS, POOLER, LM_HEAD),
    base_pooler=False,
    custom_code=True,
    variants={
        "gte-multilingual-base": _ntk(20000.0, 8.0),
        "gte-base-en": sized(12, 768, vocab_size=30528, type_vocab_size=0, **_ntk(500000.0, 2.0)),
        "gte-large-en": sized(24, 1024, vocab_size=30528, type_vocab_size=2, **_ntk(160000.0, 2.0)),
    },
)
