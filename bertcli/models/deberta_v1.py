"""DeBERTa of version 1 (He et al. 2020; deberta-base, nli-deberta-base): every relative position has an embedding of
its own, one tensor holds queries, keys and values head by head, and keys have no biases.
"""

from collections.abc import Mapping
from typing import Any

from bertcli.models import deberta
from bertcli.models.bert import EMBEDDINGS, FINE_TUNED, LAYER, MLM
from bertcli.models.config import choice, count
from bertcli.models.registry import LAYER_PATH, Family
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


OWN = r"encoder.layer.\1.attention.self."
PUBLISHED: dict[str, Any] = {
    "position_biased_input": False, "relative_attention": True, "pos_att_type": deberta.TERMS,
}  # fmt: skip
FAMILY = Family(
    types={"deberta": "Deberta"},
    config=DebertaV1Config,
    zero_masked_embeddings=True,
    network=Deberta,
    prefixes=("deberta.",),
    names=(
        *EMBEDDINGS,
        (r"embeddings\.projection\.(\w+)", r"embeddings.embed_proj.\1"),
        (LAYER_PATH + r"attention\.query\.weight", OWN + "in_proj.weight[0/3 of a head]"),
        (LAYER_PATH + r"attention\.key\.weight", OWN + "in_proj.weight[1/3 of a head]"),
        (LAYER_PATH + r"attention\.value\.weight", OWN + "in_proj.weight[2/3 of a head]"),
        (LAYER_PATH + r"attention\.query\.bias", OWN + "q_bias"),
        (LAYER_PATH + r"attention\.value\.bias", OWN + "v_bias"),
        (LAYER_PATH + r"attention\.position_key\.(\w+)", OWN + r"pos_proj.\2"),
        (LAYER_PATH + r"attention\.position_query\.(\w+)", OWN + r"pos_q_proj.\2"),
        *LAYER,
        (r"encoder\.relative", "encoder.rel_embeddings.weight"),
        *MLM,
        (r"classifier\.dense\.(\w+)", r"pooler.dense.\1"),
        *FINE_TUNED,
    ),
    without_lora=deberta.FAMILY.without_lora,
    ignored_prefixes=deberta.FAMILY.ignored_prefixes,
    hints=deberta.FAMILY.hints,
    variants={
        "deberta-base": DebertaV1Config.sized(12, 768, **PUBLISHED),
        "deberta-large": DebertaV1Config.sized(24, 1024, **PUBLISHED),
    },
)
