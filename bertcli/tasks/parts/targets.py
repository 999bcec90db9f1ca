"""Find the ids of the words that `fill-mask --targets` scores."""

import logging
from collections.abc import Iterable

from bertcli.errors import BertcliError, quoted
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.options import separated
from bertcli.tasks.parts.words_at_mask import Target
from bertcli.tokens import Spelling, Tokenizer

logger = logging.getLogger("bertcli")


def find_targets(model: LoadedModel, words: Iterable[str] | str) -> dict[Target, Spelling]:
    """The ids and the spelling of every word of a list, or of a string of comma-separated words.

    Errors: BertcliError for a word that the vocabulary cannot spell.
    """
    targets: dict[Target, Spelling] = {}
    for word in separated(words) if isinstance(words, str) else words:
        ids = model.tokenizer.pieces_of(word)
        if not ids or model.tokenizer.special_id("unk") in ids:
            raise BertcliError(f"The target {quoted(word)} is unknown to the vocabulary of {model.name}.")
        targets.setdefault(ids, _spelled(word, ids, model.tokenizer))
    if not targets:
        raise BertcliError("There are no targets to rank.")
    if model.tokenizer.space is not None:
        example = next(iter(targets.values())).following
        logger.info("Targets are words with the space before them, such as %s.", quoted(example))
    return targets


def _spelled(words: str, ids: Target, tokenizer: Tokenizer) -> Spelling:
    """One or more words as their pieces spell them, with spaces where the original has them."""
    if len(ids) == 1 or tokenizer.space is not None:
        return tokenizer.spelling([tokenizer.piece(id) for id in ids])
    (tokens,) = tokenizer.encode([words])
    text, last = "", 0
    for piece, (start, end), side in zip(tokens.pieces, tokens.offsets, tokens.sides, strict=True):
        if side is not None:
            span = words[start:end]  # an added token may include the spaces around it
            start, end = end - len(span.lstrip()), start + len(span.rstrip())
            space = " " if text and any(map(str.isspace, words[last:start])) else ""
            text += space + (tokenizer.spelling([piece]).following if text else piece)
            last = end
    return Spelling(text, text)
