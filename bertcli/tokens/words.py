"""`Word`: a word of a text with its characters; and scripts that put no space between words.

Who splits a text: plain_words.py for `keywords`, a model's own tokenizer (`Tokens.words`), a kind that reads words.
"""

import unicodedata
from functools import lru_cache
from typing import NamedTuple

# By the beginning of their characters' names.
UNSPACED = (
    "CJK ", "HIRAGANA ", "KATAKANA", "HALFWIDTH KATAKANA ", "BOPOMOFO ", "YI ", "THAI ", "LAO ", "KHMER ", "MYANMAR ",
    "TIBETAN ", "JAVANESE ", "BALINESE ", "TAI ", "NEW TAI ",
)  # fmt: skip


class Word(NamedTuple):
    """A word of a text, and its range of characters, end exclusive."""

    text: str
    start: int
    end: int


@lru_cache(1 << 16)
def is_unspaced(character: str) -> bool:
    """True for a character of a script that is written without spaces between words, such as Chinese."""
    return not character.isascii() and unicodedata.name(character, "").startswith(UNSPACED)
