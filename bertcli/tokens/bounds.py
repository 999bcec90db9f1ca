"""Refuses a tokenizer.json at which the library would end the process, which nothing can catch.

The bytes are looked at before the library sees them. What makes it panic, or costs much time or memory, is not looked
for: nothing of such a file executes, and a panic is one line (`library.py`).
"""

import json
import re
from base64 import b64decode
from pathlib import Path

from bertcli.errors import BertcliError
from bertcli.folder.files import parse_json

# Keys, which a vocabulary may have as pieces: there a number follows.
MERGES = re.compile(rb'"merges"\s*:\s*\[')
PREFIX = re.compile(rb'"continuing_subword_prefix"\s*:\s*"(?!")')
CHARSMAP = re.compile(rb'"precompiled_charsmap"\s*:\s*"([^"]*)"')
ESCAPED = re.compile(rb"\\(?<!\\\\)(?:u00[2-7]|/)")  # letters that need not be escaped: they may hide a key


def check_tokenizer(data: bytes, file: Path) -> None:
    """Raise BertcliError for the bytes of a tokenizer.json that the library cannot be given."""
    if ESCAPED.search(data):
        data = json.dumps(parse_json(data, file)).encode()
    if MERGES.search(data) and PREFIX.search(data):  # it cuts the mark off merges, in the middle of a character, too
        raise BertcliError(f"{file} merges pieces and has a continuing_subword_prefix, too: use another model.")
    for charsmap in CHARSMAP.findall(data):
        from bertcli.tokens.charsmap import check_charsmap

        try:
            check_charsmap(b64decode(charsmap, validate=True))
        except ValueError as error:
            raise BertcliError(f"{file} has a precompiled_charsmap that {error}: fetch the model again.") from None
