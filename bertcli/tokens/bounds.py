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
from bertcli.errors import BertcliError, shown

MOST_ADDED = 20_000  # tokens beside the vocabulary; Gemma has 6,400
MOST_FRAMED = 1_000  # tokens around a text

# Keys, which a vocabulary may have as pieces: there a number follows.
MERGES = re.compile(rb'"merges"\s*:\s*\[')
PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"(?!")')
CHARSMAP = re.compile(rb'"precompiled_charsmap"\s*:\s*"([^"]*)"')
PREPENDED = re.compile(rb'"prepend"\s*:\s*""')
PROCESSOR = re.compile(rb'"post_processor"\s*:\s*(?=\{)')
ADDED = rb'"single_word"'  # of each added token
ESCAPED = re.compile(rb"\\(?<!\\\\)(?:u00[2-7]|/)")  # letters that need not be escaped: they may hide a key


def check_tokenizer(data: bytes, file: Path) -> None:
    """Raise BertcliError for the bytes of a tokenizer.json that the library cannot be given."""
    if ESCAPED.search(data):
        data = json.dumps(parse_json(data, file)).encode()
    if MERGES.search(data) and PREFIX.search(data):  # it cuts the mark off merges, in the middle of a character, too
        raise BertcliError(f"{file} merges pieces and has a continuing_subword_prefix, too: use another model.")
    if PREPENDED.search(data):
        raise BertcliError(f"{file} puts an empty text before texts (Prepend): use another model.")
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
        templates = [*_templates(processor)]
    except (ValueError, RecursionError):
        return  # no JSON, or nested beyond reason, as the library says
    if len(templates) > 1:
        raise BertcliError(f"{file} puts tokens around a text more than once: use another model.")
    if any(sum(_framed(template, file)) > MOST_FRAMED for template in templates):
        raise BertcliError(f"{file} puts more than {MOST_FRAMED:,} tokens around a text: do not use this model.")


def _templates(processor: Any) -> Iterator[dict[str, Any]]:
    """The templates of a post-processor: itself, or those that it is a sequence of."""
    if isinstance(processor, dict):
        yield from [processor] if "single" in processor else ()
        for part in _items(processor.get("processors")):
            yield from _templates(part)


def _framed(template: dict[str, Any], file: Path) -> Iterator[int]:
    """How many tokens, or texts, each part of a template stands for. BertcliError for one that it does not describe."""
    tokens = template.get("special_tokens")
    described = tokens.items() if isinstance(tokens, dict) else ()
    sizes = {name: len(_items(token.get("ids"))) for name, token in described if isinstance(token, dict)}
    single, pair = _items(template["single"]), _items(template.get("pair"))
    if "B" in [_name(part, "Sequence") for part in single]:
        raise BertcliError(f"{file} puts a second text beside a single one: fetch the model again.")
    for name in (_name(part, "SpecialToken") for part in (*single, *pair)):
        if name is not None and name not in sizes:
            raise BertcliError(f"{file} puts {shown(name)} around a text and describes no such token: fetch it again.")
        yield 1 if name is None else max(1, sizes[name])


def _name(part: Any, kind: str) -> str | None:
    """What a part of a template names, if it is of this kind."""
    found = part.get(kind) if isinstance(part, dict) else None
    name = found.get("id") if isinstance(found, dict) else None
    return name if isinstance(name, str) else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
