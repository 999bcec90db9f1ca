"""DeBERTa-v2 and v3 in files: their keys in config.json and the names of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bertcli.checkpoint.config import Config, activation, choice, count, eps, layers, texts
from bertcli.checkpoint.families import Family
from bertcli.checkpoint.families.bert import EMBEDDINGS, FINE_TUNED, LAYER, MLM
from bertcli.errors import BertcliError, shown
from bertcli.lazy import cached_property
from bertcli.network.deberta import Deberta

TERMS = ("c2p", "p2c")


@dataclass(frozen=True)
class DebertaConfig(Config):
    """A DeBERTa-v2 configuration with config.json's own keys; the defaults are those of DeBERTa-v2's code."""

    vocab_size: int = count(128100, "V", needed=True)
    hidden_size: int = count(1536, "H", needed=True)
    num_hidden_layers: int = layers(24)
    num_attention_heads: int = count(24, "A", needed=True)
    intermediate_size: int = count(6144, "F", needed=True)
    hidden_act: str = activation()
    layer_norm_eps: float = eps(1e-7)
    max_position_embeddings: int = count(512, "P")
    type_vocab_size: int = count(0, "T", least=0)
    embedding_size: int | None = count(None)  # None: hidden_size
    position_biased_input: bool = True
    relative_attention: bool = False
    max_relative_positions: int = count(-1, least=-1)
    position_buckets: int = count(-1, least=-1)
    norm_rel_ebd: str = choice("none", "layer_norm")
    share_att_key: bool = False
    pos_att_type: tuple[str, ...] = ()
    conv_kernel_size: int = count(0, "W", least=0)
    conv_groups: int = choice(1)
    conv_act: str = activation("tanh")
    pooler_hidden_act: str = activation()
    pooler_hidden_size: int | None = None
    attention_head_size: int | None = None
    model_type: str = field(default="deberta-v2", kw_only=True)

    title: ClassVar[str] = "DeBERTa"

    @classmethod
    def prepared(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """With pos_att_type, "p2c|c2p" in older files, as a tuple."""
        terms = data.get("pos_att_type")
        listed = terms.lower().split("|") if isinstance(terms, str) else texts(data, "pos_att_type")
        return {**data, "pos_att_type": tuple(term.strip() for term in listed if term.strip())}

    def check(self) -> None:
        for key, value in (
            ("relative_attention", True),
            ("pooler_hidden_size", self.hidden_size),
            ("attention_head_size", self.sizes["D"]),
        ):
            if getattr(self, key) not in (value, None):
                raise BertcliError(f"{key} is {shown(getattr(self, key))}; bertcli runs DeBERTa with {shown(value)}.")
        for term in self.pos_att_type:
            if term not in TERMS:
                raise BertcliError(f"pos_att_type has {shown(term)}; known are {', '.join(TERMS)}.")
        if self.has_convolution and self.conv_kernel_size % 2 == 0:
            raise BertcliError(f"conv_kernel_size is {self.conv_kernel_size}; bertcli runs odd sizes.")
        if self.position_buckets == 1 or self.position_buckets // 2 >= self.farthest - 1:
            raise BertcliError(
                f"position_buckets is {self.position_buckets}; with {self.farthest} relative positions it must be 2 to "
                f"{2 * self.farthest - 3}, or -1 for none."
            )

    @cached_property
    def sizes(self) -> dict[str, int]:
        relative = 2 * (self.position_buckets if self.position_buckets > 0 else self.farthest)
        return super().sizes | {"E": self.embedding_size or self.hidden_size, "K": relative}

    @property
    def has_segments(self) -> bool:
        return self.type_vocab_size > 0

    @property
    def has_relative_norm(self) -> bool:
        """Whether a norm comes after the embeddings of relative positions."""
        return self.norm_rel_ebd == "layer_norm"

    @property
    def farthest(self) -> int:
        """How many relative positions there are in each direction."""
        return self.max_relative_positions if self.max_relative_positions > 0 else self.max_position_embeddings

    @property
    def content_to_position(self) -> bool:
        """Whether queries look at relative positions."""
        return "c2p" in self.pos_att_type

    @property
    def position_to_content(self) -> bool:
        """Whether relative positions look at keys."""
        return "p2c" in self.pos_att_type

    @property
    def has_position_key(self) -> bool:
        """Whether relative positions have a projection to keys of their own."""
        return self.content_to_position and not self.share_att_key

    @property
    def has_position_query(self) -> bool:
        """Whether relative positions have a projection to queries of their own."""
        return self.position_to_content and not self.share_att_key

    @property
    def has_convolution(self) -> bool:
        """Whether a convolution comes after the first layer."""
        return self.conv_kernel_size > 0

    @property
    def convolutions(self) -> tuple[bool, ...]:
        """Of every layer, whether a convolution comes after it."""
        return tuple(self.has_convolution and n == 0 for n in range(self.num_hidden_layers))


PUBLISHED: dict[str, Any] = {
    "position_biased_input": False, "relative_attention": True, "position_buckets": 256, "norm_rel_ebd": "layer_norm",
    "share_att_key": True, "pos_att_type": ("p2c", "c2p"),
}  # fmt: skip
LAYER_N = r"encoder\.layers\.(\d+)\."
FAMILY = Family(
    config=DebertaConfig,
    network=Deberta,
    prefix="deberta.",
    names=(
        *EMBEDDINGS,
        (r"embeddings\.projection\.(\w+)", r"embeddings.embed_proj.\1"),
        (LAYER_N + r"attention\.position_key\.(\w+)", r"encoder.layer.\1.attention.self.pos_key_proj.\2"),
        (LAYER_N + r"attention\.position_query\.(\w+)", r"encoder.layer.\1.attention.self.pos_query_proj.\2"),
        (LAYER_N + r"attention\.(query|key|value)\.(\w+)", r"encoder.layer.\1.attention.self.\2_proj.\3"),
        *LAYER,
        (LAYER_N + r"convolution\.norm\.(\w+)", r"encoder.conv.LayerNorm.\2"),
        (LAYER_N + r"convolution\.(\w+)", r"encoder.conv.conv.\2"),
        (r"encoder\.relative", "encoder.rel_embeddings.weight"),
        (r"encoder\.relative_norm\.(\w+)", r"encoder.LayerNorm.\1"),
        *MLM,
        (r"(?:classifier|multiple_choice)\.dense\.(\w+)", r"pooler.dense.\1"),
        *FINE_TUNED,
    ),
    hints={
        "mlm": "DeBERTa fills masks with cls.predictions.*; files with lm_predictions.* instead were trained for "
        "something else, so use another model."
    },
    variants={
        "deberta-v3-xsmall": DebertaConfig.sized(12, 384, **PUBLISHED),
        "deberta-v3-small": DebertaConfig.sized(6, 768, **PUBLISHED),
        "deberta-v3-base": DebertaConfig.sized(12, 768, **PUBLISHED),
        "deberta-v3-large": DebertaConfig.sized(24, 1024, **PUBLISHED),
        "deberta-v2-xlarge": DebertaConfig(conv_kernel_size=3, conv_act="gelu", attention_head_size=64, **PUBLISHED),
    },
)
