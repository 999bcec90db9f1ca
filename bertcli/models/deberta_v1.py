"""DeBERTa of version 1 (He et al. 2020; deberta-base, nli-deberta-base): every relative position has an embedding of
its own, one tensor holds queries, keys and values head by head, and keys have no biases.
"""

from collections.abc import Mapping
from typing import Any

from bertcli.models import deberta
from bertcli.models.bert import EMBEDDINGS, FINE_TUNED, LAYER, MLM
from bertcli.models.config import choice, count, sized
from bertcli.models.registry import Family
from bertcli.network.encoder import Linear
from bertcli.network.module import part, parts


class SelfAttention(deberta.SelfAttention):
    """DeBERTa-v2's attention without biases of keys"""

    key: Linear = part(outputs="H", inputs="H", bias=False)
    position_key: Linear | None = part(when="has_position_key", outputs="H", inputs="H", bias=False)


class EncoderLayer(deberta.EncoderLayer):
    """BERT's, with attention that looks at positions"""

    attention: SelfAttention = part()


class Encoder(deberta.Encoder):
    """L encoder layers, one after the other, and what they share: an embedding of every relative position"""

    layers: tuple[EncoderLayer, ...] = parts("L")


class Deberta(deberta.Deberta):
    """Token ids to hidden states, with heads to apply to them"""

    encoder: Encoder = part()


class DebertaV1Config(deberta.DebertaConfig):
    """A DeBERTa configuration with config.json's own keys; the defaults are those of DeBERTa's code."""

    vocab_size: int = count(50265, "V", needed=True)
    talking_head: bool = choice(False)
    legacy: bool = choice(True)
    model_type: str = "deberta"

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Without the keys of version 2, which this code does not read."""
        later = ("position_buckets", "norm_rel_ebd", "share_att_key", "conv_kernel_size")
        return super().normalized({key: value for key, value in data.items() if key not in later})


NAMES = """
embeddings.projection.*                               embeddings.embed_proj.*
encoder.layers.#.attention.{query,key,value}.weight   encoder.layer.#.attention.self.in_proj.weight[{0,1,2}/3 of a head]
encoder.layers.#.attention.{query,value}.bias         encoder.layer.#.attention.self.{q,v}_bias
encoder.layers.#.attention.position_key.*             encoder.layer.#.attention.self.pos_proj.*
encoder.layers.#.attention.position_query.*           encoder.layer.#.attention.self.pos_q_proj.*
encoder.relative                                      encoder.rel_embeddings.weight
classifier.dense.*                                    pooler.dense.*
"""
PUBLISHED: dict[str, Any] = {
    "position_biased_input": False, "relative_attention": True, "pos_att_type": deberta.TERMS,
}  # fmt: skip
FAMILY = Family(
    types={"deberta": "Deberta"},
    config=DebertaV1Config,
    zero_masked_embeddings=True,
    network=Deberta,
    prefixes=("deberta.",),
    names=(NAMES, EMBEDDINGS, LAYER, MLM, FINE_TUNED),
    without_lora=deberta.FAMILY.without_lora,
    ignored_prefixes=deberta.FAMILY.ignored_prefixes,
    hints=deberta.FAMILY.hints,
    variants={
        "deberta-base": sized(12, 768, **PUBLISHED),
        "deberta-large": sized(24, 1024, **PUBLISHED),
    },
)
