"""Cut long texts into chunks, which are encoded like texts; cuts are between words."""

import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from bertcli.errors import BertcliError
from bertcli.files.texts import Chunk, Text
from bertcli.tasks.parts.prepared import Chunking
from bertcli.tokens import Tokenizer, Tokens

JOINER = "\u200d"  # zero-width: it makes one emoji of several
SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
SPACE, WORD, CHARACTER, NOWHERE = 3, 2, 1, 0  # the quality of a cut, the larger the better


def chunks(
    tokenizer: Tokenizer, prompt: str, chunking: Chunking, text: Text, whole: Tokens
) -> list[tuple[Chunk, Tokens]]:
    """Yield the chunks of a tokenized text, each tokenized anew, after the prompt."""
    if text.pair is not None:
        raise BertcliError("A pair of texts cannot be cut into chunks: leave out chunk (--chunk), or the pairs.")
    size, overlap = chunking
    limit = size - len(tokenizer.encode([prompt])[0].ids)
    while limit > overlap:
        ranges = list(chunk_ranges(text.text, whole, limit, overlap))
        of_chunks = tokenizer.encode([prompt + text.text[start:end] for start, end in ranges], None, size)
        lost = max(tokens.lost for tokens in of_chunks)
        if not lost:
            return [(Chunk(i, *span), tokens) for i, (span, tokens) in enumerate(zip(ranges, of_chunks, strict=True))]
        limit -= lost  # a chunk by itself, prompt and all, may have more tokens than its share of the whole
    raise BertcliError(
        f"Chunks of {size} tokens have no room for more than special tokens, prompt and an overlap of {overlap}: "
        "choose a larger size (--chunk)."
    )


class _Cut(NamedTuple):
    """The character before which a text may be cut, and the quality of that cut; white space comes after it."""

    position: int
    quality: int


def chunk_ranges(text: str, tokens: Tokens, limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield character ranges that cover a text, of at most `limit` tokens each, and overlapping by at most `overlap`.

    Cuts are where white space begins; in a longer stretch without any, between the tokenizer's words; in a longer word
    between tokens, but not inside what is read as one character, as far as that is possible.
    """
    cuts = [_Cut(0, SPACE), *_cuts(text, tokens), _Cut(len(text), SPACE)]  # before each token, and after the last
    count = len(cuts) - 1

    def end_of(first: int, beyond: int) -> int:
        """The end of a chunk that begins at token `first`: the best cut after `beyond`; of cuts as good, the last."""
        ends = range(min(first + limit, count), max(first, beyond), -1)
        return max(ends, key=lambda token: cuts[token].quality, default=count)

    first = last = position = 0  # the first token of a chunk, and where the chunk before it ended
    while True:
        end = end_of(first, last)
        if cuts[end].position > position or not last:  # else these tokens are more of a character that is in already
            yield cuts[first].position, cuts[end].position
        if end == count:
            return
        position, last = cuts[end].position, end
        again = (token for token in range(max(end - overlap, first + 1), end) if cuts[token].quality == SPACE)
        first = next((token for token in again if cuts[end_of(token, end)].quality >= WORD), end)


def _cuts(text: str, tokens: Tokens) -> Iterator[_Cut]:
    """Yield a cut between each token of the text and the next, after all characters of the tokens before."""
    columns = zip(tokens.offsets, tokens.words, tokens.sides, strict=True)
    of_text = [(start, end, word) for (start, end), word, side in columns if side is not None]
    for (_, position, word), (start, _, next_word) in pairwise(of_text):
        overlapping = start < position
        while position < start and not text[position].isspace():
            position += 1
        if overlapping or not 0 < position < len(text):
            yield _Cut(position, NOWHERE)
        elif text[position].isspace() and not text[position - 1].isspace():
            yield _Cut(position, SPACE)
        elif _inside_character(text, position):
            yield _Cut(position, NOWHERE)
        else:
            yield _Cut(position, WORD if word != next_word else CHARACTER)


def _inside_character(text: str, position: int) -> bool:
    """True if `place` lies within what a reader sees as one character: a letter with marks, a joined emoji."""
    before, after = text[position - 1], text[position]
    return (
        unicodedata.category(after).startswith("M")
        or JOINER in (before, after)
        or SKIN_TONES[0] <= after <= SKIN_TONES[1]
        or before + after == "\r\n"
    )
