"""Configurations of families with rotary positions or sliding windows, under config.json's older and newer keys.

Here is decided which rope types run, and how far each layer's window reaches. engine/rope.py has RoPE's formulas,
network/rotary.py the attention.
"""

from collections.abc import Mapping
from dataclasses import field, fields
from functools import cached_property
from typing import Any, ClassVar

from bertcli.engine.positions import Frequencies
from bertcli.engine.rope import Rope
from bertcli.errors import BertcliError, quoted
from bertcli.models.config import Config, check_fields, count, texts

# The rope types that run, and the keys that each needs.
ROPE_TYPES: Mapping[str, tuple[str, ...]] = {"default": (), "linear": ("factor",), "yarn": ()}
# Types of layers, as layer_types and rope_parameters call them: attention to all tokens, or in a sliding window.
GLOBAL, LOCAL = "full_attention", "sliding_attention"


class RotaryConfig(Config):
    """A configuration with rotary positions. position_embedding_type is not read: files have "absolute" or "rope".

    rope_parameters: a Rope for each type of layer.
    theta_keys: for each type of layer the key of θ in older files, and its default. With a single entry all layers are
    of one type.
    scaled: the types of layers that rope_scaling is about.
    """

    max_position_embeddings: int = count(8192, "P")
    rope_parameters: Mapping[str, Rope] = field(default_factory=dict)

    absolute: ClassVar[bool] = False
    rope_types: ClassVar[Mapping[str, tuple[str, ...]]] = ROPE_TYPES
    theta_keys: ClassVar[Mapping[str, tuple[str, float]]] = {GLOBAL: ("rope_theta", 10000.0)}
    scaled: ClassVar[tuple[str, ...]] = (GLOBAL, LOCAL)
    window_left: ClassVar[Any] = None
    window_right: ClassVar[Any] = None
    score_scale: ClassVar[Any] = 1

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Collect rope_parameters from the file's older or newer keys."""
        parameters, scaling = _object(data, "rope_parameters"), _object(data, "rope_scaling")
        differ_by_type = len(cls.theta_keys) > 1
        rope_type = parameters.get("rope_type", parameters.get("type"))
        if differ_by_type and rope_type not in (None, "default"):
            raise BertcliError(f"rope_parameters has rope_type {quoted(rope_type)} for no type of layer.")
        ropes = {}
        for layer_type, (theta_key, default) in cls.theta_keys.items():
            # The settings in the file, and the key that a message names.
            name, settings = ("rope_scaling", scaling) if scaling else ("rope_parameters", parameters)
            if differ_by_type:
                name = f"rope_parameters.{layer_type}"
                settings = _object(parameters, layer_type, name)
                if layer_type in cls.scaled:
                    settings |= scaling
                settings["truncate"] = parameters.get("truncate")  # where transformers looks for it
            elif any(isinstance(value, dict) for value in settings.values()):
                raise BertcliError(f"{name} is one for each type of layer; bertcli runs {cls.title} with one for all.")
            elif data.get("original_max_position_embeddings") is not None:
                settings = {**settings, "original_max_position_embeddings": data["original_max_position_embeddings"]}
            theta = default if data.get(theta_key) is None else data[theta_key]
            common = {"rope_theta": theta, "partial_rotary_factor": data.get("partial_rotary_factor")}
            given = {key: value for key, value in settings.items() if value is not None}
            ropes[layer_type] = _parse_rope({**common, **given}, name, cls.title, cls.rope_types)
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
    def type_of_layers(self) -> tuple[str, ...]:
        """The type of each layer, GLOBAL or LOCAL."""
        return (GLOBAL,) * self.num_hidden_layers

    @cached_property
    def ropes(self) -> tuple[Rope, ...]:
        """The RoPE settings of each layer."""
        first, *_ = self.theta_keys
        by_type = {layer_type: Rope(rope_theta=default) for layer_type, (_, default) in self.theta_keys.items()}
        by_type |= dict(self.rope_parameters)
        # A family with one θ has it in layers with windows, too.
        return tuple(by_type.get(layer_type) or by_type[first] for layer_type in self.type_of_layers)

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
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read newer files' layer_types, which override the older keys, and the fields of other `names`."""
        values = {**super().normalized(data), "layer_types": texts(data, "layer_types")}
        return values | {name: data.get(key) for key, name in cls.names.items()}

    def check(self) -> None:
        super().check()
        if self.layer_types and len(self.layer_types) != self.num_hidden_layers:
            raise BertcliError(f"layer_types names {len(self.layer_types)} of {self.num_hidden_layers} layers.")
        for layer_type in self.layer_types:
            if layer_type not in (GLOBAL, LOCAL):
                raise BertcliError(f"layer_types has {quoted(layer_type)}; known are '{GLOBAL}' and '{LOCAL}'.")

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
    def type_of_layers(self) -> tuple[str, ...]:
        """The type of each layer, GLOBAL or LOCAL."""
        return self.layer_types or tuple(LOCAL if self.is_local(n) else GLOBAL for n in range(self.num_hidden_layers))

    @property
    def window_left(self) -> tuple[int | None, ...]:
        """The number of positions that a token sees before it, for each layer; None: all."""
        return tuple(self.radius if layer_type == LOCAL else None for layer_type in self.type_of_layers)

    @property
    def window_right(self) -> tuple[int | None, ...]:
        """The number of positions that a token sees after it, for each layer; None: all."""
        return tuple(0 if self.causal else distance for distance in self.window_left)


def _parse_rope(data: Mapping[str, Any], name: str, title: str, types: Mapping[str, tuple[str, ...]]) -> Rope:
    """A Rope from the object called `name` in config.json; BertcliError for a rope_type that is not among `types`."""
    rope_type = data.get("rope_type", data.get("type", "default"))
    if not isinstance(rope_type, str) or rope_type not in types:
        raise BertcliError(f"{name} has rope_type {quoted(rope_type)}; bertcli runs {title} with {', '.join(types)}.")
    missing = [key for key in types[rope_type] if data.get(key) is None]
    if missing:
        raise BertcliError(f"{name} has rope_type {quoted(rope_type)} without {', '.join(missing)}.")
    if (data.get("partial_rotary_factor") or 1) != 1:
        raise BertcliError(f"{name} has a partial_rotary_factor; bertcli runs {title} without one.")
    values = {item.name: data[item.name] for item in fields(Rope) if data.get(item.name) is not None}
    rope = Rope(**values | {"rope_type": rope_type})
    check_fields(rope, title)
    return rope


def _object(data: Mapping[str, Any], key: str, name: str = "") -> dict[str, Any]:
    """A copy of an object in config.json, empty without it; BertcliError, by `name`, for a value of another type."""
    value = data.get(key) or {}
    if not isinstance(value, dict):
        raise BertcliError(f"{name or key} is {quoted(value)}, which is not an object.")
    return dict(value)
