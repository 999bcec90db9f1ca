"""MPNet in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import count
from bertcli.checkpoint.families import Family
from bertcli.checkpoint.families.bert import EMBEDDINGS, POOLER
from bertcli.checkpoint.families.roberta import FINE_TUNED, LM_HEAD, RobertaConfig
from bertcli.network.mpnet import MPNet


@dataclass(frozen=True)
class MPNetConfig(RobertaConfig):
    """An MPNet configuration with config.json's own keys; the defaults are those of MPNet's code."""

    vocab_size: int = count(30527, "V", needed=True)
    model_type: str = field(default="mpnet", kw_only=True)

    title: ClassVar[str] = "MPNet"

    @property
    def max_tokens(self) -> int:
        return self.max_position_embeddings - 2  # positions begin at 2, whatever pad_token_id says


FAMILY = Family(
    config=MPNetConfig,
    network=MPNet,
    prefix="mpnet.",
    names=(
        *EMBEDDINGS,
        (r"encoder\.relative", "encoder.relative_attention_bias.weight"),
        (r"encoder\.layers\.(\d+)\.attention\.query\.(\w+)", r"encoder.layer.\1.attention.attn.q.\2"),
        (r"encoder\.layers\.(\d+)\.attention\.key\.(\w+)", r"encoder.layer.\1.attention.attn.k.\2"),
        (r"encoder\.layers\.(\d+)\.attention\.value\.(\w+)", r"encoder.layer.\1.attention.attn.v.\2"),
        (r"encoder\.layers\.(\d+)\.attention\.output\.(\w+)", r"encoder.layer.\1.attention.attn.o.\2"),
        (r"encoder\.layers\.(\d+)\.attention_norm\.(\w+)", r"encoder.layer.\1.attention.LayerNorm.\2"),
        (r"encoder\.layers\.(\d+)\.feed_forward\.(intermediate|output)\.(\w+)", r"encoder.layer.\1.\2.dense.\3"),
        (r"encoder\.layers\.(\d+)\.feed_forward_norm\.(\w+)", r"encoder.layer.\1.output.LayerNorm.\2"),
        *POOLER,
        *LM_HEAD,
        *FINE_TUNED,
    ),
    variants={"mpnet-base": MPNetConfig(layer_norm_eps=1e-5, max_position_embeddings=514)},
)
