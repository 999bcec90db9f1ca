"""What the configurations of all families share: config.json's keys as fields, read and checked.

A family's configuration (`families/`) is a frozen dataclass whose fields are config.json's own keys with the defaults
of the family's code. Keys that are not fields are not read; older files lack most of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, ClassVar, Self, get_args, get_type_hints

from bertcli.engine.kernels import ACTIVATIONS
from bertcli.errors import BertcliError, shown

MOST_LAYERS = 1000
LARGEST_SIZE = 1 << 24  # far above any encoder; anything larger is a mistake, or an attempt to exhaust memory
MOST_SENTENCES = 1 << 20


def count(default: int, *, needed: bool = False, most: int = LARGEST_SIZE) -> Any:
    """Field: a whole number from 1 to `most`; with `needed` a config.json without it is refused."""
    return field(default=default, metadata={"most": most, "needed": needed})


@dataclass(frozen=True)
class Config:
    """The keys that all families have, and what the rest of the package asks any configuration for."""

    vocab_size: int = count(30522, needed=True)
    _: KW_ONLY
    pad_token_id: int = 0
    tie_word_embeddings: bool = True
    num_labels: int = count(2)
    id2label: Mapping[int, str] = field(default_factory=dict)
    problem_type: str | None = None
    model_type: str = ""
    architectures: tuple[str, ...] = ()

    title: ClassVar[str]  # the family's name, for messages
    absolute: ClassVar[bool] = True  # whether the key position_embedding_type means something
    contextual: ClassVar[bool] = True  # whether a token's vector depends on the tokens around it

    def __post_init__(self) -> None:
        for item in fields(self):
            if (most := item.metadata.get("most")) is None:
                continue
            if getattr(self, item.name) < 1:
                raise BertcliError(f"{item.name} is {getattr(self, item.name)}; it must be at least 1.")
            if getattr(self, item.name) > most:
                raise BertcliError(f"{item.name} is {getattr(self, item.name)}; it must be at most {most}.")
        self.check()

    def check(self) -> None:
        """Raise BertcliError for values that do not fit together."""

    def check_heads(self, hidden: str, heads: str) -> None:
        """Refuse a hidden size (the key `hidden`) that does not split evenly over the attention heads."""
        size, number = getattr(self, hidden), getattr(self, heads)
        if size % number:
            divisors = [n for n in range(1, size + 1) if size % n == 0]
            near = sorted(divisors, key=lambda n: abs(n - number))[:3]
            raise BertcliError(
                f"{hidden} {size} cannot be split over {heads} {number}; "
                f"possible numbers are, for example, {', '.join(map(str, sorted(near)))}."
            )

    def check_activation(self, key: str) -> None:
        """Refuse an activation that is not known."""
        if getattr(self, key) not in ACTIVATIONS:
            raise BertcliError(f"{key} {shown(getattr(self, key))} is unknown; known are {', '.join(ACTIVATIONS)}.")

    def check_eps(self, key: str) -> None:
        """Refuse an eps that is none."""
        if not 0 < getattr(self, key) < 1:
            raise BertcliError(f"{key} is {getattr(self, key)}; it must be between 0 and 1.")

    @property
    def sizes(self) -> dict[str, int]:
        """Size of every axis by its symbol (the glossary is in network/module.py)."""
        raise NotImplementedError

    @property
    def aliases(self) -> dict[str, str]:
        """Symbols of axes that are another axis in this model."""
        return {}

    @property
    def max_tokens(self) -> int:
        """The longest text the model has positions for."""
        return self.sizes["P"]

    @property
    def has_segments(self) -> bool:
        """Whether the model reads segment ids; without, what a tokenizer says of them is ignored."""
        return False

    @property
    def segment_count(self) -> int:
        """How many segments there are; a model without them has one, and every token is of segment 0."""
        return self.sizes["T"] if self.has_segments else 1

    # What a family may call by other names.
    @property
    def hidden_size(self) -> int:
        """Length of a token's vector."""
        return self.sizes["H"]

    @property
    def num_hidden_layers(self) -> int:
        """Number of encoder layers."""
        return self.sizes["L"]

    @property
    def num_attention_heads(self) -> int:
        """Attention heads of a layer."""
        return self.sizes["A"]

    @property
    def labels(self) -> list[str]:
        """Name of every label: from id2label, else LABEL_0, LABEL_1, …"""
        return [self.id2label.get(i, f"LABEL_{i}") for i in range(self.num_labels)]

    def check_input(self, batch: int | None, sequence: int | None) -> None:
        """Raise BertcliError for an impossible number of sentences, or of tokens in each; None means any."""
        longest = self.max_tokens
        if sequence is not None and not 1 <= sequence <= longest:
            raise BertcliError(
                f"A sequence length of {sequence} is not possible; with this model it must be 1 to {longest}."
            )
        if batch is not None and not 1 <= batch <= MOST_SENTENCES:
            raise BertcliError(f"A batch size of {batch} is not possible; it must be 1 to {MOST_SENTENCES:,}.")

    def stored_path(self, path: str) -> str:
        """The path of the layer as which a layer that stands for several is stored."""
        return path

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Self:
        """The configuration from config.json's keys; BertcliError for keys that are missing or make no sense."""
        cls._refuse_what_does_not_run(data)
        values: dict[str, Any] = {}
        kinds = get_type_hints(cls)
        data = cls.prepared(data)
        for item in fields(cls):
            value, kind = data.get(item.name), _plain(kinds[item.name])
            if value is not None and (kind is not None or isinstance(value, tuple)):  # a tuple is from `prepared`
                values[item.name] = value if kind is None else checked(item.name, value, kind)
        values["architectures"] = texts(data, "architectures")
        values["id2label"] = _labels(data.get("id2label"))
        if values["id2label"]:
            values["num_labels"] = max(values["id2label"]) + 1
        return cls(**values)

    @classmethod
    def prepared(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """config.json's keys in the form of the fields, lists as checked tuples, for a family that has any."""
        return data

    @classmethod
    def _refuse_what_does_not_run(cls, data: Mapping[str, Any]) -> None:
        positions = data.get("position_embedding_type") or "absolute"
        if cls.absolute and positions != "absolute":
            raise BertcliError(
                f"position_embedding_type {shown(positions)} is not supported; {cls.title} uses 'absolute'."
            )
        for key in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
            if data.get(key):
                raise BertcliError(f"{key} is true: this {cls.title} is a decoder, which bertcli does not run.")
        missing = [one.name for one in fields(cls) if one.metadata.get("needed") and data.get(one.name) is None]
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            raise BertcliError(f"{', '.join(missing)} {verb} missing: this is not the config.json of {cls.title}.")


def checked(key: str, value: Any, kind: type) -> Any:
    """A value of config.json that must be a number, a text or true or false."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BertcliError(f"{key} is {shown(value)}, which is not {_WORDS[kind]}.")
    if isinstance(value, int) and abs(value) > 2**31:
        raise BertcliError(f"{key} is {shown(value)}, which is not a possible size.")
    return value


def texts(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A value of config.json that must be a list of texts."""
    value = data.get(key) or []
    if not isinstance(value, list):
        raise BertcliError(f"{key} is {shown(value)}, which is not a list.")
    return tuple(checked(key, one, str) for one in value)


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _plain(hint: Any) -> type | None:
    """int, float, str or bool, of `X` or `X | None`; None for fields that are lists or mappings."""
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind in _WORDS]
    return kinds[0] if len(kinds) == 1 and getattr(hint, "__origin__", None) is None else None


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
