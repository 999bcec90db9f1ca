"""What a tokenizer.json may not hold, since the library would end the process or take all memory and time.

The bytes are looked at before the library sees them: it prints lines of its own where it gives up, and some of its
errors cannot be caught.
"""

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertcli.checkpoint.untrusted import parse_json
from bertcli.errors import BertcliError

MOST_ADDED = 20_000  # tokens beside the vocabulary; Gemma has 6,400
MOST_FRAMED = 1_000  # tokens around a text

# Keys, which a vocabulary may have as pieces: there a number follows.
MERGES = re.compile(rb'"merges"\s*:\s*\[')
PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"(?!")')
CHARSMAP = re.compile(rb'"precompiled_charsmap"\s*:\s*"([^"]*)"')
PROCESSOR = re.compile(rb'"post_processor"\s*:\s*(?=\{)')
ADDED = rb'"single_word"'  # of each added token
ESCAPED = re.compile(rb"\\(?<!\\\\)(?:u00[2-7]|/)")  # letters that need not be escaped: they may hide a key


def check_tokenizer(data: bytes, file: Path) -> None:
    """Raise BertcliError for the bytes of a tokenizer.json that the library cannot be given."""
    if ESCAPED.search(data):
        data = json.dumps(parse_json(data, file)).encode()
    if MERGES.search(data) and PREFIX.search(data):  # it cuts the mark off merges, in the middle of a character, too
        raise BertcliError(f"{file} merges pieces and has a continuing_subword_prefix, too: use another model.")
    if data.count(ADDED) > MOST_ADDED:
        raise BertcliError(f"{file} adds more than {MOST_ADDED:,} tokens to its vocabulary: do not use this model.")
    for charsmap in CHARSMAP.findall(data):
        from bertcli.tokens.charsmap import check_charsmap

        try:
            check_charsmap(b64decode(charsmap, validate=True))
        except ValueError as error:
            raise BertcliError(f"{file} has a precompiled_charsmap that {error}: fetch the model again.") from None
    begin = PROCESSOR.search(data)
    if begin is None:
        return
    try:
        processor, _ = json.JSONDecoder().raw_decode(str(data[begin.end() :], "utf-8"))
    except (ValueError, RecursionError):
        return  # no JSON, as the library says
    if sum(_framed(processor)) > MOST_FRAMED:
        raise BertcliError(f"{file} puts more than {MOST_FRAMED:,} tokens around a text: do not use this model.")


def _framed(processor: Any) -> Iterator[int]:
    """How many tokens, or texts, each part of a template stands for."""
    if not isinstance(processor, dict):
        return
    for part in _items(processor.get("processors")):
        yield from _framed(part)
    tokens = processor.get("special_tokens")
    described = tokens.items() if isinstance(tokens, dict) else ()
    sizes = {name: len(_items(token.get("ids"))) for name, token in described if isinstance(token, dict)}
    for part in (*_items(processor.get("single")), *_items(processor.get("pair"))):
        special = part.get("SpecialToken") if isinstance(part, dict) else None
        name = special.get("id") if isinstance(special, dict) else None
        yield max(1, sizes.get(name, 1)) if isinstance(name, str) else 1


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
