"""What a stranger's tokenizer.json may not hold: what the tokenizers library panics at, or needs all memory for.

Rust writes a line of its own to stderr before a panic becomes an exception, and some panics end the process. What can
be seen in the file is therefore refused before the library reads it, the rest before it sees a text.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Backend

from bertcli.checkpoint.untrusted import parse_json
from bertcli.errors import BertcliError, shown

GROWTH_LIMIT = 10_000
PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"(?!")')
ESCAPED = re.compile(rb"\\(?<!\\\\)(?:u00[2-7]|/)")  # letters that need not be escaped: they may hide a key
MAP = re.compile(rb'"precompiled_charsmap"\s*:\s*(?:"([^"\\]*)")?')


def refuse_file(data: bytes, file: Path) -> None:
    """Raise BertcliError for a tokenizer.json that the library should not read."""
    if ESCAPED.search(data):
        data = json.dumps(parse_json(data, file)).encode()
    if b'"merges"' in data and PREFIX.search(data):  # few files: to parse one takes a fifth of the library's time
        _check_merges(parse_json(data, file), file)
    for found in MAP.finditer(data):
        try:
            closed = _is_closed(b64decode(found[1] or b"", validate=True))
        except ValueError:  # not base64, too short, or not UTF-8
            closed = False
        if not closed:
            raise BertcliError(f"{file} has a damaged precompiled_charsmap: fetch the model again.")


def refuse_tokenizer(backend: Backend, file: Path) -> None:
    """Raise BertcliError for a tokenizer that should not be given a text."""
    if math.prod(map(_growth, steps(backend.normalizer))) > GROWTH_LIMIT:
        raise BertcliError(f"{file} makes texts more than {GROWTH_LIMIT:,} times as long: do not use this model.")
    for token in (token for step in steps(backend.post_processor) for token in _undefined(step)):
        raise BertcliError(f"{file} puts {shown(token)} around texts but gives it no id: fetch the model again.")
    if any(step.get("length") == 0 for step in steps(backend.pre_tokenizer)):  # FixedLength
        raise BertcliError(f"{file} cuts texts into pieces of no length: do not use this model.")
    if any(step.get("prepend") == "" for step in steps(backend.normalizer)):
        raise BertcliError(f"{file} puts nothing before texts: do not use this model.")
    if any(step["type"] == "Strip" and step["stop"] for step in steps(backend.decoder)):  # also of none
        raise BertcliError(f"{file} cuts off the ends of pieces in its decoder: do not use this model.")


def steps(part: Any) -> list[dict[str, Any]]:
    """The steps of a normalizer, a pre-tokenizer, a post-processor or a decoder, as in tokenizer.json; or none."""

    def flat(step: dict[str, Any]) -> list[dict[str, Any]]:
        inner = next((value for key, value in step.items() if key != "type"), ())
        return [one for part in inner for one in flat(part)] if step["type"] == "Sequence" else [step]

    return [] if part is None else flat(json.loads(part.__getstate__()))


def _check_merges(document: Any, file: Path) -> None:
    """Refuse a merge whose second piece lacks the mark of pieces that continue a word: the library cuts it off unseen.

    What is no merge at all the library refuses itself.
    """
    model: Any = document.get("model") if isinstance(document, dict) else None
    named: dict[str, Any] = model if isinstance(model, dict) else {}
    prefix, merges = named.get("continuing_subword_prefix"), named.get("merges")
    if not isinstance(prefix, str) or not isinstance(merges, list):
        return
    for merge in merges:
        pieces = merge.split(" ") if isinstance(merge, str) else merge
        if isinstance(pieces, list) and not str(pieces[-1] if pieces else "").startswith(prefix):
            raise BertcliError(
                f"{file} merges {shown(merge)}, though pieces that continue a word begin with {shown(prefix)}: fetch "
                "the model again."
            )


def _parts(data: bytes) -> tuple[NDArray[np.int64], bytes]:
    """A precompiled_charsmap's trie, a double array, and the texts that characters are replaced with."""
    end = 4 + int.from_bytes(data[:4], "little") // 4 * 4
    if not 4 < end <= len(data):
        raise ValueError("shorter than it says")
    return np.frombuffer(data[4:end], "<u4").astype(np.int64), data[end:]


def _is_closed(data: bytes) -> bool:
    """Whether no text leads out of a precompiled_charsmap. Errors: ValueError for one that cannot be read.

    A unit leads to its own place ^ its offset ^ the next byte; one with a leaf has it at place ^ offset: where in the
    texts the replacement begins. No unit whose highest bit is set is gone through, but for the first.
    """
    units, texts = _parts(data)
    texts.decode()
    to = np.arange(len(units)) ^ (units >> 10 << (units >> 6 & 8))
    inner = units < 1 << 31
    inner[0] = True
    if np.any(to[inner] | 255 >= len(units)):
        return False
    starts = units[to[inner & (units >> 8 & 1 == 1)]] & 0x7FFFFFFF
    if np.any(starts > len(texts)):
        return False
    return not np.any(np.frombuffer(texts + b"\0", np.uint8)[starts] & 0xC0 == 0x80)  # in the midst of a character


def _growth(step: Mapping[str, Any]) -> float:
    """How many letters a normalizer may turn one into by replacing and prepending: a → aa, 40 times, makes 10¹²."""
    if step["type"] == "Prepend":
        return 1 + len(step["prepend"])
    if step["type"] == "Replace":
        literal = step["pattern"].get("String")
        return max(1, len(step["content"]) / len(literal)) if literal else 1 + len(step["content"])  # at every letter
    if step["type"] == "Precompiled":
        return max(1, *map(len, _parts(b64decode(step["precompiled_charsmap"]))[1].split(b"\0")))
    return 1


def _undefined(step: Mapping[str, Any]) -> list[str]:
    """Special tokens that a post-processor puts around texts without defining them."""
    pieces = [*step["single"], *step["pair"]] if step["type"] == "TemplateProcessing" else []
    used = [piece["SpecialToken"]["id"] for piece in pieces if "SpecialToken" in piece]
    return [token for token in used if token not in step["special_tokens"]]
