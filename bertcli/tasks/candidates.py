"""Finds the pieces or words that fit a mask best, one mask at a time or all masks of a text together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from heapq import nlargest
from typing import NamedTuple

from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.tasks.items import Reading
from bertcli.tasks.masked import Blank, TokenLogits, at_blanks
from bertcli.tokens import Tokenizer
from bertcli.untrusted import shown

Target = tuple[int, ...]  # ids of a word's pieces
BEAM = 20  # fillings kept after each mask of a joint search; at least four times as many as are wanted


class Candidate(NamedTuple):
    """A word that may fill a mask."""

    ids: Target
    log_probability: float


class Filling(NamedTuple):
    """A text whose first masks are filled: its ids, the words filled in, and the log-probability of all of them."""

    ids: Sequence[int]
    segments: Sequence[int]
    words: tuple[Target, ...]
    log_probability: float


def find_targets(model: Model, words: Sequence[str] | str) -> dict[Target, str]:
    """The ids and the spelling of every word of a list, or of a string of comma-separated words.

    Errors: BertcliError for a word that the vocabulary cannot spell.
    """
    found: dict[Target, str] = {}
    separated = filter(None, map(str.strip, words.split(","))) if isinstance(words, str) else words
    for word in separated:
        ids = model.tokenizer.pieces_of(word)
        if not ids or model.tokenizer.unk_id in ids:
            raise BertcliError(f"The target {shown(word)} is unknown to the vocabulary of {model.name}.")
        found.setdefault(ids, model.tokenizer.piece(ids[0]) if len(ids) == 1 else _spelled(word, model.tokenizer))
    if not found:
        raise BertcliError("There are no targets to rank.")
    return found


def _spelled(words: str, tokenizer: Tokenizer) -> str:
    """One or more words as their pieces spell them, with spaces where the original has them."""
    (found,) = tokenizer.encode([words])
    text, last = "", 0
    for piece, (start, end), side in zip(found.pieces, found.offsets, found.sides, strict=True):
        if side is not None:
            span = words[start:end]  # an added token may include the spaces around it
            start, end = end - len(span.lstrip()), start + len(span.rstrip())
            space = " " if text and any(map(str.isspace, words[last:start])) else ""
            text += space + (tokenizer.joined(["", piece]) if text else piece)
            last = end
    return text


def rank(
    model: Model, blanks: Sequence[Blank], targets: Collection[Target] | None, count: int, reading: Reading
) -> list[list[list[Candidate]]]:
    """The best `count` candidates for every position of every blank, from the vocabulary or from `targets`.

    For a target of several pieces, the mask is replaced by as many masks, which are filled from left to right:
    log p = Σ_j log p(piece_j | text, piece_1 … piece_j-1).
    """
    single = None if targets is None else [target[0] for target in targets if len(target) == 1]

    def read(blank: int, which: int, row: TokenLogits) -> list[Candidate]:
        ids = row.best(count) if single is None else single
        return [Candidate((id,), row.log_probability(id)) for id in ids]

    ranked = at_blanks(model, blanks, reading.tokens_together, read)
    longer = [target for target in targets or () if len(target) > 1]
    if longer:
        chained = iter(_chained(model, blanks, longer, reading))
        ranked = [[[*candidates, *next(chained)] for candidates in masks] for masks in ranked]
    return [[_best(candidates, count) for candidates in masks] for masks in ranked]


def _best(candidates: list[Candidate], count: int) -> list[Candidate]:
    return sorted(candidates, key=lambda candidate: -candidate.log_probability)[:count]


def _chained(model: Model, blanks: Sequence[Blank], targets: list[Target], reading: Reading) -> list[list[Candidate]]:
    """Targets of several pieces as candidates for each position of each blank, in order."""
    steps: dict[tuple[int, int, int, Target], Blank] = {}  # blank, position, number of pieces, pieces already filled in
    places = [(i, position) for i, blank in enumerate(blanks) for position in blank.positions]
    for i, position in places:
        for target in targets:
            for filled in range(len(target)):
                key = (i, position, len(target), target[:filled])
                if key not in steps:
                    steps[key] = _opened(model, blanks[i], position, len(target), target[:filled])
    keys = list(steps)
    wanted: dict[tuple[int, int, int, Target], list[int]] = {key: [] for key in keys}
    for i, position in places:
        for target in targets:
            for filled, id in enumerate(target):
                wanted[i, position, len(target), target[:filled]].append(id)
    answers = at_blanks(
        model,
        list(steps.values()),
        reading.tokens_together,
        lambda step, which, row: {id: row.log_probability(id) for id in wanted[keys[step]]},
    )
    found = {key: answer for key, (answer,) in zip(keys, answers, strict=True)}
    return [
        [
            Candidate(target, sum(found[i, position, len(target), target[:k]][id] for k, id in enumerate(target)))
            for target in targets
        ]
        for i, position in places
    ]


def _opened(model: Model, blank: Blank, position: int, count: int, filled: Target) -> Blank:
    """The blank with one place expanded to `count`, the first ones filled; the next one is to be predicted."""
    ids = [*blank.ids[:position], *filled, *[blank.ids[position]] * (count - len(filled)), *blank.ids[position + 1 :]]
    segments = [*blank.segments[:position], *[blank.segments[position]] * count, *blank.segments[position + 1 :]]
    return Blank(ids, segments, (position + len(filled),))


def joint_fillings(
    model: Model, blank: Blank, targets: Collection[Target] | None, count: int, reading: Reading
) -> list[list[Candidate]]:
    """The best `count` fillings of all masks together, as candidates for each mask with the filling's log-probability.

    Masks are filled from left to right: log p = Σ_m log p(word_m | text, word_1 … word_m-1). This is a beam search: an
    unlikely beginning of a good filling may be missed.
    """
    beam = [Filling(blank.ids, blank.segments, (), 0.0)]
    width = max(BEAM, 4 * count)
    for position in blank.positions:
        opened = [_next_blank(filling, blank, position) for filling in beam]
        ranked = [candidates for (candidates,) in rank(model, opened, targets, width, reading)]
        grown = (
            (filling.log_probability + candidate.log_probability, -i, -j)
            for i, (filling, candidates) in enumerate(zip(beam, ranked, strict=True))
            for j, candidate in enumerate(candidates)
        )
        best = nlargest(width, grown)  # only these are turned into texts
        beam = [_filled(beam[-i], opened[-i].positions[0], ranked[-i][-j]) for _, i, j in best]
    return [
        [Candidate(filling.words[which], filling.log_probability) for filling in beam[:count]]
        for which in range(len(blank.positions))
    ]


def _next_blank(filling: Filling, blank: Blank, position: int) -> Blank:
    """The mask at `position` of the original text, at its place in a filling of the masks before it."""
    return Blank(filling.ids, filling.segments, (position + len(filling.ids) - len(blank.ids),))


def _filled(filling: Filling, position: int, candidate: Candidate) -> Filling:
    ids, segments = filling.ids, filling.segments
    return Filling(
        [*ids[:position], *candidate.ids, *ids[position + 1 :]],
        [*segments[:position], *[segments[position]] * len(candidate.ids), *segments[position + 1 :]],
        (*filling.words, candidate.ids),
        filling.log_probability + candidate.log_probability,
    )
