"""Reads config.json into a checked configuration. Only the keys the code uses are read; older files lack most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertcli.config import TEXTBOOK, BertConfig
from bertcli.errors import BertcliError
from bertcli.untrusted import read_object, shown


def read_config(file: Path) -> BertConfig:
    """The configuration in a config.json; BertcliError for a file that is unreadable or not BERT's."""
    data = read_object(file)
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
        raise BertcliError(f"position_embedding_type {shown(positions)} is not supported; BERT uses 'absolute'.")
    for key in ("is_decoder", "add_cross_attention", "is_encoder_decoder"):
        if data.get(key):
            raise BertcliError(f"{key} is true: this BERT is a decoder, which bertcli does not run.")
    missing = [key for key in _NEEDED if data.get(key) is None]
    if missing:
        raise BertcliError(f"{', '.join(missing)} missing: this is not the config.json of a BERT model.")


def _checked(key: str, value: Any, kind: type) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BertcliError(f"{key} is {value!r:.60}, which is not {_WORDS[kind]}.")
    if isinstance(value, int) and abs(value) > 2**31:
        raise BertcliError(f"{key} is {value!r:.60}, which is not a possible size.")
    return value


_WORDS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key) or []
    if not isinstance(value, list):
        raise BertcliError(f"{key} is {value!r:.60}, which is not a list.")
    return value


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
