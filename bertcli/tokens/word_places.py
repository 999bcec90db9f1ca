"""WordPlaces: the word that a piece belongs to, in a text that is its words with one space between them.

For labelled words, whose boundaries the data give: `evaluate` of tag, and `probe`. Words that a tokenizer finds itself
are in tokens/words.py.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate


class WordPlaces:
    """The positions of words in their text.

    A piece belongs to the word in which it ends. A piece that is only the space before a word (a lone "▁", which
    SentencePiece gives where it cannot join the space to what follows) is that word's first piece, as `word_ids` of
    transformers counts it: checkpoints are trained with the word's label on it.
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._text = " ".join(words)
        # Where each next word begins: the end of the word and its space.
        self._ends = list(accumulate(len(word) + 1 for word in words))

    def number(self, start: int, end: int) -> int:
        """The number of the word, from 0, of the piece that covers these characters."""
        is_space = not self._text[start:end].strip()
        last = end if is_space else end - 1
        return bisect_right(self._ends, last)
