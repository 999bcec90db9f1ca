"""Mask each token of a text in turn, and compute its log-probability, for `score`."""

from collections.abc import Sequence
from typing import NamedTuple

from bertcli.loaded_model import LoadedModel
from bertcli.tasks.parts.masked import MaskedSentence, log_probabilities
from bertcli.tokens import Tokens


class Guess(NamedTuple):
    """A masked sentence, and the true ids at its masked positions."""

    sentence: MaskedSentence
    truth: list[int]


def guesses(model: LoadedModel, tokens: Tokens, within_word: bool = False) -> list[Guess]:
    """Make a copy of the text for each of its tokens except [CLS], [SEP] and masks, with that token masked.

    within_word: the later pieces of its word are masked, too, so that they do not give it away.
    Source: Kauf and Ivanova 2023, "A Better Way to Do Masked Language Model Scoring".
    """
    tokenizer, words = model.tokenizer, list(zip(tokens.sides, tokens.words, strict=True)) if within_word else []
    # A mask that the text has stands for a word that nobody has named: it has no log-probability.
    skipped = {tokenizer.special_id(role) for role in ("cls", "sep", "mask")}
    masked = []
    for at, id in enumerate(tokens.ids):
        if id not in skipped:
            ids = [*tokens.ids[:at], tokenizer.mask_id, *tokens.ids[at + 1 :]]
            for later in range(at + 1, len(words)):
                if words[later] == words[at] and words[at][1] is not None:
                    ids[later] = tokenizer.mask_id
            masked.append(Guess(MaskedSentence(ids, tokens.segments, (at,)), [id]))
    return masked


def scored(model: LoadedModel, guesses: Sequence[Guess], batch_tokens: int | None) -> list[list[float]]:
    """Compute the log-probabilities of the true ids of each guess."""
    sentences, truths = [guess.sentence for guess in guesses], [guess.truth for guess in guesses]
    of_each = log_probabilities(model, sentences, truths, batch_tokens)
    return [
        [by_id[id] for id, by_id in zip(truth, rows, strict=True)] for truth, rows in zip(truths, of_each, strict=True)
    ]
