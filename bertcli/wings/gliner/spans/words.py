"""Words as GLiNER reads them.

A word is letters, digits and underscores, perhaps joined by hyphens; any other sign but a space is a word alone. The
tokenizer gets every word as a text of its own, so none of its pieces reaches into the next.
"""

import re

from bertcli.tokens.words import Word, is_unspaced

WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")  # of the library's splitter "whitespace"
LONGEST_RUN = 2  # letters of a script without spaces that are taken for a word without a note


def split_words(text: str) -> list[Word]:
    """Split a text into words."""
    return [Word(match[0], *match.span()) for match in WORD.finditer(text)]


def is_run(word: str) -> bool:
    """True for a word that may be many: more than LONGEST_RUN letters of a script without spaces."""
    return not word.isascii() and sum(map(is_unspaced, word)) > LONGEST_RUN
