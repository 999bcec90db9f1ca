"""Compute the probabilities of words at a mask, of one piece or of several."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.tasks.parts.masked import MaskedSentence, log_probabilities

Target = tuple[int, ...]  # ids of a word's pieces


class WordAtMask(NamedTuple):
    """A word that may fill a mask."""

    ids: Target
    log_probability: float


def best_words(
    model: LoadedModel,
    sentences: Sequence[MaskedSentence],
    targets: Collection[Target] | None,
    count: int,
    batch_tokens: int | None,
) -> list[list[list[WordAtMask]]]:
    """Find the best `count` words for every position of every sentence, in the vocabulary or in `targets`.

    For a target of several pieces, the mask is replaced by as many masks, which are filled from left to right:
    log p = Σ_j log p(piece_j | text, piece_1 … piece_j-1).
    """
    pieces = [target[0] for target in targets or () if len(target) == 1]
    pieces_asked = count if targets is None else [pieces] * len(sentences)
    of_sentences = log_probabilities(model, sentences, pieces_asked, batch_tokens)
    ranked = [[[WordAtMask((id,), p) for id, p in by_id.items()] for by_id in masks] for masks in of_sentences]
    longer = [target for target in targets or () if len(target) > 1]
    if longer:
        chained = iter(_chained(model, sentences, longer, batch_tokens))
        ranked = [[[*words, *next(chained)] for words in masks] for masks in ranked]

    def best(words: list[WordAtMask]) -> list[WordAtMask]:
        scores = np.array([word.log_probability for word in words])
        return [words[i] for i in best_first(scores, count)]

    return [[best(words) for words in masks] for masks in ranked]


class _Step(NamedTuple):
    """The input to predict the next piece of a target: a mask for each of its pieces, the first of them filled in."""

    sentence: int
    position: int
    pieces: int
    filled: Target

    def expanded(self, sentence: MaskedSentence) -> MaskedSentence:
        """The sentence with room for all pieces; the first mask that is left is the one to predict."""
        mask = sentence.ids[self.position]
        masks_left = self.pieces - len(self.filled)
        first_mask = self.position + len(self.filled)
        return sentence.replaced(self.position, [*self.filled, *[mask] * masks_left], (first_mask,))


def _chained(
    model: LoadedModel, sentences: Sequence[MaskedSentence], targets: list[Target], batch_tokens: int | None
) -> Iterator[list[WordAtMask]]:
    """Score targets of several pieces for each position of each sentence, in order."""
    masks = []
    for number, sentence in enumerate(sentences):
        masks += [(number, position) for position in sentence.positions]
    # Targets that begin alike share steps. The pieces whose probability each step is asked for:
    ids_of_steps: dict[_Step, list[int]] = {}
    for number, position in masks:
        for target in targets:
            for step, id in _steps(number, position, target):
                ids_of_steps.setdefault(step, []).append(id)
    expanded = [step.expanded(sentences[step.sentence]) for step in ids_of_steps]
    answers = log_probabilities(model, expanded, list(ids_of_steps.values()), batch_tokens)
    log_probs = {step: answer for step, (answer,) in zip(ids_of_steps, answers, strict=True)}
    for number, position in masks:
        words = []
        for target in targets:
            log_prob = sum(log_probs[step][id] for step, id in _steps(number, position, target))
            words.append(WordAtMask(target, log_prob))
        yield words


def _steps(sentence: int, position: int, target: Target) -> Iterator[tuple[_Step, int]]:
    """The steps that predict a target piece by piece, each with its piece."""
    for done, id in enumerate(target):
        yield _Step(sentence, position, len(target), target[:done]), id
