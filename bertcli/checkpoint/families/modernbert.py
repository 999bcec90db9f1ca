"""ModernBERT in files: its keys in config.json and the names of its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bertcli.checkpoint.config import Config, activation, choice, count, eps, layers, number, texts
from bertcli.checkpoint.families import Family
from bertcli.errors import BertcliError, shown
from bertcli.network.modernbert import ModernBert

GLOBAL, LOCAL = "full_attention", "sliding_attention"  # in layer_types and rope_parameters


@dataclass(frozen=True)
class ModernBertConfig(Config):
    """A ModernBERT configuration with config.json's own keys; the defaults are those of ModernBERT-base."""

    vocab_size: int = count(50368, "V", needed=True)
    hidden_size: int = count(768, "H", needed=True)
    num_hidden_layers: int = layers(22)
    num_attention_heads: int = count(12, "A", needed=True)
    intermediate_size: int = count(1152, "F", needed=True)
    hidden_activation: str = activation()
    norm_eps: float = eps(1e-5)
    max_position_embeddings: int = count(8192, "P")
    local_attention: int = count(128)
    global_attn_every_n_layers: int = count(3)
    global_rope_theta: float = number(160000.0, 2, 1e12)
    local_rope_theta: float = number(10000.0, 2, 1e12)
    layer_types: tuple[str, ...] = ()
    classifier_pooling: str = choice("cls", "mean")
    classifier_activation: str = activation()
    norm_bias: bool = choice(False)
    attention_bias: bool = choice(False)
    mlp_bias: bool = choice(False)
    classifier_bias: bool = choice(False)
    decoder_bias: bool = choice(True)
    pad_token_id: int = field(default=50283, kw_only=True)
    model_type: str = field(default="modernbert", kw_only=True)

    title: ClassVar[str] = "ModernBERT"
    absolute: ClassVar[bool] = False  # files say "absolute" or "sans_pos", and mean neither

    @classmethod
    def prepared(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """With newer files' layer_types and rope_parameters, which override the older keys."""
        found = dict(data) | {"layer_types": texts(data, "layer_types")}
        _check_rope("rope_scaling", data.get("rope_scaling"))
        ropes = data.get("rope_parameters") or {}
        if not isinstance(ropes, dict):
            raise BertcliError(f"rope_parameters is {shown(ropes)}, which is not an object.")
        for kind, key in ((GLOBAL, "global_rope_theta"), (LOCAL, "local_rope_theta")):
            rope = ropes.get(kind) or {}
            _check_rope(f"rope_parameters.{kind}", rope)
            if rope.get("rope_theta") is not None:
                found[key] = rope["rope_theta"]
        if "local_rope_theta" in found and found["local_rope_theta"] is None:  # not the default: that of global layers
            found["local_rope_theta"] = found.get("global_rope_theta", cls.global_rope_theta)
        return found

    def check(self) -> None:
        if self.sizes["D"] % 2:
            raise BertcliError(f"A head has {self.sizes['D']} numbers; rotary positions need an even number.")
        if self.layer_types and len(self.layer_types) != self.num_hidden_layers:
            raise BertcliError(f"layer_types names {len(self.layer_types)} of {self.num_hidden_layers} layers.")
        for kind in self.layer_types:
            if kind not in (GLOBAL, LOCAL):
                raise BertcliError(f"layer_types has {shown(kind)}; known are '{GLOBAL}' and '{LOCAL}'.")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of every layer, whether its attention is global or local."""
        every = self.global_attn_every_n_layers
        return self.layer_types or tuple(LOCAL if n % every else GLOBAL for n in range(self.num_hidden_layers))

    @property
    def windows(self) -> tuple[int | None, ...]:
        """Of every layer, how far it sees."""
        return tuple(self.local_attention // 2 if kind == LOCAL else None for kind in self.kinds)

    @property
    def thetas(self) -> tuple[float, ...]:
        """Of every layer, what its rotations are made from."""
        return tuple(self.local_rope_theta if kind == LOCAL else self.global_rope_theta for kind in self.kinds)

    @property
    def attention_norms(self) -> tuple[bool, ...]:
        """Of every layer, whether a norm comes before its attention."""
        return tuple(n > 0 for n in range(self.num_hidden_layers))


def _check_rope(key: str, rope: Any) -> None:
    """Refuse anything but plain rotary positions."""
    if not isinstance(rope or {}, dict):
        raise BertcliError(f"{key} is {shown(rope)}, which is not an object.")
    kind = (rope or {}).get("rope_type", (rope or {}).get("type", "default"))
    if kind != "default":
        raise BertcliError(f"{key} has rope_type {shown(kind)}; bertcli runs ModernBERT with 'default' only.")


LAYER = r"encoder\.layers\.(\d+)\."
FAMILY = Family(
    config=ModernBertConfig,
    network=ModernBert,
    prefix="model.",
    names=(
        (r"embeddings\.token", "embeddings.tok_embeddings.weight"),
        (r"embeddings\.norm\.(\w+)", r"embeddings.norm.\1"),
        (LAYER + r"attention_norm\.(\w+)", r"layers.\1.attn_norm.\2"),
        (LAYER + r"attention\.query\.(\w+)", r"layers.\1.attn.Wqkv.\2[0/3]"),
        (LAYER + r"attention\.key\.(\w+)", r"layers.\1.attn.Wqkv.\2[1/3]"),
        (LAYER + r"attention\.value\.(\w+)", r"layers.\1.attn.Wqkv.\2[2/3]"),
        (LAYER + r"attention\.output\.(\w+)", r"layers.\1.attn.Wo.\2"),
        (LAYER + r"feed_forward_norm\.(\w+)", r"layers.\1.mlp_norm.\2"),
        (LAYER + r"feed_forward\.intermediate\.(\w+)", r"layers.\1.mlp.Wi.\2[0/2]"),
        (LAYER + r"feed_forward\.gate\.(\w+)", r"layers.\1.mlp.Wi.\2[1/2]"),
        (LAYER + r"feed_forward\.output\.(\w+)", r"layers.\1.mlp.Wo.\2"),
        (r"encoder\.norm\.(\w+)", r"final_norm.\1"),
        (r"\w+\.transform\.(dense|norm)\.(\w+)", r"head.\1.\2"),
        (r"mlm\.decoder", "decoder.weight"),
        (r"mlm\.bias", "decoder.bias"),
        (r"(?:classifier|token_classifier|qa|multiple_choice)\.output\.(\w+)", r"classifier.\1"),
    ),
    variants={
        "modernbert-base": ModernBertConfig(),
        "modernbert-large": ModernBertConfig(
            hidden_size=1024, num_hidden_layers=28, num_attention_heads=16, intermediate_size=2624
        ),
    },
)
