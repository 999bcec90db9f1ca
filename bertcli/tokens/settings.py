"""Contents of a checkpoint's small tokenizer files: special tokens, normalisation, length limit, word pieces."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from bertcli.errors import BertcliError
from bertcli.untrusted import VOCABULARY_LIMIT, read_object, read_whole, shown

UNLIMITED = 10**9  # a model_max_length this large (1e30 is usual) means that none was set


class SpecialToken(NamedTuple):
    """A token with a special meaning; the four switches are those of the tokenizers library."""

    content: str
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


class TokenizerSettings(NamedTuple):
    """tokenizer_config.json and special_tokens_map.json, with BERT's defaults for what they omit."""

    mask: SpecialToken
    cls: SpecialToken
    sep: SpecialToken
    pad: SpecialToken
    unk: SpecialToken
    added: tuple[SpecialToken, ...]
    do_lower_case: bool
    strip_accents: bool | None
    tokenize_chinese_chars: bool
    max_length: int | None
    cut_left: bool

    @property
    def special(self) -> tuple[SpecialToken, ...]:
        return (self.pad, self.unk, self.cls, self.sep, self.mask, *self.added)


def read_settings(folder: Path) -> TokenizerSettings:
    """The tokenizer's settings in a checkpoint's folder; files may be missing, but their contents must be valid."""
    file = folder / "tokenizer_config.json"
    config = _optional(file)
    named = {**_optional(folder / "special_tokens_map.json"), **config}

    def special(key: str) -> SpecialToken:
        value = named.get(f"{key}_token")
        return SpecialToken(f"[{key.upper()}]") if value is None else _special_token(value, file, f"{key}_token")

    def switch(key: str, default: bool | None) -> bool | None:
        value = config.get(key)
        if value is not None and not isinstance(value, bool):
            raise BertcliError(f"{file}: {key} is {shown(value)}, which is neither true nor false.")
        return default if value is None else value

    return TokenizerSettings(
        mask=special("mask"),
        cls=special("cls"),
        sep=special("sep"),
        pad=special("pad"),
        unk=special("unk"),
        added=_added(named, file),
        do_lower_case=bool(switch("do_lower_case", True)),
        strip_accents=switch("strip_accents", None),
        tokenize_chinese_chars=bool(switch("tokenize_chinese_chars", True)),
        max_length=_max_length(config.get("model_max_length"), file),
        cut_left=config.get("truncation_side") == "left",
    )


def read_vocabulary(file: Path) -> dict[str, int]:
    """Word pieces of a vocab.txt, one per line -> their ids, the line numbers from 0."""
    try:
        lines = read_whole(file, VOCABULARY_LIMIT).decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise BertcliError(f"{file} is not UTF-8: fetch the model again.") from None
    if lines[-1] == "":
        lines.pop()
    return {piece: id for id, piece in enumerate(lines)}


def _optional(file: Path) -> dict[str, Any]:
    return read_object(file) if file.exists() or file.is_symlink() else {}


def _max_length(value: Any, file: Path) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise BertcliError(f"{file}: model_max_length is {shown(value)}, which is not a length.")
    return None if value >= UNLIMITED else int(value)


def _special_token(value: Any, file: Path, key: str) -> SpecialToken:
    """A token given as a string, or as an object with its text under `content`."""
    switches = value if isinstance(value, dict) else {"content": value}
    content = switches.get("content")
    if not isinstance(content, str) or not content:
        raise BertcliError(f"{file}: {key} is {shown(value)}, which is not a token.")
    return SpecialToken(content, *(switches.get(name) is True for name in SpecialToken._fields[1:]))


def _added(named: dict[str, Any], file: Path) -> tuple[SpecialToken, ...]:
    """Special tokens beyond BERT's five: additional_special_tokens, and the special ones of added_tokens_decoder."""
    extra = named.get("additional_special_tokens") or []
    decoder = named.get("added_tokens_decoder") or {}
    if not isinstance(extra, list) or not isinstance(decoder, dict):
        raise BertcliError(f"{file}: additional_special_tokens or added_tokens_decoder has the wrong form.")
    marked = [value for value in decoder.values() if isinstance(value, dict) and value.get("special") is True]
    return tuple(_special_token(value, file, "an added token") for value in [*extra, *marked])
