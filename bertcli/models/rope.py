"""Configurations of families with rotary positions or windows: rope_parameters under older and newer keys, layer_types.

engine/rope.py has the formulas.
"""

from collections.abc import Mapping
from dataclasses import field, fields
from functools import cached_property
from typing import Any, ClassVar

from bertcli.engine.positions import Frequencies
from bertcli.engine.rope import Rope
from bertcli.errors import BertcliError, quoted
from bertcli.models.config import Config, check_fields, count, texts

# Of each rope_type that runs the keys that it needs.
TYPES: Mapping[str, tuple[str, ...]] = {"default": (), "linear": ("factor",), "yarn": ()}
# Those that transformers has, too; they ran up to version 0.7.
WITHDRAWN = ("dynamic", "longrope", "llama3")
GLOBAL, LOCAL = "full_attention", "sliding_attention"  # in layer_types and rope_parameters


class RotaryConfig(Config):
    """A configuration with rotary positions. position_embedding_type is not read: files have "absolute" or "rope".

    A key has θ in older files, with a default; a family with several has a Rope for each type of layer.
    """

    max_position_embeddings: int = count(8192, "P")
    rope_parameters: Mapping[str, Rope] = field(default_factory=dict)

    absolute: ClassVar[bool] = False
    rope_types: ClassVar[Mapping[str, tuple[str, ...]]] = TYPES  # those that run
    theta_keys: ClassVar[Mapping[str, tuple[str, float]]] = {GLOBAL: ("rope_theta", 10000.0)}
    scaled: ClassVar[tuple[str, ...]] = (GLOBAL, LOCAL)  # the types of layers that rope_scaling is about
    window_left: ClassVar[Any] = None
    window_right: ClassVar[Any] = None
    score_terms: ClassVar[Any] = 1

    @classmethod
    def from_older_keys(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Collect rope_parameters from the file's older or newer keys."""
        stated, scaling = _object(data, "rope_parameters"), _object(data, "rope_scaling")
        several, ropes = len(cls.theta_keys) > 1, {}
        kind = stated.get("rope_type", stated.get("type"))
        if several and kind not in (None, "default"):
            raise BertcliError(f"rope_parameters has rope_type {quoted(kind)} for no type of layer.")
        for layers, (key, default) in cls.theta_keys.items():
            name, found = ("rope_scaling", scaling) if scaling else ("rope_parameters", stated)
            if several:
                name = f"rope_parameters.{layers}"
                found = {**_object(stated, layers, name), **(scaling if layers in cls.scaled else {})}
                found["truncate"] = stated.get("truncate")  # where transformers looks for it
            elif any(isinstance(value, dict) for value in found.values()):
                raise BertcliError(f"{name} is one for each type of layer; bertcli runs {cls.title} with one for all.")
            elif data.get("original_max_position_embeddings") is not None:
                found = {**found, "original_max_position_embeddings": data["original_max_position_embeddings"]}
            base = default if data.get(key) is None else data[key]
            common = {"rope_theta": base, "partial_rotary_factor": data.get("partial_rotary_factor")}
            own = {key: value for key, value in found.items() if value is not None}
            ropes[layers] = _parsed({**common, **own}, name, cls.title, cls.rope_types)
        return {**data, "rope_parameters": ropes}

    def check(self) -> None:
        if self.sizes["D"] % 2:
            raise BertcliError(f"A head has {self.sizes['D']} numbers; rotary positions need an even number.")
        if self.num_attention_heads % self.key_heads:
            raise BertcliError(
                f"num_attention_heads {self.num_attention_heads} is not a multiple of num_key_value_heads "
                f"{self.key_heads}."
            )

    @cached_property
    def sizes(self) -> dict[str, int]:
        sizes = super().sizes
        sizes["D"] = getattr(self, "head_dim", None) or sizes["D"]
        return sizes | {"Q": sizes["A"] * sizes["D"], "M": self.key_heads * sizes["D"]}

    @property
    def key_heads(self) -> int:
        """Heads of keys and values; query heads share them evenly."""
        return getattr(self, "num_key_value_heads", None) or self.num_attention_heads

    @property
    def kinds(self) -> tuple[str, ...]:
        """The type of each layer."""
        return (GLOBAL,) * self.num_hidden_layers

    @cached_property
    def ropes(self) -> tuple[Rope, ...]:
        """The RoPE settings of each layer."""
        one, *_ = self.theta_keys
        own = {kind: Rope(rope_theta=default) for kind, (_, default) in self.theta_keys.items()}
        own |= dict(self.rope_parameters)
        return tuple(own.get(kind) or own[one] for kind in self.kinds)

    @property
    def max_tokens(self) -> int:
        return max(rope.longest(self.sizes["P"]) for rope in self.ropes)

    @cached_property
    def inverse_frequencies(self) -> tuple[Frequencies, ...]:
        """Rotary inverse frequencies of each layer's heads."""
        return tuple(rope.inverse_frequencies(self.sizes["D"], self.sizes["P"]) for rope in self.ropes)

    @property
    def rope_scaling(self) -> tuple[float, ...]:
        """The factor on cosines and sines of each layer."""
        return tuple(rope.scaling(self.sizes["P"]) for rope in self.ropes)


class LocalConfig(RotaryConfig):
    """A configuration in which some layers have sliding-window attention."""

    layer_types: tuple[str, ...] = ()

    names: ClassVar[Mapping[str, str]] = {"hidden_activation": "hidden_act"}

    @classmethod
    def from_older_keys(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """With newer files' layer_types, which override the older keys."""
        values = {**super().from_older_keys(data), "layer_types": texts(data, "layer_types")}
        return values | {name: data.get(key) for key, name in cls.names.items()}

    def check(self) -> None:
        super().check()
        if self.layer_types and len(self.layer_types) != self.num_hidden_layers:
            raise BertcliError(f"layer_types names {len(self.layer_types)} of {self.num_hidden_layers} layers.")
        for kind in self.layer_types:
            if kind not in (GLOBAL, LOCAL):
                raise BertcliError(f"layer_types has {quoted(kind)}; known are '{GLOBAL}' and '{LOCAL}'.")

    def is_local(self, layer: int) -> bool:
        """True for a layer with a window, if the file has no layer_types."""
        raise NotImplementedError

    @property
    def radius(self) -> int:
        """The largest distance of two tokens in layers with a window."""
        raise NotImplementedError

    @property
    def causal(self) -> bool:
        """True if a token sees only itself and earlier tokens."""
        return False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The type of each layer: global or local attention."""
        return self.layer_types or tuple(LOCAL if self.is_local(n) else GLOBAL for n in range(self.num_hidden_layers))

    @property
    def window_left(self) -> tuple[int | None, ...]:
        """The number of positions that a token sees before it, for each layer; None: all."""
        return tuple(self.radius if kind == LOCAL else None for kind in self.kinds)

    @property
    def window_right(self) -> tuple[int | None, ...]:
        """The number of positions that a token sees after it, for each layer; None: all."""
        return tuple(0 if self.causal else distance for distance in self.window_left)


def _parsed(data: Mapping[str, Any], name: str, title: str, types: Mapping[str, tuple[str, ...]]) -> Rope:
    """A Rope from the object called `name` in config.json; BertcliError for a rope_type that is not among `types`."""
    kind = data.get("rope_type", data.get("type", "default"))
    if kind in WITHDRAWN:
        raise BertcliError(
            f"{name} has rope_type {quoted(kind)}, which bertcli no longer runs; it runs {title} with "
            f"{', '.join(types)}. Use transformers for this model."
        )
    if not isinstance(kind, str) or kind not in types:
        raise BertcliError(f"{name} has rope_type {quoted(kind)}; bertcli runs {title} with {', '.join(types)}.")
    missing = [key for key in types[kind] if data.get(key) is None]
    if missing:
        raise BertcliError(f"{name} has rope_type {quoted(kind)} without {', '.join(missing)}.")
    if (data.get("partial_rotary_factor") or 1) != 1:
        raise BertcliError(f"{name} has a partial_rotary_factor; bertcli runs {title} without one.")
    values = {item.name: data[item.name] for item in fields(Rope) if data.get(item.name) is not None}
    rope = Rope(**values | {"rope_type": kind})
    check_fields(rope, title)
    return rope


def _object(data: Mapping[str, Any], key: str, name: str = "") -> dict[str, Any]:
    value = data.get(key) or {}
    if not isinstance(value, dict):
        raise BertcliError(f"{name or key} is {quoted(value)}, which is not an object.")
    return dict(value)
