"""Words as GLiNER reads them: a text split into words with their characters, and each word's tokens on its own.

A word is letters, digits and underscores, perhaps joined by hyphens; any other sign but a space is a word alone. The
tokenizer gets every word as a text of its own, so none of its pieces reaches into the next.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")  # of the library's splitter "whitespace"

# Scripts that put no space between words, by the beginning of their characters' names: a run of their letters is no
# word, but perhaps a sentence.
UNSPACED = (
    "CJK ", "HIRAGANA ", "KATAKANA", "HALFWIDTH KATAKANA ", "BOPOMOFO ", "YI ", "THAI ", "LAO ", "KHMER ", "MYANMAR ",
    "TIBETAN ", "JAVANESE ", "BALINESE ", "TAI ", "NEW TAI ",
)  # fmt: skip
LONGEST_RUN = 2  # letters of such a script that are taken for a word without a note


class Word(NamedTuple):
    """A word of a text, and its range of characters, end exclusive."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[Word]:
    """Split a text into words."""
    return [Word(match[0], *match.span()) for match in WORD.finditer(text)]


@lru_cache(1 << 16)
def is_unspaced(character: str) -> bool:
    """True for a character of a script that is written without spaces between words, such as Chinese."""
    return not character.isascii() and unicodedata.name(character, "").startswith(UNSPACED)


def is_run(word: str) -> bool:
    """True for a word that may be many: more than LONGEST_RUN letters of a script without spaces."""
    return not word.isascii() and sum(map(is_unspaced, word)) > LONGEST_RUN
