"""Split the tokens of a long text into overlapping windows, for `tag` and `answer`.

A kind that finds entities of named types cuts windows of its own, between words.
"""

from bertcli.errors import BertcliError
from bertcli.tokens.template import Listed, Tokens


def windows_of(tokens: Tokens, size: int, overlap: int) -> list[Tokens]:
    """Split tokens into windows of at most `size` tokens; neighbors share `overlap`, the stride of transformers.

    In a pair the second text is split, and each window has the whole first text. Special tokens count; nothing is lost;
    offsets and words refer to the whole text. Errors: BertcliError if a window has no room beyond the overlap.
    """
    template = tokens.template()
    *whole, cut = map(len, template.sides)
    room = size - template.special_count - sum(whole)
    if cut > room and room <= overlap:
        around = "the special tokens and the first text" if whole else "the special tokens"
        raise BertcliError(
            f"A window of {size} tokens has room for {max(room, 0)} beside {around}, no more than the {overlap} that "
            "it shares with the next: choose larger windows, let them share less, or shorten the first text."
        )
    template = template._replace(sides=tuple(map(Listed.of, template.sides)))
    windows = []
    for start in _starts(cut, room, overlap):
        kept = (*(slice(length) for length in whole), slice(start, start + room))
        part = template._replace(kept=kept)
        windows.append(Tokens(*part.numbers(), 0, 0, None, tokens.maker, part))
    return windows


def tokens_in_windows(tokens: Tokens, size: int, overlap: int) -> int:
    """Count the tokens of all windows that `windows_of` would make: an upper bound, without making them."""
    template = tokens.template()
    *whole, cut = map(len, template.sides)
    room = size - template.special_count - sum(whole)
    return min(size, len(tokens.ids)) * len(_starts(cut, room, overlap))


def _starts(cut: int, room: int, overlap: int) -> range:
    """The first token of each window in a text of `cut` tokens, where a window holds `room` of them."""
    return range(0, max(cut - overlap, 1), max(room - overlap, 1))
