"""Fill all masks of a text together, by beam search (fill-mask --joint)."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.tasks.parts.masked import MaskedSentence
from bertcli.tasks.parts.words_at_mask import Target, WordAtMask, best_words

BEAM = 20  # fillings kept after each mask; at least four times as many as are wanted


class Filling(NamedTuple):
    """A beam: a sentence whose first masks are filled, the words, and their joint log-probability."""

    sentence: MaskedSentence
    words: tuple[Target, ...]
    log_probability: float

    def at(self, position: int, before: MaskedSentence) -> MaskedSentence:
        """Make the sentence to predict next, with the mask at `position`."""
        return self.sentence._replace(positions=(position + len(self.sentence.ids) - len(before.ids),))

    def grown(self, position: int, word: WordAtMask) -> "Filling":
        sentence = self.sentence.replaced(position, word.ids)
        return Filling(sentence, (*self.words, word.ids), self.log_probability + word.log_probability)


def beam_width(count: int) -> int:
    """Choose the number of beams for `count` requested fillings."""
    return max(BEAM, 4 * count)


def joint_fillings(
    model: LoadedModel,
    sentence: MaskedSentence,
    targets: Collection[Target] | None,
    count: int,
    batch_tokens: int | None,
) -> list[list[WordAtMask]]:
    """The best `count` fillings of all masks together, as words for each mask with the filling's log-probability.

    Masks are filled from left to right: log p = Σ_m log p(word_m | text, word_1 … word_m-1). This is a beam search: an
    unlikely beginning of a good filling may be missed.
    """
    beam = [Filling(sentence, (), 0.0)]
    width = beam_width(count)
    for position in sentence.positions:
        partly_filled = [filling.at(position, sentence) for filling in beam]
        ranked = [words for (words,) in best_words(model, partly_filled, targets, width, batch_tokens)]
        grown = [(i, word) for i, words in enumerate(ranked) for word in words]
        scores = np.array([beam[i].log_probability + word.log_probability for i, word in grown])
        best = [grown[number] for number in best_first(scores, width)]  # only these are turned into sentences
        beam = [beam[i].grown(partly_filled[i].positions[0], word) for i, word in best]
    return [
        [WordAtMask(filling.words[mask], filling.log_probability) for filling in beam[:count]]
        for mask in range(len(sentence.positions))
    ]
