"""Refuse a tokenizer.json that would abort the process inside the tokenizers library.

An abort cannot be caught, so the bytes are checked before the library reads them. Nothing looks for files that make the
library panic, or that cost much time or memory: nothing in them executes, and a panic becomes one line (library.py).
"""

import json
import re
from base64 import b64decode
from pathlib import Path

from bertcli.errors import BertcliError
from bertcli.folder.files import parse_json

# Keys with the begin of their values: a vocabulary may have a piece "merges", but its value is a number.
MERGES = re.compile(rb'"merges"\s*:\s*\[')
PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"(?!")')
CHARSMAP = re.compile(rb'"precompiled_charsmap"\s*:\s*"([^"]*)"')
ESCAPED = re.compile(rb"\\(?<!\\\\)(?:u00[2-7]|/)")  # needless escapes, which could hide a key from these patterns


def check_tokenizer(data: bytes, file: Path) -> None:
    """Raise BertcliError for a tokenizer.json that would abort the process."""
    if ESCAPED.search(data):
        data = json.dumps(parse_json(data, file)).encode()
    # The library removes the prefix from merged pieces by its length in bytes, even inside a character: it aborts.
    if MERGES.search(data) and PREFIX.search(data):
        raise BertcliError(f"{file} merges pieces and has a continuing_subword_prefix, too: use another model.")
    for charsmap in CHARSMAP.findall(data):
        from bertcli.tokens.charsmap import check_charsmap

        try:
            check_charsmap(b64decode(charsmap, validate=True))
        except ValueError as error:
            raise BertcliError(f"{file} has a precompiled_charsmap that {error}: use another model.") from None
