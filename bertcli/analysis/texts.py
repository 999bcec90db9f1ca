"""A text's tokens for the views and the trace, the alignment of two texts' tokens, and tokens as readable text."""

import logging
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from bertcli.errors import BertcliError, number_of, quoted
from bertcli.tasks.running.task import length_limit
from bertcli.tokens import Tokens

if TYPE_CHECKING:
    from bertcli.loaded_model import LoadedModel

logger = logging.getLogger("bertcli")


def tokens_of(model: "LoadedModel", text: str, pair: str | None = None, limit: int | None = None) -> Tokens:
    """Tokenize a text or a pair for a pass; what is beyond `limit` (default: the model's) is cut, with a warning.

    Errors: BertcliError for a text without tokens.
    """
    limit = length_limit(model, None) if limit is None else limit
    (tokens,) = model.tokenizer.encode([text], None if pair is None else [pair], limit)
    if not tokens.ids:
        raise BertcliError(f"The tokenizer produces no tokens for {quoted(text)}, so there is nothing to compute.")
    if tokens.lost:
        lost = "1 was" if tokens.lost == 1 else f"{tokens.lost} were"
        logger.warning("the text %s was cut to %s; %s lost.", quoted(text), number_of(limit, "token"), lost)
    return tokens


def spelled(model: "LoadedModel", id: int) -> str:
    """A token id as readable text, as `fill-mask` shows it."""
    return model.tokenizer.spelling([model.tokenizer.piece(id)]).alone


def partners(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Align two texts' pieces: pairs of positions of equal pieces, and of unequal runs between them of one length."""
    pairs: list[tuple[int, int]] = []
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        if end - start == other_end - other_start:
            pairs += zip(range(start, end), range(other_start, other_end), strict=True)
    return pairs
