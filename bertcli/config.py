"""What config.json says of a BERT: just the keys the code uses, checked; and the variants known by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertcli.errors import BertcliError
from bertcli.kernels import ACTIVATIONS
from bertcli.untrusted import JSON_LIMIT, shown

HEADS = ("pooler", "mlm", "nsp", "classifier")
TEXTBOOK = "textbook"
LARGEST = {"num_hidden_layers": 1000}
LARGEST_SIZE = 1 << 24  # far above every BERT; what is larger is an error, or means to exhaust memory


@dataclass(frozen=True)
class BertConfig:
    """A BERT configuration in config.json's own words; the defaults are those of BERT-base uncased."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    pad_token_id: int = 0
    tie_word_embeddings: bool = True
    num_labels: int = 2
    id2label: Mapping[int, str] = field(default_factory=dict)
    problem_type: str | None = None
    model_type: str = "bert"
    architectures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                    "max_position_embeddings", "type_vocab_size", "num_labels"):  # fmt: skip
            if getattr(self, key) < 1:
                raise BertcliError(f"{key} is {getattr(self, key)}; it must be at least 1.")
            if getattr(self, key) > (most := LARGEST.get(key, LARGEST_SIZE)):
                raise BertcliError(f"{key} is {getattr(self, key)}; it must be at most {most}.")
        if self.hidden_size % self.num_attention_heads:
            divisors = [n for n in range(1, self.hidden_size + 1) if self.hidden_size % n == 0]
            near = sorted(divisors, key=lambda n: abs(n - self.num_attention_heads))[:3]
            raise BertcliError(
                f"hidden_size {self.hidden_size} cannot be split over num_attention_heads {self.num_attention_heads}; "
                f"possible are for example {', '.join(map(str, sorted(near)))}."
            )
        if self.hidden_act not in ACTIVATIONS:
            raise BertcliError(f"hidden_act {shown(self.hidden_act)} is unknown; known are {', '.join(ACTIVATIONS)}.")
        if not 0 < self.layer_norm_eps < 1:
            raise BertcliError(f"layer_norm_eps is {self.layer_norm_eps}; it must lie between 0 and 1.")

    @property
    def sizes(self) -> dict[str, int]:
        """Size of every axis by its symbol (the glossary is in parts.py)."""
        return {
            "V": self.vocab_size, "H": self.hidden_size, "L": self.num_hidden_layers, "A": self.num_attention_heads,
            "D": self.hidden_size // self.num_attention_heads, "F": self.intermediate_size,
            "P": self.max_position_embeddings, "T": self.type_vocab_size, "C": self.num_labels,
        }  # fmt: skip

    @property
    def labels(self) -> list[str]:
        """Name of every label: from id2label, else LABEL_0, LABEL_1, …"""
        return [self.id2label.get(i, f"LABEL_{i}") for i in range(self.num_labels)]


def _config(layers: int, hidden: int, vocab: int = 30522) -> BertConfig:
    return BertConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
    )


VARIANTS: dict[str, BertConfig] = {
    "tiny": _config(2, 128),
    "mini": _config(4, 256),
    "small": _config(4, 512),
    "medium": _config(8, 512),
    "base": _config(12, 768),
    "large": _config(24, 1024),
    "base-cased": _config(12, 768, vocab=28996),
    "large-cased": _config(24, 1024, vocab=28996),
    "base-multilingual-cased": _config(12, 768, vocab=119547),
    "base-chinese": _config(12, 768, vocab=21128),
    TEXTBOOK: replace(_config(12, 768), hidden_act="relu", layer_norm_eps=1e-5, model_type=TEXTBOOK),
}


def variant_config(name: str) -> BertConfig:
    """The configuration of a variant by its name."""
    try:
        return VARIANTS[name]
    except KeyError:
        raise BertcliError(f"There is no variant '{name}'; there are {', '.join(VARIANTS)}.") from None


def parse_heads(heads: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Heads from a list or from "mlm,nsp" or "none", in a fixed order; nsp and classifier bring the pooler."""
    names = [name.strip() for name in heads.split(",")] if isinstance(heads, str) else list(heads)
    if names == ["none"]:
        return ()
    for name in names:
        if name not in HEADS:
            raise BertcliError(f"There is no head '{name}'; there are {', '.join(HEADS)}, or none.")
    wanted = set(names) | ({"pooler"} if {"nsp", "classifier"} & set(names) else set())
    return tuple(name for name in HEADS if name in wanted)


# --------------------------------------------------------------------------------------------------- from config.json


def read_config(file: Path) -> BertConfig:
    """The configuration in a config.json; raises BertcliError for one that is unreadable or not BERT's."""
    try:
        with file.open("rb") as stream:
            content = stream.read(JSON_LIMIT + 1)
        if len(content) > JSON_LIMIT:
            raise BertcliError(f"{file} is larger than {JSON_LIMIT:,} bytes, which no config.json is.")
        data = json.loads(content.decode("utf-8-sig"))
    except FileNotFoundError:
        raise BertcliError(f"Cannot read {file}: there is no such file. A checkpoint's folder has one.") from None
    except OSError as error:
        raise BertcliError(f"Cannot read {file}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        raise BertcliError(f"{file} is not valid JSON ({error}): fetch the model again.") from None
    if not isinstance(data, dict):
        raise BertcliError(f"{file} is not a JSON object with a model's settings.")
    try:
        return parse_config(data)
    except BertcliError as error:
        raise BertcliError(f"{file}: {error}") from None


def parse_config(data: Mapping[str, Any]) -> BertConfig:
    """The configuration from config.json's own keys; an older file may lack most of them."""
    _refuse_what_is_not_bert(data)
    values: dict[str, Any] = {}
    for key, kind in _KINDS.items():
        if data.get(key) is not None:
            values[key] = _checked(key, data[key], kind)
    values["architectures"] = tuple(_checked("architectures", one, str) for one in _list(data, "architectures"))
    values["id2label"] = _labels(data.get("id2label"))
    if values["id2label"]:
        values["num_labels"] = max(values["id2label"]) + 1
    return BertConfig(**values)


_KINDS: dict[str, type] = {
    "vocab_size": int, "hidden_size": int, "num_hidden_layers": int, "num_attention_heads": int,
    "intermediate_size": int, "hidden_act": str, "layer_norm_eps": float, "max_position_embeddings": int,
    "type_vocab_size": int, "pad_token_id": int, "tie_word_embeddings": bool, "num_labels": int,
    "problem_type": str, "model_type": str,
}  # fmt: skip
_NEEDED = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")


def _refuse_what_is_not_bert(data: Mapping[str, Any]) -> None:
    family = data.get("model_type")
    if family not in (None, "bert", TEXTBOOK):
        raise BertcliError(f"This is a model of type {shown(family)}, not BERT; bertcli runs BERT checkpoints only.")
    foreign = [name for name in _list(data, "architectures") if not str(name).startswith("Bert")]
    if foreign and family is None:
        raise BertcliError(
            f"This is a model of type {shown(foreign[0])}, not BERT; bertcli runs BERT checkpoints only."
        )
    positions = data.get("position_embedding_type") or "absolute"
    if positions != "absolute":
        raise BertcliError(f"position_embedding_type {shown(positions)} is not supported; BERT's own is 'absolute'.")
    for key in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
        if data.get(key):
            raise BertcliError(f"{key} is true: this BERT is a decoder, which bertcli does not run.")
    missing = [key for key in _NEEDED if data.get(key) is None]
    if missing:
        raise BertcliError(f"{', '.join(missing)} missing: this is not the config.json of a BERT.")


def _checked(key: str, value: Any, kind: type) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BertcliError(f"{key} is {value!r:.60}, which is not {_WORDS[kind]}.")
    if isinstance(value, int) and abs(value) > 2**31:
        raise BertcliError(f"{key} is {value!r:.60}, which is no possible size.")
    return value


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key) or []
    if not isinstance(value, list):
        raise BertcliError(f"{key} is {value!r:.60}, which is not a list.")
    return value


def _labels(value: Any) -> dict[int, str]:
    """id2label with its keys, which JSON makes strings, as numbers from 0 without gaps."""
    if not value:
        return {}
    try:
        labels = {int(key): label for key, label in value.items()}
    except (AttributeError, ValueError, TypeError):
        raise BertcliError("id2label does not map label numbers to names.") from None
    if sorted(labels) != list(range(len(labels))) or not all(isinstance(label, str) for label in labels.values()):
        raise BertcliError("id2label does not map the numbers 0, 1, 2, … to names.")
    return labels
