"""The words of a text, as its tokenizer calls them (`word_ids`): which token is of which word, and where a word is.

Not here: the words that labelled data give (word_places.py).
"""

from collections.abc import Sequence

from bertcli.tokens.template import Tokens


def word_numbers(text: str, tokens: Tokens, side: int = 0) -> list[int | None]:
    """The number of each token's word, from 0 upwards; None for tokens outside the text (side 1: the pair).

    A word is what the tokenizer's pre-tokenizer cuts. One that cuts nothing (Gemma) calls a whole text a word: there a
    space begins the next word, too, unless the word has had nothing but spaces so far (a lone "▁").
    """
    numbers: list[int | None] = []
    current, last, has_letters = -1, object(), False
    for token_side, word, (start, end) in zip(tokens.sides, tokens.words, tokens.offsets, strict=True):
        if token_side != side:
            numbers.append(None)
            continue
        before = text[max(start - 1, 0) : min(start + 1, end)]
        after_space = has_letters and any(character.isspace() for character in before)
        if word is None or word != last or after_space:
            current, last, has_letters = current + 1, word, False
        has_letters = has_letters or not text[start:end].isspace()
        numbers.append(current)
    return numbers


def word_spans(numbers: Sequence[int | None], offsets: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The characters of each word, end exclusive, in order, from the words and offsets of tokens."""
    spans: dict[int, tuple[int, int]] = {}
    for number, (start, end) in zip(numbers, offsets, strict=True):
        if number is not None:
            first, last = spans.get(number, (start, end))
            spans[number] = min(first, start), max(last, end)
    return [spans[number] for number in sorted(spans)]
