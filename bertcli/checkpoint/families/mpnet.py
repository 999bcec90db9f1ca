"""MPNet in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from bertcli.checkpoint.config import count
from bertcli.checkpoint.families.bert import BUFFERS, EMBEDDINGS, POOLER, BertConfig
from bertcli.checkpoint.families.roberta import FINE_TUNED, HEADS, LM_HEAD
from bertcli.checkpoint.family import Family
from bertcli.errors import BertcliError
from bertcli.network.mpnet import MPNet


@dataclass(frozen=True)
class MPNetConfig(BertConfig):
    """An MPNet configuration with config.json's own keys; the defaults are those of MPNet's code."""

    vocab_size: int = count(30527, needed=True)
    pad_token_id: int = field(default=1, kw_only=True)
    model_type: str = field(default="mpnet", kw_only=True)

    title: ClassVar[str] = "MPNet"

    def check(self) -> None:
        super().check()
        if self.max_tokens < 1:
            raise BertcliError(f"max_position_embeddings is {self.max_position_embeddings}; it must be at least 3.")

    @property
    def max_tokens(self) -> int:
        return self.max_position_embeddings - 2  # positions begin at 2, whatever pad_token_id says

    @property
    def has_segments(self) -> bool:
        return False


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
    other_names={"lm_head.bias": "lm_head.decoder.bias"},
    buffers=BUFFERS,
    heads=HEADS,
    variants={"mpnet-base": MPNetConfig(layer_norm_eps=1e-5, max_position_embeddings=514)},
)
