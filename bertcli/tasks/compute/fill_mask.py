"""fill-mask: the words a model predicts for a mask, one mask at a time or all masks of a text together."""

import logging
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.files.texts import Item
from bertcli.lean import lean_dataclass
from bertcli.opened import Opened
from bertcli.order import best_first
from bertcli.tasks.compute.batches import MaskedSentence, check_needs, log_probabilities
from bertcli.tasks.compute.task import Record, RecordTask
from bertcli.tasks.fill_mask import PAGE, FillMaskOptions
from bertcli.tasks.options import separated
from bertcli.tokens import Spelling, Tokenizer

logger = logging.getLogger("bertcli")

Target = tuple[int, ...]  # ids of a word's pieces
TOP_K = 5
BEAM = 20  # fillings kept after each mask of a joint search; at least four times as many as are wanted
MOST_TOGETHER = 250  # joint fillings: a thousand beginnings with a thousand words each are compared for every mask


def plan(model: Opened, wanted: FillMaskOptions) -> RecordTask:
    """The task that gives the records.

    Errors: BertcliError for targets that the model cannot spell, and for a head or mask that it lacks.
    """
    check_needs(model, PAGE.needs(wanted))
    _ = model.tokenizer.mask_id  # an error now if there is none
    targets = None if wanted.targets is None else find_targets(model, wanted.targets)
    count = int(wanted.top_k or (TOP_K if targets is None else len(targets)))
    if wanted.joint and count > MOST_TOGETHER:
        raise BertcliError(
            f"Masks filled together (--joint) have {MOST_TOGETHER} fillings at most, not {count:,}: choose a smaller "
            "top_k (--top-k), or fill each mask alone."
        )
    return _FillMask(model, wanted.reading, targets, count, wanted.joint)


def own_masks(model: Opened, item: Item) -> MaskedSentence:
    """A text with its own masks to be predicted; BertcliError if it has none, or if some were cut off."""
    name, mask = model.tokenizer.mask_token, model.tokenizer.mask_id
    if item.tokens.lost_masks:
        raise BertcliError(
            f"{item.tokens.lost_masks} {name} of {item.place} beyond the cut: shorten the text or raise "
            "max_length (--max-length)."
        )
    positions = [position for position, id in enumerate(item.tokens.ids) if id == mask]
    if not positions:
        raise BertcliError(f"There is no {name} in {item.place}: write {name} where a word is to be predicted.")
    return MaskedSentence(item.tokens.ids, item.tokens.segments, positions)


@lean_dataclass
class _FillMask(RecordTask):
    batches_per_window = 16  # more texts of like length to compute together; each leaves only a few predictions
    targets: dict[Target, Spelling] | None
    top_k: int
    joint: bool

    def check(self, item: Item) -> None:
        """Raise BertcliError for a text without a mask, with masks that were cut off, or too long for the targets."""
        sentence = own_masks(self.model, item)
        longest = max(map(len, self.targets or [()]))
        growth = (longest - 1) * (len(sentence.positions) if self.joint else 1)
        positions = self.model.config.max_tokens
        if len(sentence.ids) + growth > positions:
            raise BertcliError(
                f"A target of {longest} pieces makes {item.place} longer than this model's {positions} positions: "
                "shorten the text or set max_length (--max-length)."
            )

    def records(self, items: list[Item]) -> Iterator[Record]:
        sentences = [own_masks(self.model, item) for item in items]
        batch_tokens = self.reading.batch_tokens
        if self.joint:
            ranked = [
                joint_fillings(self.model, sentence, self.targets, self.top_k, batch_tokens) for sentence in sentences
            ]
        else:
            ranked = best_candidates(self.model, sentences, self.targets, self.top_k, batch_tokens)
        return map(self._record, items, sentences, ranked)

    def _record(self, item: Item, sentence: MaskedSentence, ranked: "list[list[Candidate]]") -> Record:
        """`ranked` holds every mask's candidates, filled in one by one or (joint) those of the same rank together."""
        words = [[self._spelling(candidate) for candidate in candidates] for candidates in ranked]
        spans = mask_spans(item, sentence.positions, self.model.tokenizer.mask_token)
        masks = []
        for mask, (position, candidates) in enumerate(zip(sentence.positions, ranked, strict=True)):
            predictions = []
            for place, candidate in enumerate(candidates):
                together = range(len(words)) if self.joint else (mask,)
                sequence = put_in(item, [(spans[i], words[i][place]) for i in together], spans[mask].side)
                predictions.append({**self._prediction(candidate, words[mask][place].alone), "sequence": sequence})
            masks.append({"position": position, "predictions": predictions})
        return {"index": item.index, "text": item.text.text, "truncated": item.tokens.truncated, "masks": masks}

    def _spelling(self, candidate: "Candidate") -> Spelling:
        tokenizer = self.model.tokenizer
        return self.targets[candidate.ids] if self.targets else tokenizer.spelling([tokenizer.piece(candidate.ids[0])])

    def _prediction(self, candidate: "Candidate", word: str) -> Record:
        record: Record = {"score": math.exp(candidate.log_probability)}
        if len(candidate.ids) == 1:
            return {**record, "token": candidate.ids[0], "token_str": word}
        pieces = [self.model.tokenizer.piece(id) for id in candidate.ids]
        return {**record, "token": list(candidate.ids), "token_str": word, "pieces": pieces}


class MaskSpan(NamedTuple):
    """Where a mask is written: in the text (side 0) or its pair, from one character to before another."""

    start: int
    end: int
    side: int | None


def mask_spans(item: Item, positions: Sequence[int], mask: str) -> list[MaskSpan]:
    """Where the masks at these tokens are written, without the spaces around it that a mask token may include."""
    sides, offsets = item.tokens.sides, item.tokens.offsets
    spans = []
    for position in positions:
        (start, end), side = offsets[position], sides[position]
        inside = ((item.text.pair if side == 1 else item.text.text) or "").find(mask, start, end)
        spans.append(MaskSpan(start, end, side) if inside < 0 else MaskSpan(inside, inside + len(mask), side))
    return spans


def put_in(item: Item, words: Sequence[tuple[MaskSpan, Spelling]], side: int | None) -> str:
    """The text, or (side 1) its pair, with its masks replaced by words; the rest is unchanged."""
    text = (item.text.pair if side == 1 else item.text.text) or ""
    for span, word in sorted((pair for pair in words if pair[0].side == side), reverse=True):
        glued = span.start > 0 and not text[span.start - 1].isspace()
        text = text[: span.start] + (word.following if glued else word.alone.lstrip()) + text[span.end :]
    return text


# ---------------------------------------------------------------------------------------------------- candidates


class Candidate(NamedTuple):
    """A word that may fill a mask."""

    ids: Target
    log_probability: float


def find_targets(model: Opened, words: Iterable[str] | str) -> dict[Target, Spelling]:
    """The ids and the spelling of every word of a list, or of a string of comma-separated words.

    Errors: BertcliError for a word that the vocabulary cannot spell.
    """
    targets: dict[Target, Spelling] = {}
    for word in separated(words) if isinstance(words, str) else words:
        ids = model.tokenizer.pieces_of(word)
        if not ids or model.tokenizer.special_id("unk") in ids:
            raise BertcliError(f"The target {shown(word)} is unknown to the vocabulary of {model.name}.")
        targets.setdefault(ids, _spelled(word, ids, model.tokenizer))
    if not targets:
        raise BertcliError("There are no targets to rank.")
    if model.tokenizer.space is not None:
        example = next(iter(targets.values())).following
        logger.info("Targets are words with the space before them, such as %s.", shown(example))
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


def best_candidates(
    model: Opened,
    sentences: Sequence[MaskedSentence],
    targets: Collection[Target] | None,
    count: int,
    batch_tokens: int | None,
) -> list[list[list[Candidate]]]:
    """The best `count` candidates for every position of every sentence, from the vocabulary or from `targets`.

    For a target of several pieces, the mask is replaced by as many masks, which are filled from left to right:
    log p = Σ_j log p(piece_j | text, piece_1 … piece_j-1).
    """
    pieces = [target[0] for target in targets or () if len(target) == 1]
    wanted = count if targets is None else [pieces] * len(sentences)
    of_sentences = log_probabilities(model, sentences, wanted, batch_tokens)
    ranked = [[[Candidate((id,), p) for id, p in by_id.items()] for by_id in masks] for masks in of_sentences]
    longer = [target for target in targets or () if len(target) > 1]
    if longer:
        chained = iter(_chained(model, sentences, longer, batch_tokens))
        ranked = [[[*candidates, *next(chained)] for candidates in masks] for masks in ranked]

    def best(candidates: list[Candidate]) -> list[Candidate]:
        scores = np.array([candidate.log_probability for candidate in candidates])
        return [candidates[i] for i in best_first(scores, count)]

    return [[best(candidates) for candidates in masks] for masks in ranked]


class _Step(NamedTuple):
    """A mask replaced by masks for that many pieces, the first ones filled: what the next piece is predicted from."""

    sentence: int
    position: int
    pieces: int
    filled: Target

    def expanded(self, sentence: MaskedSentence) -> MaskedSentence:
        masks = [sentence.ids[self.position]] * (self.pieces - len(self.filled))
        return sentence.replaced(self.position, [*self.filled, *masks], (self.position + len(self.filled),))


def _chained(
    model: Opened, sentences: Sequence[MaskedSentence], targets: list[Target], batch_tokens: int | None
) -> Iterator[list[Candidate]]:
    """Targets of several pieces as candidates for each position of each sentence, in order."""
    places = [(i, position) for i, sentence in enumerate(sentences) for position in sentence.positions]
    wanted: dict[_Step, list[int]] = {}  # the pieces whose probability each step is asked for
    for place in places:
        for target in targets:
            for k, id in enumerate(target):
                wanted.setdefault(_Step(*place, len(target), target[:k]), []).append(id)
    expanded = [step.expanded(sentences[step.sentence]) for step in wanted]
    answers = log_probabilities(model, expanded, list(wanted.values()), batch_tokens)
    log_probs = {step: answer for step, (answer,) in zip(wanted, answers, strict=True)}
    for place in places:
        yield [
            Candidate(target, sum(log_probs[_Step(*place, len(target), target[:k])][id] for k, id in enumerate(target)))
            for target in targets
        ]


class Filling(NamedTuple):
    """A sentence whose first masks are filled, with which words, and the log-probability of all of them."""

    sentence: MaskedSentence
    words: tuple[Target, ...]
    log_probability: float

    def at(self, position: int, before: MaskedSentence) -> MaskedSentence:
        """To be predicted next: the mask at `position` of the sentence as it was before."""
        return self.sentence._replace(positions=(position + len(self.sentence.ids) - len(before.ids),))

    def grown(self, position: int, word: Candidate) -> "Filling":
        sentence = self.sentence.replaced(position, word.ids)
        return Filling(sentence, (*self.words, word.ids), self.log_probability + word.log_probability)


def joint_fillings(
    model: Opened, sentence: MaskedSentence, targets: Collection[Target] | None, count: int, batch_tokens: int | None
) -> list[list[Candidate]]:
    """The best `count` fillings of all masks together, as candidates for each mask with the filling's log-probability.

    Masks are filled from left to right: log p = Σ_m log p(word_m | text, word_1 … word_m-1). This is a beam search: an
    unlikely beginning of a good filling may be missed.
    """
    beam = [Filling(sentence, (), 0.0)]
    width = max(BEAM, 4 * count)
    for position in sentence.positions:
        partly_filled = [filling.at(position, sentence) for filling in beam]
        ranked = [candidates for (candidates,) in best_candidates(model, partly_filled, targets, width, batch_tokens)]
        grown = [(i, candidate) for i, candidates in enumerate(ranked) for candidate in candidates]
        scores = np.array([beam[i].log_probability + candidate.log_probability for i, candidate in grown])
        best = [grown[place] for place in best_first(scores, width)]  # only these are turned into sentences
        beam = [beam[i].grown(partly_filled[i].positions[0], candidate) for i, candidate in best]
    return [
        [Candidate(filling.words[mask], filling.log_probability) for filling in beam[:count]]
        for mask in range(len(sentence.positions))
    ]
