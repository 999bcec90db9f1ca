"""The base class of all configurations: config.json's keys as fields, read and checked.

A family's configuration is a frozen dataclass whose fields are config.json's own keys with the defaults of the family's
code. A field says which values it may have, and a size of which axis it is. Keys that are not fields are not read;
older files lack most of them. Which family a file belongs to is decided in registry.py.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self, dataclass_transform

from bertcli.engine.kernels import ACTIVATIONS
from bertcli.errors import BertcliError, quoted
from bertcli.network.axes import listed_at

MOST_LAYERS = 1000
LARGEST_SIZE = 1 << 24  # far above any encoder; anything larger is a mistake, or an attempt to exhaust memory
MOST_SENTENCES = 1 << 20


def count(
    default: int | None, axis: str = "", *, least: int = 1, most: int = LARGEST_SIZE, needed: bool = False
) -> Any:
    """Field: a whole number from `least` to `most`, the size of an axis (network/axes.py says which there are).

    With `needed` a config.json without it is refused.
    """
    return field(default=default, metadata={"axis": axis, "range": (least, most), "needed": needed})


def layers(default: int) -> Any:
    """Field: the number of encoder layers."""
    return count(default, "L", most=MOST_LAYERS, needed=True)


def choice(*values: Any, heads: tuple[str, ...] = ()) -> Any:
    """Field: one of these values; the first is the default. heads: those that alone read it; none: the network does."""
    return field(default=values[0], metadata={"choices": values, "heads": heads})


def activation(default: str = "gelu", heads: tuple[str, ...] = ()) -> Any:
    """Field: the name of an activation; `heads` as of `choice`."""
    return choice(default, *(name for name in ACTIVATIONS if name != default), heads=heads)


def number(default: float, least: float, most: float) -> Any:
    """Field: a number from `least` to `most`."""
    return field(default=default, metadata={"range": (least, most)})


def theta(default: float) -> Any:
    """Field: the base of rotary positions."""
    return number(default, 2, 1e12)


def eps(default: float) -> Any:
    """Field: the epsilon that a norm adds to the variance."""
    return number(default, 1e-30, 0.1)


def sized(layers: int, hidden: int, **others: Any) -> dict[str, Any]:
    """Fields of a published size: unless others are given, a head for every 64 numbers, and four times as many inside.

    For the `variants` of a family (registry.py), whose configuration is built when one is asked for.
    """
    sizes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": hidden // 64}
    return {**sizes, "intermediate_size": 4 * hidden, **others}


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Config:
    """The keys of all families, under BERT's names, and the properties that the package reads from a configuration."""

    vocab_size: int = count(30522, "V", needed=True)
    hidden_size: int = count(768, "H", needed=True)
    num_hidden_layers: int = layers(12)
    num_attention_heads: int = count(12, "A", needed=True)
    intermediate_size: int = count(3072, "F", needed=True)
    hidden_act: str = activation()
    layer_norm_eps: float = eps(1e-12)
    max_position_embeddings: int = count(512, "P")
    pad_token_id: int = 0
    tie_word_embeddings: bool = True
    num_labels: int = count(2, "C")
    id2label: Mapping[int, str] = field(default_factory=dict)
    problem_type: str | None = None
    model_type: str = ""
    architectures: tuple[str, ...] = ()

    title: ClassVar[str]  # the family's name, for messages
    names: ClassVar[Mapping[str, str]] = {}  # config.json's own names of these fields, where a family has others
    absolute: ClassVar[bool] = True  # whether the key position_embedding_type means something
    contextual: ClassVar[bool] = True  # whether a token's vector depends on the tokens around it

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        check_fields(self, self.title, self.key)
        if getattr(self, "head_dim", None) is None and self.sizes["H"] % self.sizes["A"]:
            size, number = self.sizes["H"], self.sizes["A"]
            keys = {item.metadata.get("axis"): self.key(item.name) for item in fields(self)}
            divisors = [n for n in range(1, size + 1) if size % n == 0]
            near = sorted(divisors, key=lambda n: abs(n - number))[:3]
            raise BertcliError(
                f"{keys['H']} {size} cannot be split over {keys['A']} {number}; "
                f"possible numbers are, for example, {', '.join(map(str, sorted(near)))}."
            )
        self.check()

    def check(self) -> None:
        """Raise BertcliError for values that do not fit together."""

    @classmethod
    def key(cls, name: str) -> str:
        """Return a field's name in config.json, the newer one if there are two."""
        return next((key for key, field_name in cls.names.items() if field_name == name), name)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Map every axis' symbol to its size."""
        with_axis = [item for item in fields(self) if item.metadata.get("axis")]
        by_axis = {item.metadata["axis"]: getattr(self, item.name) for item in with_axis}
        by_axis["D"] = by_axis["H"] // by_axis["A"]
        return {axis: by_axis[axis] for axis in sorted(by_axis, key=listed_at)}

    @property
    def has_projection(self) -> bool:
        """True if embeddings are projected to the width of the layers."""
        return self.sizes.get("E", self.sizes["H"]) != self.sizes["H"]

    @property
    def aliases(self) -> dict[str, str]:
        """Symbols of axes that are another axis in this model."""
        return {axis: "H" for axis in "EQM" if self.sizes.get(axis, self.sizes["H"]) == self.sizes["H"]}

    @property
    def max_tokens(self) -> int:
        """The number of tokens in the longest text that the model has positions for."""
        return self.sizes["P"]

    @property
    def has_segments(self) -> bool:
        """True if the model reads segment ids; otherwise the tokenizer's are ignored."""
        return False

    @property
    def segment_count(self) -> int:
        """The number of segments; 1 for a model without segments, where every token has segment 0."""
        return self.sizes["T"] if self.has_segments else 1

    @property
    def labels(self) -> list[str]:
        """Name of every label: from id2label, else LABEL_0, LABEL_1, …

        transformers 2 wrote an id2label of two beside any num_labels. As in transformers, the number then counts.
        """
        names = self.id2label if len(self.id2label) == self.num_labels else {}
        return [names.get(i, f"LABEL_{i}") for i in range(self.num_labels)]

    @property
    def idle_parameters(self) -> int:
        """Count the parameters that a token does not use, because it is routed to a few experts only."""
        return 0

    def check_input(self, batch: int | None, sequence: int | None) -> None:
        """Raise BertcliError for an impossible number of sentences, or of tokens in each; None means any."""
        longest = self.max_tokens
        if sequence is not None and not 1 <= sequence <= longest:
            raise BertcliError(
                f"A sequence length of {sequence} is not possible; with this model it must be 1 to {longest}."
            )
        if batch is not None and not 1 <= batch <= MOST_SENTENCES:
            raise BertcliError(f"A batch size of {batch} is not possible; it must be 1 to {MOST_SENTENCES:,}.")

    def with_stored(self, stored: Mapping[str, Any]) -> Self:
        """Return a copy with settings that a family stores as tensors (`StoredTensor` by name)."""
        return self

    def stored_path(self, path: str) -> str:
        """Return the path in the file's numbering, for a layer whose weights several layers share."""
        return path

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """The configuration from config.json's keys; BertcliError for keys that are missing or make no sense."""
        data = cls.normalized(data)
        cls._refuse_what_does_not_run(data)
        values = {item.name: data[item.name] for item in fields(cls) if data.get(item.name) is not None}
        values |= {"architectures": texts(data, "architectures"), "id2label": _labels(data.get("id2label"))}
        if values["id2label"]:
            values.setdefault("num_labels", len(values["id2label"]))
        return cls(**values)

    @classmethod
    def normalized(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """config.json's keys in the form of the fields, lists as checked tuples, for a family that has any."""
        return data

    @classmethod
    def _refuse_what_does_not_run(cls, data: Mapping[str, Any]) -> None:
        positions = data.get("position_embedding_type") or "absolute"
        if cls.absolute and positions != "absolute":
            raise BertcliError(
                f"position_embedding_type {quoted(positions)} is not supported; {cls.title} uses 'absolute'."
            )
        if cls.absolute and data.get("alibi_starting_size") is not None:
            raise BertcliError(
                f"alibi_starting_size is {quoted(data['alibi_starting_size'])}: attention with ALiBi is not supported; "
                f"{cls.title} has embeddings of positions."
            )
        for key in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
            if data.get(key):
                raise BertcliError(f"{key} is true: this {cls.title} is a decoder, which bertcli does not run.")
        pruned = data.get("pruned_heads")
        if pruned and not (isinstance(pruned, dict) and not any(pruned.values())):
            raise BertcliError(
                f"pruned_heads is {quoted(pruned)}: these attention heads were cut out of the layers, and bertcli runs "
                "only layers that have all their heads. Use the model as it was before pruning."
            )
        needed = [item.name for item in fields(cls) if item.metadata.get("needed")]
        missing = [cls.key(name) for name in needed if data.get(name) is None]
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            raise BertcliError(f"{', '.join(missing)} {verb} missing: this is not the config.json of {cls.title}.")

    def check_heads(self, heads: Collection[str]) -> None:
        """Raise BertcliError for a setting that bertcli does not run and that one of these heads reads."""
        for item in fields(self):
            if {*item.metadata.get("heads", ())}.intersection(heads):
                _check_choice(self.key(item.name), getattr(self, item.name), item.metadata, self.title)


def renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """config.json's keys without nulls, older ones under their newer `names`; where both are there, the newer one."""
    given = {key: value for key, value in data.items() if value is not None}
    older = {newer: given.pop(key) for key, newer in names.items() if key in given}
    return older | given


def agreed(data: Mapping[str, Any], key: str, other: str) -> None:
    """Raise BertcliError where two names of one setting have different values."""
    if data.get(key) is not None and data.get(other) is not None and data[key] != data[other]:
        raise BertcliError(
            f"{key} is {quoted(data[key])}, and {other}, which is the same setting, {quoted(data[other])}: "
            "take one out."
        )


def texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Check that a value of config.json is a list of texts."""
    value = data.get(key) or []
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BertcliError(f"{key} is {quoted(value)}, which is not a list of texts.")
    return tuple(value)


# By a field's annotation: the types that its value in JSON may have, and their name in a message. Lists and mappings
# are checked by the families that have them.
JSON_TYPES: dict[Any, tuple[type | tuple[type, ...], str]] = {
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    str: (str, "a text"),
    bool: (bool, "true or false"),
}
JSON_TYPES |= {annotation | None: checked for annotation, checked in JSON_TYPES.items()}


def check_fields(record: Any, title: str, key: Callable[[str], str] = str) -> None:
    """Raise BertcliError for a field of a dataclass with a value of another type, or out of its range.

    `key` maps a field to its name in config.json.
    """
    for item in fields(record):
        value = getattr(record, item.name)
        if item.type in JSON_TYPES and value is not None:
            _check(key(item.name), value, item, title)


def _check(key: str, value: Any, item: Field[Any], title: str) -> None:
    """Raise BertcliError for a value of another type than its field's, or not among those that the field allows."""
    types, words = JSON_TYPES[item.type]
    allowed = item.metadata
    # In Python a bool is an int.
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise BertcliError(f"{key} is {quoted(value)}, which is not {words}.")
    least, most = allowed.get("range", (-(2**31), 2**31))
    if not isinstance(value, str) and not least <= value <= most:
        must = f"at least {least}" if value < least else f"at most {most}"
        raise BertcliError(f"{key} is {quoted(value)}; it must be {must}.")
    if not allowed.get("heads"):
        _check_choice(key, value, allowed, title)


def _check_choice(key: str, value: Any, allowed: Mapping[str, Any], title: str) -> None:
    if value not in allowed.get("choices", (value,)):
        choices = ", ".join(quoted(choice).strip("'") for choice in allowed["choices"])
        raise BertcliError(f"{key} is {quoted(value)}; bertcli runs {title} with {choices}.")


def _labels(value: Any) -> dict[int, str]:
    """id2label with its keys, which are strings in JSON, as numbers from 0 without gaps."""
    if not value:
        return {}
    try:
        labels = {int(key): label for key, label in value.items()}
    except (AttributeError, ValueError, TypeError):
        raise BertcliError("id2label does not map label numbers to names.") from None
    if sorted(labels) != list(range(len(labels))) or not all(isinstance(label, str) for label in labels.values()):
        raise BertcliError("id2label does not map the numbers 0, 1, 2, … to names.")
    return labels
