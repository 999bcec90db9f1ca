"""Words as GLiNER reads them: a text split into words with their characters, and each word's tokens on its own.

A word is letters, digits and underscores, perhaps joined by hyphens; any other sign but a space is a word alone. The
tokenizer gets every word as a text of its own, so none of its pieces reaches into the next.
"""

import re
from typing import NamedTuple

WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")  # of the library's splitter "whitespace"


class Word(NamedTuple):
    """A word of a text, and its range of characters, end exclusive."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Split a text into words."""
    return [Word(match[0], *match.span()) for match in WORD.finditer(text)]
