"""Words as GLiNER2 reads them: of its splitter "whitespace", in small letters, of a text that ends in a sign.

An address or a name with @ is a word; else letters, digits, underscores and marks, perhaps joined by hyphens; any other
sign but a space is a word alone.
"""

import re
import unicodedata
from functools import cache
from itertools import chain

from bertcli.tokens.words import Word

ENDS = (".", "!", "?")
END = "."  # put after a text that ends otherwise
# All marks of Unicode are in here; to look at every character would take a quarter of a second.
MARKS = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))


@cache
def _pattern() -> re.Pattern[str]:
    marks = "".join(character for character in map(chr, chain(*MARKS)) if unicodedata.category(character)[0] == "M")
    letter = rf"[\w{marks}\u200c\u200d]"
    address = r"https?://\S+|www\.\S+|[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}|@[a-z0-9_]+"
    return re.compile(rf"{address}|{letter}+(?:[-_]{letter}+)*|\S", re.IGNORECASE)


def read_words(text: str) -> list[Word]:
    """Split a text into words. The last one may be the sign at its end that the text does not have, or end in it."""
    ended = text if text.endswith(ENDS) else text + END
    return [Word(match[0].lower(), *match.span()) for match in _pattern().finditer(ended)]
