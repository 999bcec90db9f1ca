"""GTE (Zhang et al. 2024; gte-base-en-v1.5, gte-multilingual-base): NomicBERT with some biases, for longer texts."""

from typing import Any, ClassVar

from bertcli.engine.rope import Rope
from bertcli.models.bert import EMBEDDINGS, POOLER
from bertcli.models.config import choice, count
from bertcli.models.nomic_bert import Embeddings, Encoder
from bertcli.models.registry import Family, layer_names
from bertcli.models.roberta import LM_HEAD, MaskedLM
from bertcli.models.rope import GLOBAL, TYPES, RotaryConfig
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
    rope_types: ClassVar = {**TYPES, "ntk": ("factor",)}  # GTE's own: θ is larger, and the rates are lower
    theta_keys: ClassVar = {GLOBAL: ("rope_theta", 160000.0)}

    @property
    def has_segments(self) -> bool:
        return self.type_vocab_size > 1


# Our path in a layer, and what newer and older files call it.
LAYER = """
attention.query             self_attn.q_proj           attention.qkv_proj[0/3]
attention.key               self_attn.k_proj           attention.qkv_proj[1/3]
attention.value             self_attn.v_proj           attention.qkv_proj[2/3]
attention.output            self_attn.o_proj           attention.o_proj
attention_norm              post_attention_layernorm   attn_ln
feed_forward.gate           mlp.up_proj                mlp.up_gate_proj[0/2]
feed_forward.intermediate   mlp.gate_proj              mlp.up_gate_proj[1/2]
feed_forward.output         mlp.down_proj              mlp.down_proj
feed_forward_norm           post_mlp_layernorm         mlp_ln
"""


def _ntk(rope_theta: float, factor: float) -> dict[str, Any]:
    return {"rope_parameters": {GLOBAL: Rope(rope_theta=rope_theta, rope_type="ntk", factor=factor)}}


FAMILY = Family(
    types={"gte": "Gte", "new": "New"},
    config=GteConfig,
    network=Gte,
    prefixes=("gte.", "new."),
    names=(
        *EMBEDDINGS,
        *layer_names(LAYER, "layers", "encoder.layer"),
        *POOLER,
        (r"mlm\.norm\.(\w+)", r"lm_head.layer_norm.\1", r"lm_head.norm.\1"),
        *LM_HEAD,
        (r"(?:token_)?classifier\.output\.(\w+)", r"classifier.\1"),
    ),
    base_pooler=False,
    custom_code=True,
    variants={
        "gte-multilingual-base": GteConfig(**_ntk(20000.0, 8.0)),
        "gte-base-en": GteConfig.sized(12, 768, vocab_size=30528, type_vocab_size=0, **_ntk(500000.0, 2.0)),
        "gte-large-en": GteConfig.sized(24, 1024, vocab_size=30528, type_vocab_size=2, **_ntk(160000.0, 2.0)),
    },
)
