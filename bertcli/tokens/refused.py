"""A stranger's tokenizer.json that would end the process, or take all memory: refused before it sees a text.

Other damage makes the tokenizers library raise an error or panic, which `library_errors` turns into one line.
"""

from __future__ import annotations

import json
import math
import re
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from bertcli.checkpoint.untrusted import parse_json
from bertcli.errors import BertcliError

GROWTH_LIMIT = 10_000
MERGES = re.compile(rb'"merges"\s*:\s*\[')  # a vocabulary may have the word, but gives it a number
PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"(?!")')
ESCAPED = re.compile(rb"\\(?<!\\\\)(?:u00[2-7]|/)")  # letters that need not be escaped: they may hide a key


def refuse_merges(data: bytes, file: Path) -> None:
    """Raise BertcliError for a tokenizer.json with both merges and a mark of pieces that continue a word.

    The library cuts the mark off every merge unseen and, in the middle of a character, ends the process.
    """
    if ESCAPED.search(data):
        data = json.dumps(parse_json(data, file)).encode()
    if MERGES.search(data) and PREFIX.search(data):
        raise BertcliError(f"{file} merges pieces and has a continuing_subword_prefix, too: use another model.")


def refuse_growth(backend: Backend, file: Path) -> None:
    """Raise BertcliError for a normalizer that makes texts so long that they fill the memory."""
    if math.prod(map(_growth, _steps(backend.normalizer))) > GROWTH_LIMIT:
        raise BertcliError(f"{file} makes texts more than {GROWTH_LIMIT:,} times as long: do not use this model.")


def _steps(normalizer: Any) -> list[dict[str, Any]]:
    """The steps of a normalizer, as in tokenizer.json; or none."""

    def flat(step: dict[str, Any]) -> list[dict[str, Any]]:
        return [one for part in step["normalizers"] for one in flat(part)] if step["type"] == "Sequence" else [step]

    return [] if normalizer is None else flat(json.loads(normalizer.__getstate__()))


def _growth(step: Mapping[str, Any]) -> float:
    """How many letters a normalizer may turn one into by replacing and prepending: a → aa, 40 times, makes 10¹²."""
    if step["type"] == "Prepend":
        return 1 + len(step["prepend"])
    if step["type"] == "Replace":
        literal = step["pattern"].get("String")
        return max(1, len(step["content"]) / len(literal)) if literal else 1 + len(step["content"])  # at every letter
    if step["type"] == "Precompiled":  # a trie, whose size comes first, and what characters are replaced with
        data = b64decode(step["precompiled_charsmap"])
        return max(map(len, data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")), default=1) or 1
    return 1
